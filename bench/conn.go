package main

import (
	"context"

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
	r.server = must(r.ln.Accept(dat.RequestOf(<-r.ln.Requests()), nil))
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
func pairConn(r *connRig) contestant {
	return contestant{"pair, Conn", func(n int) {
		for range n {
			b := r.client.Buffer()
			b.Resize(messageSize)
			check(r.client.Send(b))
			ev := <-r.ln.Events()
			c := dat.ConnOf(ev)
			c.Release(c.Message(ev))
		}
	}}
}

// idleConnTargets measures the heap of Conns that do nothing, both ends of which are in this
// process. It does not depend on the number of processors.
func idleConnTargets(c contest) (list []target) {
	if c.procs > 1 {
		return nil
	}
	for _, over := range []string{"loop", overLocalhost} {
		list = append(list, target{"T16", "KB of heap of an idle Conn over " + over, exactly(idleConn(over, c.most()/20)), false, 16})
	}
	return list
}

// idleConn makes n connections with the usual depth, and returns the heap of an end in KB.
func idleConn(over string, n int) float64 {
	ctx := context.Background()
	ia := must(dat.Open(ctx, over))
	ln := must(ia.Listen(ctx, "", dat.ConnConfig{Conns: 2 * n}))
	before := measure()
	for range n {
		must(ln.Dial(ln.Addr(), nil))
		must(ln.Accept(dat.RequestOf(<-ln.Requests()), nil))
		for range 2 {
			check((<-ln.Events()).Err())
		}
	}
	added := measure().Heap - before.Heap
	check(ia.Close())
	return float64(added) / 1000 / float64(2*n)
}
