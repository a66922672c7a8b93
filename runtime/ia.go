package runtime

import (
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
	"godat/mem"
	"godat/runtime/internal/polling"
)

// IA is an interface adapter: an open device, and the parent of all that is made
// on it. Its methods may be called from any goroutine. It answers to
// DAT_IA_HANDLE.
type IA struct {
	// Immutable after Open.
	name    string
	dev     hw.Device
	attr    hw.Attr
	log     *zap.Logger
	release func() // returns the provider to the registry
	pool    *pool
	async   *asyncErrors
	polling *polling.Engine // nil unless the device is polled
	adapter *ep.Adapter
	domain  *mem.Domain
	// hookTime is how long the work of a connection waits for a hook of the program's.
	hookTime time.Duration

	// progress lets a consumer do the device's work; nil unless the device is a
	// hw.Progresser. Immutable after Open.
	progress func(delivery.PollHint)

	gate    gate
	closing sync.Mutex // held while the adapter is torn down
	gone    bool       // guarded by closing: everything is closed

	dials   atomic.Uint64 // connections that this side has begun
	reports reports
	lists   lists
	hooks   callers
}

func (ia *IA) init(name string, dev hw.Device, cfg *config, p *pool, async *asyncErrors) {
	attr := dev.Attr()
	attr.MaxMRs = min(attr.MaxMRs, mem.MaxRegions)
	*ia = IA{
		name: name, dev: dev, attr: attr, log: cfg.log.Named("ia").With(zap.String("ia", name)),
		pool: p, async: async, gate: gate{down: make(chan struct{})}, hookTime: hookTime,
	}
}

// Name is the name the adapter was opened by.
func (ia *IA) Name() string {
	if ia == nil {
		return ""
	}
	return ia.name
}

// Attr says what the adapter can do; datapi.md has DAT's name of each attribute, and the answer of those that
// have but one. It is zero for a nil adapter. With [IA.Async] it answers to dat_ia_query; [IAOf] tells whether
// the adapter is open.
func (ia *IA) Attr() hw.Attr {
	if ia == nil {
		return hw.Attr{}
	}
	return ia.attr
}

// MemoryStats says what memory the adapter has: its zones, regions and windows that are
// not freed, and what is mapped. It is zero for a nil adapter.
func (ia *IA) MemoryStats() mem.Stats {
	if ia == nil {
		return mem.Stats{}
	}
	return ia.domain.Stats()
}

// Async is the dispatcher of asynchronous errors of the device and of objects: the
// adapter's own, or the one that [WithAsync] gave, which may be nil. It can't be closed
// before the adapter. It answers to the asynchronous EVD of dat_ia_open.
func (ia *IA) Async() *evd.Dispatcher {
	if ia == nil || ia.isZero() {
		return nil
	}
	return ia.async.to
}

// NewPZ makes a protection zone. It may block. A closed adapter is INVALID_HANDLE/IA,
// here and in the other methods that make something. It answers to dat_pz_create.
func (ia *IA) NewPZ() (*mem.PZ, error) {
	return whileOpen(ia, "runtime.NewPZ", func() (*mem.PZ, error) { return ia.domain.NewPZ() })
}

// SyncRDMARead makes what the program stored to the segments visible to peers' RDMA
// reads. No device here needs it (DAT's lmr_sync_req is false), so it only checks the
// segments, which may be of several regions and zones: a context that names no live
// region is INVALID_HANDLE/LMR, a range outside its region INVALID_PARAMETER. It
// answers to dat_lmr_sync_rdma_read.
func (ia *IA) SyncRDMARead(segments ...mem.Segment) error {
	return syncRDMA(ia, "SyncRDMARead", segments)
}

// SyncRDMAWrite makes what peers wrote to the segments visible to the program. Like
// SyncRDMARead it only checks the segments: a completion that tells of the data orders
// it. It answers to dat_lmr_sync_rdma_write.
func (ia *IA) SyncRDMAWrite(segments ...mem.Segment) error {
	return syncRDMA(ia, "SyncRDMAWrite", segments)
}

func syncRDMA(ia *IA, call string, segments []mem.Segment) error {
	if err := ia.enter("runtime." + call); err != nil {
		return err
	}
	defer ia.gate.RUnlock()
	return ia.domain.Sync("mem."+call, segments...)
}

// NewDispatcher makes an event dispatcher. Its callbacks, if it has any, run in
// the adapter's pool. Errors are those of [evd.New].
// It answers to dat_evd_create.
func (ia *IA) NewDispatcher(cfg evd.Config) (*evd.Dispatcher, error) {
	return ia.newDispatcher(cfg, func(*delivery.Dispatcher) {})
}

