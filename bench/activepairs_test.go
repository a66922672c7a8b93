package main

import (
	"context"
	"fmt"

	dat "godat/runtime"
)

// active is many connections inside one process, all of which carry messages in turns.
// Their events go to one dispatcher, and their bytes through the same memory: what
// differs from one connection to the next is the endpoints.
type active struct {
	ia     *dat.IA
	lmr    *dat.LMR
	events *dat.Dispatcher
	a, b   []*dat.Endpoint
	before usage // with the dispatchers, and without an endpoint
}

const activeDepth = 16 // of each queue

func newActive(pairs int) *active {
	ctx := context.Background()
	s := &active{ia: must(dat.Open(ctx, "loop"))}
	pz := must(s.ia.NewPZ())
	s.lmr = must(pz.Alloc(regionSize, dat.AllPrivileges))
	s.events = must(s.ia.NewDispatcher(dat.DispatcherConfig{QLen: 4096}))
	conn := must(s.ia.NewDispatcher(dat.DispatcherConfig{QLen: 4*pairs + 16}))
	psp := must(s.ia.NewPSP(dat.PSPConfig{Dispatcher: conn}))
	s.before = measure()
	end := func() *dat.Endpoint {
		attr := &dat.EndpointAttr{MaxRecvDTOs: activeDepth, MaxRequestDTOs: activeDepth}
		return must(s.ia.NewEndpoint(dat.EndpointConfig{PZ: pz, Recv: s.events, Request: s.events, Conn: conn, Attr: attr}))
	}
	next := func() dat.Event {
		ev, _, err := conn.Wait(ctx, 1)
		check(err)
		check(ev.Err())
		return ev
	}
	for range pairs {
		a, b := end(), end()
		check(a.Connect(dat.ConnectConfig{Addr: s.ia.Attr().Address, Qual: psp.Qual()}))
		check(dat.RequestOf(next()).Accept(b, nil))
		next()
		next()
		s.a, s.b = append(s.a, a), append(s.b, b)
	}
	return s
}

// pairs is a pair on each connection in turn, polled.
func (s *active) pairs() contestant {
	buf := make([]dat.Event, 32)
	at := 0
	return contestant{fmt.Sprintf("pair, poll, among %d connections", len(s.a)), func(n int) {
		for range n {
			check(s.b[at].PostRecv(1, 0, s.lmr.Segment(half, messageSize)))
			check(s.a[at].PostSend(2, 0, s.lmr.Segment(0, messageSize)))
			dequeue(s.events, buf, 2)
			if at++; at == len(s.a) {
				at = 0
			}
		}
	}}
}

// idleEndpointTargets measures the memory of an idle endpoint, which does not depend on the
// number of processors.
func idleEndpointTargets(c contest) (list []target) {
	if c.procs > 1 {
		return nil
	}
	n := c.most()
	s := newActive(n)
	after := measure()
	s.close()
	bytes := after.Heap + after.Stacks - s.before.Heap - s.before.Stacks
	return []target{{"T16", fmt.Sprintf("KB of an idle endpoint of depth %d", activeDepth), exactly(float64(bytes) / 1000 / float64(2*n)), false, 7}}
}

func (s *active) close() { check(s.ia.Close()) }
