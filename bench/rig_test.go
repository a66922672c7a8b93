package main

import (
	"context"
	"runtime"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// rig is two connected endpoints of one adapter on loop, with memory. Each has a dispatcher of
// its own, or both share one.
type rig struct {
	ia   *dat.IA
	lmr  *mem.LMR // a's memory is below half, b's above
	a, b *ep.Endpoint
	// da takes the completions of a, db those of b.
	da, db *evd.Dispatcher
}

// half is where b's memory begins.
const half = 4096

// newRig makes a rig whose dispatchers deliver as cfg says. With shared, both endpoints have one
// dispatcher.
func newRig(cfg evd.Config, shared bool) *rig {
	ctx := context.Background()
	r := &rig{ia: must(dat.Open(ctx, "loop"))}
	pz := must(r.ia.NewPZ())
	r.lmr = must(pz.Alloc(2*half, hw.AllPrivileges))
	cfg.QLen = 4096
	r.da = must(r.ia.NewDispatcher(cfg))
	r.db = r.da
	if !shared {
		r.db = must(r.ia.NewDispatcher(cfg))
	}
	conn, farConn := must(r.ia.NewDispatcher(evd.Config{QLen: 16})), must(r.ia.NewDispatcher(evd.Config{QLen: 16}))
	attr := &ep.Attr{MaxRecvDTOs: 1024, MaxRequestDTOs: 1024}
	r.a = must(r.ia.NewEndpoint(ep.Config{PZ: pz, Recv: r.da, Request: r.da, Conn: conn, Attr: attr}))
	r.b = must(r.ia.NewEndpoint(ep.Config{PZ: pz, Recv: r.db, Request: r.db, Conn: farConn, Attr: attr}))
	psp := must(r.ia.NewPSP(ep.PSPConfig{Dispatcher: farConn}))
	check(r.a.Connect(ep.ConnectConfig{Addr: r.ia.Attr().Address, Qual: psp.Qual()}))
	check(ep.RequestOf(must2(farConn.Wait(ctx, 1))).Accept(r.b, nil))
	must2(farConn.Wait(ctx, 1))
	must2(conn.Wait(ctx, 1))
	return r
}

func (r *rig) close() { check(r.ia.Close()) }

// dequeue takes n completions from d, yields while there are none, and requires that
// each succeeded.
func dequeue(d *evd.Dispatcher, buf []event.Event, n int) {
	for n > 0 {
		m, err := d.Dequeue(buf)
		check(err)
		for i := range buf[:m] {
			check(buf[i].Status.Err())
		}
		if n -= m; m == 0 {
			runtime.Gosched()
		}
	}
}

func receive(d *evd.Dispatcher, n int) {
	for range n {
		ev := <-d.C()
		check(ev.Status.Err())
	}
}

func must2[T, U any](v T, _ U, err error) T { return must(v, err) }
