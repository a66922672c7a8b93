package main

import (
	"context"
	"runtime"

	dat "godat/runtime"
)

// rig is two connected endpoints with memory. Each has a dispatcher of its own, or both
// share one.
type rig struct {
	ia   *dat.IA
	lmr  *dat.LMR
	a, b *dat.Endpoint
	// da takes the completions of a, db those of b.
	da, db *dat.Dispatcher
}

const (
	regionSize = 8 << 20
	half       = regionSize / 2 // a's memory is below half, b's above
)

// newRig makes a rig on loop whose dispatchers deliver as cfg says. With shared, both
// endpoints have one dispatcher.
func newRig(cfg dat.DispatcherConfig, shared bool) *rig { return newRigOn("loop", nil, cfg, shared) }

// newRigOn makes a rig on the named adapter, opened with params.
func newRigOn(ia string, params map[string]string, cfg dat.DispatcherConfig, shared bool) *rig {
	r := &rig{ia: must(dat.Open(context.Background(), ia, dat.WithParams(params)))}
	pz := must(r.ia.NewPZ())
	r.lmr = must(pz.Alloc(regionSize, dat.AllPrivileges))
	cfg.QLen = 4096
	conn := must(r.ia.NewDispatcher(dat.DispatcherConfig{QLen: 16}))
	r.da = must(r.ia.NewDispatcher(cfg))
	r.db = r.da
	if !shared {
		r.db = must(r.ia.NewDispatcher(cfg))
	}
	attr := &dat.EndpointAttr{MaxRecvDTOs: 256, MaxRequestDTOs: 256}
	r.a = must(r.ia.NewEndpoint(dat.EndpointConfig{PZ: pz, Recv: r.da, Request: r.da, Conn: conn, Attr: attr}))
	r.b = must(r.ia.NewEndpoint(dat.EndpointConfig{PZ: pz, Recv: r.db, Request: r.db, Conn: conn, Attr: attr}))
	psp := must(r.ia.NewPSP(dat.PSPConfig{Dispatcher: conn}))
	check(r.a.Connect(dat.ConnectConfig{Addr: r.ia.Attr().Address, Qual: psp.Qual()}))
	ev, _, err := conn.Wait(context.Background(), 1)
	check(err)
	check(dat.RequestOf(ev).Accept(r.b, nil))
	for range 2 {
		must2(conn.Wait(context.Background(), 1))
	}
	return r
}

func (r *rig) close() { check(r.ia.Close()) }

// dequeue takes n completions from d, yields while there are none, and requires that
// each succeeded.
func dequeue(d *dat.Dispatcher, buf []dat.Event, n int) {
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

func receive(d *dat.Dispatcher, n int) {
	for range n {
		ev := <-d.C()
		check(ev.Status.Err())
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must2[T, U any](v T, _ U, err error) T { return must(v, err) }