// newDispatcher is NewDispatcher of one that complete completes before the adapter lists it:
// the adapter's close may come at any time from then on.
func (ia *IA) newDispatcher(cfg evd.Config, complete func(d *delivery.Dispatcher)) (*evd.Dispatcher, error) {
	if err := ia.enter("runtime.NewDispatcher"); err != nil {
		return nil, err
	}
	defer ia.gate.RUnlock()
	switch {
	case cfg.Async == nil && cfg.Overcommit:
		cfg.Async = ia.async.to
	case cfg.Async != nil && cfg.Async != ia.async.to && !wiring(cfg.Async).Serves(ia):
		return nil, hw.Errorf("runtime.NewDispatcher", hw.InvalidHandle, hw.HandleEVDAsync, "the dispatcher of evd.Config.Async is another adapter's")
	}
	cfg.On(door.Key{}, ia, ia.pool.upcall)
	d, err := evd.New(cfg)
	if err != nil {
		return nil, err
	}
	if ia.progress != nil {
		wiring(d).Help(ia.progress)
	}
	wiring(d).OnExit(func() { ia.exited("a dispatcher's callback", d) })
	complete(wiring(d))
	ia.lists.mu.Lock()
	defer ia.lists.mu.Unlock()
	ia.lists.dispatchers.add(d)
	return d, nil
}

// NewCNO makes a consumer notification object, on which a program waits for many
// dispatchers at once. Its agents run in the adapter's pool of upcalls. Errors are those of [evd.NewCNO]. It answers to dat_cno_create and
// dat_cno_fd_create.
func (ia *IA) NewCNO(cfg evd.CNOConfig) (*evd.CNO, error) {
	if err := ia.enter("runtime.NewCNO"); err != nil {
		return nil, err
	}
	defer ia.gate.RUnlock()
	cfg.On(door.Key{}, ia, ia.pool.upcall)
	c, err := evd.NewCNO(cfg)
	if err != nil {
		return nil, err
	}
	c.OnExit(door.Key{}, func() { ia.exited("a CNO's agent", c) })
	ia.lists.mu.Lock()
	defer ia.lists.mu.Unlock()
	ia.lists.cnos.add(c)
	return c, nil
}

// NewEndpoint makes an endpoint in state UNCONNECTED. It may block. Errors are
// those of [ep.Adapter.NewEndpoint]. It answers to dat_ep_create and
// dat_ep_create_with_srq.
func (ia *IA) NewEndpoint(cfg ep.Config) (*ep.Endpoint, error) {
	return whileOpen(ia, "runtime.NewEndpoint", func() (*ep.Endpoint, error) { return ia.adapter.NewEndpoint(cfg) })
}

// NewSRQ makes a shared receive queue for endpoints of the zone: receives of so many segments. 0 takes the
// default, 16 and 4, or what the device has. It may block.
// Errors are those of [ep.Adapter.NewSRQ]. It answers to dat_srq_create.
func (ia *IA) NewSRQ(pz *mem.PZ, receives, segments int) (*ep.SRQ, error) {
	return whileOpen(ia, "runtime.NewSRQ", func() (*ep.SRQ, error) { return ia.adapter.NewSRQ(pz, receives, segments) })
}

// NewPSP makes a public service point, whose connection requests are events. It
// may block. Errors are those of [ep.Adapter.NewPSP]. It answers to
// dat_psp_create and dat_psp_create_any.
func (ia *IA) NewPSP(cfg ep.PSPConfig) (*ep.PSP, error) {
	return whileOpen(ia, "runtime.NewPSP", func() (*ep.PSP, error) { return ia.adapter.NewPSP(cfg) })
}

// NewRSP makes a reserved service point, which takes one connection request for one
// endpoint. It may block. Errors are those of [ep.Adapter.NewRSP]. It answers to
// dat_rsp_create.
func (ia *IA) NewRSP(cfg ep.RSPConfig) (*ep.RSP, error) {
	return whileOpen(ia, "runtime.NewRSP", func() (*ep.RSP, error) { return ia.adapter.NewRSP(cfg) })
}

// NewCSP makes a common service point, which listens at an address as sockets do. It
// may block. Errors are those of [ep.Adapter.NewCSP]. It answers to dat_csp_create.
func (ia *IA) NewCSP(cfg ep.CSPConfig) (*ep.CSP, error) {
	return whileOpen(ia, "runtime.NewCSP", func() (*ep.CSP, error) { return ia.adapter.NewCSP(cfg) })
}

// enter begins a call that must not run on a closed adapter: it takes gate shared. The
// caller ends the call with gate.RUnlock.
func (ia *IA) enter(op string) error {
	if ia == nil || ia.isZero() {
		return closedIA(op)
	}
	ia.gate.RLock()
	if ia.gate.closed {
		ia.gate.RUnlock()
		return closedIA(op)
	}
	return nil
}

// isZero reports whether Open has not made the adapter.
func (ia *IA) isZero() bool { return ia.gate.down == nil }

// whileOpen does what must not be done on a closed adapter.
func whileOpen[T any](ia *IA, op string, do func() (T, error)) (made T, err error) {
	if err := ia.enter(op); err != nil {
		return made, err
	}
	defer ia.gate.RUnlock()
	return do()
}
