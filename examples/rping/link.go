package main

import (
	"context"
	"net"
	"strconv"

	dat "godat/runtime"
)

// config is of a connection on which one message is under way at a time. The C program
// reads one piece of memory at a time, too.
var config = dat.ConnConfig{
	Depth: 4, Message: advertSize, Apart: true, Conns: 1,
	Attr: &dat.EndpointAttr{MaxReadIn: 1, MaxReadOut: 1},
}

// address is the server's.
func (o *options) address() string { return net.JoinHostPort(o.Addr, strconv.FormatUint(o.Port, 10)) }

// send sends an advert.
func send(c *dat.Conn, r dat.RemoteSegment) error {
	b := c.Buffer()
	if b != nil { // Send says why there is none
		putAdvert(b.Resize(advertSize), r)
	}
	return c.Send(b)
}

// next waits for the peer's next advert, of at most that many bytes.
func next(ctx context.Context, c *dat.Conn, most int) (dat.RemoteSegment, error) {
	b, err := c.Receive(ctx)
	if err != nil {
		return dat.RemoteSegment{}, err
	}
	defer c.Release(b)
	return parseAdvert(b.Bytes(), most)
}
