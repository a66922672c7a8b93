package main

import (
	"context"

	"godat/ep"
	dat "godat/runtime"
)

// connRig is a connection whose two ends have one channel of events.
type connRig struct {
	ia             *dat.IA
	ln             *dat.Listener
	client, server *dat.Conn
}

func newConnRig() *connRig {
	r := &connRig{ia: must(dat.Open(context.Background(), "loop"))}
	r.ln = must(r.ia.Listen(context.Background(), "", dat.ConnConfig{Depth: 256, Message: messageSize}))
	r.client = must(r.ln.Dial(r.ln.Addr(), nil))
	r.server = must(r.ln.Accept(ep.RequestOf(<-r.ln.Requests()), nil))
	for range 2 {
		check((<-r.ln.Events()).Err())
	}
	return r
}

func (r *connRig) close() { check(r.ia.Close()) }

// pairConn is a pair over a channel, on the layer above endpoints: it takes a buffer,
// sends it, receives it, and gives it back, which posts the next receive. It is not
// inlined, so that instructions.sh finds the workload by its name.
//
//go:noinline
func pairConn(r *connRig) workload {
	return func(n int) {
		for range n {
			b := r.client.Buffer()
			b.Resize(messageSize)
			check(r.client.Send(b))
			ev := <-r.ln.Events()
			c := dat.ConnOf(ev)
			c.Release(c.Message(ev))
		}
	}
}
