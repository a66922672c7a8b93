package main

import (
	"io"

	"godat/bench/lane"
)

// newByteStream makes a lane from a to b, or if roundTrip from a to b and back. closeEnds
// closes both ends.
func newByteStream(a, b io.ReadWriter, size, depth int, roundTrip bool, closeEnds func() error) lane.Lane {
	cfg := lane.Config{Size: size, Depth: depth}
	if !roundTrip {
		return lane.NewConn(a, b, cfg, lane.SocketRoom, closeEnds)
	}
	l := &echoed{Conn: lane.NewConn(a, a, cfg, lane.SocketRoom, closeEnds), over: make(chan struct{})}
	go l.echo(b, max(size, slotLen))
	return l
}

// echoed is a byte stream whose other end sends back each message.
type echoed struct {
	*lane.Conn
	over chan struct{} // closed when no message is echoed any more
}

// slotLen is how many bytes at the beginning of a message tell its slot.
const slotLen = 8

// echo sends back each message as a whole, until the stream ends.
func (l *echoed) echo(end io.ReadWriter, size int) {
	defer close(l.over)
	buf := make([]byte, size)
	for {
		if _, err := io.ReadFull(end, buf); err != nil {
			return
		}
		if _, err := end.Write(buf); err != nil {
			return
		}
	}
}

// PostBlocks reports whether a post waits while the answer to another one waits for the poster.
func (l *echoed) PostBlocks(depth int) bool { return depth > 1 && l.Conn.PostBlocks(depth) }

// Close closes both ends.
func (l *echoed) Close() error {
	err := l.Conn.Close()
	<-l.over
	return err
}
