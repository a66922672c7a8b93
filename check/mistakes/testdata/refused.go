// Command refused has mistakes that the compiler refuses: each line with a comment that begins
// with "refused:" is an error, with the text behind that.
package main

import (
	"context"

	"godat/ep"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

func main() {}

func bytesInPlaceOfABuffer(c *dat.Conn) error {
	return c.Send([]byte("hello")) // refused: cannot use []byte("hello")
}

func bytesInPlaceOfASegment(e *ep.Endpoint) error {
	return e.PostSend(1, 0, []byte("hello")) // refused: cannot use []byte("hello")
}

func theSegmentsTheWrongWayRound(e *ep.Endpoint, here mem.Segment, there mem.RemoteSegment) error {
	return e.PostRDMAWrite(1, 0, here, there) // refused: cannot use here
}

func noContext(ia *dat.IA) (*dat.Conn, error) {
	return ia.Dial("127.0.0.1:7000", dat.ConnConfig{}) // refused: not enough arguments
}

func aPortInPlaceOfAnAddress(ctx context.Context, ia *dat.IA) (*dat.Listener, error) {
	return ia.Listen(ctx, 7000, dat.ConnConfig{}) // refused: cannot use 7000
}

func anEventOfTheProgramsOwn(c *dat.Conn) {
	c.Events() <- event.Event{} // refused: cannot send to receive-only channel
}

func aCloseOfTheChannel(l *dat.Listener) {
	close(l.Requests()) // refused: cannot close receive-only channel
}

func aMessageOfNoEvent(c *dat.Conn) *mem.Buffer {
	return c.Message() // refused: not enough arguments
}

func anAcceptOfAnEvent(l *dat.Listener, ev event.Event) (*dat.Conn, error) {
	return l.Accept(ev, nil) // refused: cannot use ev
}

func aPrivilegeOfVerbs(c *dat.Conn) (*mem.LMR, error) {
	return c.Alloc(8, dat.IBV_ACCESS_REMOTE_WRITE) // refused: undefined: dat.IBV_ACCESS_REMOTE_WRITE
}
