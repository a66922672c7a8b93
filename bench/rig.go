package main

import (
	"context"
	"runtime"

	dat "godat/runtime"
)

// rig is two connected endpoints with memory. Each has a dispatcher of its own, or both
// share one.
type rig struct {
	ia, far *dat.IA // a's and b's, often the same
	// lmr is memory of ia, of which a's is below half; farLMR is memory of far, of which
	// b's is above.
	lmr, farLMR *dat.LMR
	a, b        *dat.Endpoint
	// da takes the completions of a, db those of b.
	da, db *dat.Dispatcher
}

const (
	regionSize = 8 << 20
	half       = regionSize / 2
)

// newRig makes a rig on loop whose dispatchers deliver as cfg says. With shared, both
// endpoints have one dispatcher.
func newRig(cfg dat.DispatcherConfig, shared bool) *rig { return newRigOn("loop", nil, cfg, shared) }

// newRigOn makes a rig on the named adapter, opened with params.
func newRigOn(ia string, params map[string]string, cfg dat.DispatcherConfig, shared bool) *rig {
	r := &rig{ia: open(ia, params)}
	r.far = r.ia
	pz := r.alloc()
	r.farLMR = r.lmr
	cfg.QLen = 4096
	r.da = must(r.ia.NewDispatcher(cfg))
	r.db = r.da
	if !shared {
		r.db = must(r.ia.NewDispatcher(cfg))
	}
	r.connect(pz, pz)
	return r
}

// newRigApart makes a rig whose ends are on two adapters, as if they were in two programs.
func newRigApart(ia string, params map[string]string, cfg dat.DispatcherConfig) *rig {
	r := &rig{ia: open(ia, params), far: open(ia, params)}
	pz := r.alloc()
	farPZ := must(r.far.NewPZ())
	r.farLMR = must(farPZ.Alloc(regionSize, dat.AllPrivileges))
	cfg.QLen = 4096
	r.da, r.db = must(r.ia.NewDispatcher(cfg)), must(r.far.NewDispatcher(cfg))
	r.connect(pz, farPZ)
	return r
}

func open(ia string, params map[string]string) *dat.IA {
	return must(dat.Open(context.Background(), ia, dat.WithParams(params)))
}

// alloc makes lmr, and returns its zone.
func (r *rig) alloc() *dat.PZ {
	pz := must(r.ia.NewPZ())
	r.lmr = must(pz.Alloc(regionSize, dat.AllPrivileges))
	return pz
}

// connect makes the endpoints, in their zones, and connects them.
func (r *rig) connect(pz, farPZ *dat.PZ) {
	conn := must(r.ia.NewDispatcher(dat.DispatcherConfig{QLen: 16}))
	farConn := must(r.far.NewDispatcher(dat.DispatcherConfig{QLen: 16}))
	attr := &dat.EndpointAttr{MaxRecvDTOs: 1024, MaxRequestDTOs: 1024}
	r.a = must(r.ia.NewEndpoint(dat.EndpointConfig{PZ: pz, Recv: r.da, Request: r.da, Conn: conn, Attr: attr}))
	r.b = must(r.far.NewEndpoint(dat.EndpointConfig{PZ: farPZ, Recv: r.db, Request: r.db, Conn: farConn, Attr: attr}))
	psp := must(r.far.NewPSP(dat.PSPConfig{Dispatcher: farConn}))
	check(r.a.Connect(dat.ConnectConfig{Addr: r.far.Attr().Address, Qual: psp.Qual()}))
	check(dat.RequestOf(must2(farConn.Wait(context.Background(), 1))).Accept(r.b, nil))
	must2(farConn.Wait(context.Background(), 1))
	must2(conn.Wait(context.Background(), 1))
}

func (r *rig) close() {
	check(r.ia.Close())
	if r.far != r.ia {
		check(r.far.Close())
	}
}

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

// failure is the panic by which check and must end a measurement. The command line makes
// it the program's error.
type failure struct{ error }

// recovered sets err to the failure by which the caller's calls have ended.
func recovered(err *error) {
	switch why := recover().(type) {
	case nil:
	case failure:
		*err = why.error
	default:
		panic(why)
	}
}

// check ends the measurement on an error: a benchmark that half works measures nothing.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must2[T, U any](v T, _ U, err error) T { return must(v, err) }
