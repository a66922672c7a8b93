package main

import (
	"context"
	"strconv"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// A crowd is bare endpoints, with a receive posted.
type crowd struct {
	ia     *dat.IA
	pz     *mem.PZ
	lmr    *mem.LMR
	events *evd.Dispatcher
	eps    []*ep.Endpoint
	before usage
}

const (
	messageSize = 64
	arriving    = 64      // connections being made at a time
	answered    = 1 << 32 // the cookie of a receive
)

func newCrowd(name string, n int) *crowd {
	c := &crowd{ia: must(dat.Open(context.Background(), name))}
	c.pz = must(c.ia.NewPZ())
	c.lmr = must(c.pz.Alloc(4096, hw.AllPrivileges))
	c.events = must(c.ia.NewDispatcher(evd.Config{QLen: 8*n + 1024}))
	c.before = measure()
	return c
}

// end makes one end, with a receive posted.
func (c *crowd) end() *ep.Endpoint {
	attr := &ep.Attr{MaxRecvDTOs: 2, MaxRequestDTOs: 2, MaxRecvIOV: 1, MaxRequestIOV: 1}
	e := must(c.ia.NewEndpoint(ep.Config{PZ: c.pz, Recv: c.events, Request: c.events, Conn: c.events, Attr: attr}))
	c.eps = append(c.eps, e)
	c.postRecv(e)
	return e
}

func (c *crowd) postRecv(e *ep.Endpoint) {
	check(e.PostRecv(answered, 0, c.lmr.Segment(messageSize, messageSize)))
}

func (c *crowd) send(e *ep.Endpoint) {
	check(e.PostSend(0, hw.Suppress, c.lmr.Segment(0, messageSize)))
}

// serve takes n connections and answers their messages.
func (c *crowd) serve(n int, ready func(port string)) {
	psp := must(c.ia.NewPSP(ep.PSPConfig{Dispatcher: c.events}))
	ready(strconv.FormatUint(psp.Qual(), 10))
	for done := 0; done < n; {
		ev := c.next()
		switch {
		case ev.Number == event.ConnectionRequest:
			check(ep.RequestOf(ev).Accept(c.end(), nil))
		case ev.Number == event.DTOCompletion:
			c.postRecv(ep.Of(ev))
			c.send(ep.Of(ev))
			done++
		}
	}
	check(psp.Close())
}

// visit makes n connections, a few at a time, and has an answer from each.
func (c *crowd) visit(addr, port string, n int) {
	qual, asked := must(strconv.ParseUint(port, 10, 64)), 0
	ask := func() {
		if asked < n {
			asked++
			check(c.end().Connect(ep.ConnectConfig{Addr: addr, Qual: qual}))
		}
	}
	for range arriving {
		ask()
	}
	for done := 0; done < n; {
		ev := c.next()
		switch {
		case ev.Number == event.Established:
			c.send(ep.Of(ev))
		case ev.Number == event.DTOCompletion:
			c.postRecv(ep.Of(ev))
			done++
			ask()
		}
	}
}

// next waits for the next event, which must tell of a success.
func (c *crowd) next() event.Event {
	ev, _, err := c.events.Wait(context.Background(), 1)
	check(err)
	check(ev.Err())
	return ev
}

func (c *crowd) rest(d time.Duration) idle { return rest(d, len(c.eps), c.before) }

func (c *crowd) close() error { return c.ia.Close() }
