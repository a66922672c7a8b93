package fault

import (
	"slices"
	"sync"
	"sync/atomic"

	"godat/hw"
)

// device wraps a device. The methods that it doesn't override are the inner device's, so
// zones and regions are not wrapped.
type device struct {
	hw.Device // the inner one
	fault     *Provider
	attr      hw.Attr
	async     func(hw.AsyncEvent)
	polled    hw.Polled // the inner one's; nil when it is not polled
	worker    worker

	mu   sync.Mutex
	srqs []*sharedQueue
	cqs  []*completionQueue
	turn int // where the next poll begins
	// polling says that the poller is inside Poll. Before it returns, it finds the
	// completions that other goroutines add meanwhile.
	polling bool

	// By index; closed ones are nil. Each change stores a new slice, so that a
	// completion finds its queue pair without a lock.
	qps atomic.Pointer[[]*queuePair]
}

// Unwrap returns the inner device.
func (d *device) Unwrap() hw.Device { return d.Device }

// dress returns the device with the optional interfaces of the inner one, and no others.
func (d *device) dress() hw.Device {
	p, isPolled := d.Device.(hw.Polled)
	s, isShared := d.Device.(hw.SharedReceiver)
	b, isBinder := d.Device.(hw.Binder)
	withPolled, withShared, withBinder := polled{p, d}, shared{d, s}, binder{d, b}
	d.polled = p
	switch {
	case isPolled && isShared && isBinder:
		return struct {
			*device
			polled
			shared
			binder
		}{d, withPolled, withShared, withBinder}
	case isPolled && isShared:
		return struct {
			*device
			polled
			shared
		}{d, withPolled, withShared}
	case isPolled && isBinder:
		return struct {
			*device
			polled
			binder
		}{d, withPolled, withBinder}
	case isShared && isBinder:
		return struct {
			*device
			shared
			binder
		}{d, withShared, withBinder}
	case isPolled:
		return struct {
			*device
			polled
		}{d, withPolled}
	case isShared:
		return struct {
			*device
			shared
		}{d, withShared}
	case isBinder:
		return struct {
			*device
			binder
		}{d, withBinder}
	}
	return d
}

// Close implements [hw.Device].
func (d *device) Close() error {
	if err := d.Device.Close(); err != nil {
		return err
	}
	d.worker.close()
	return nil
}

// Progress implements [hw.Progresser]. It does nothing if the inner device is none.
func (d *device) Progress() {
	if p, ok := d.Device.(hw.Progresser); ok {
		p.Progress()
	}
}

// Register implements [hw.Device].
func (d *device) Register(zone hw.Zone, mem []byte, priv hw.Privileges) (hw.MR, error) {
	if err := d.fault.call(FailRegister, "fault.Register", hw.ResourceMemoryRegion); err != nil {
		return nil, err
	}
	return d.Device.Register(zone, mem, priv)
}

// Listen implements [hw.Device].
func (d *device) Listen(cfg hw.ListenConfig) (hw.Listener, error) {
	if take := cfg.OnRequest; take != nil {
		cfg.OnRequest = func(r hw.Request) bool { return take(&request{Request: r}) }
	}
	return d.Device.Listen(cfg)
}

// request wraps a request, so that Accept takes a wrapped queue pair.
type request struct{ hw.Request }

// Accept implements [hw.Request].
func (r *request) Accept(qp hw.QP, private []byte) error {
	q, ok := qp.(*queuePair)
	if !ok {
		return r.Request.Accept(qp, private)
	}
	q.calls.Lock()
	defer q.calls.Unlock()
	return r.Request.Accept(q.inner, private)
}

// Local implements [hw.Pairer]. It fails if the inner device is none, as Pair does.
func (d *device) Local(qp hw.QP) (hw.PairAddr, error) {
	p, ok := d.Device.(hw.Pairer)
	q, mine := qp.(*queuePair)
	if !ok || !mine {
		return hw.PairAddr{}, noPairs("fault.Local")
	}
	q.calls.Lock()
	defer q.calls.Unlock()
	return p.Local(q.inner)
}

// Pair implements [hw.Pairer].
func (d *device) Pair(qp hw.QP, peer hw.PairAddr) error {
	p, ok := d.Device.(hw.Pairer)
	q, mine := qp.(*queuePair)
	if !ok || !mine {
		return noPairs("fault.Pair")
	}
	q.calls.Lock()
	defer q.calls.Unlock()
	return p.Pair(q.inner, peer)
}

func noPairs(op string) error {
	return hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "the device can't pair queue pairs")
}

// binder implements [hw.Binder] for a wrapped device. It does not wrap windows.
type binder struct {
	d     *device
	inner hw.Binder
}

// NewWindow implements [hw.Binder].
func (b binder) NewWindow(zone hw.Zone, qp hw.QP) (hw.Window, error) {
	if q, ok := qp.(*queuePair); ok {
		qp = q.inner
	}
	return b.inner.NewWindow(zone, qp)
}

// onAsync passes an event on, with the wrapper in place of the inner object.
func (d *device) onAsync(ev hw.AsyncEvent) {
	d.mu.Lock()
	for _, q := range d.queuePairs() {
		if q != nil && q.inner == ev.QP {
			ev.QP = q
		}
	}
	for _, c := range d.cqs {
		if c.CQ == ev.CQ {
			ev.CQ = c
		}
	}
	for _, s := range d.srqs {
		if s.SRQ == ev.SRQ {
			ev.SRQ = s.self
		}
	}
	d.mu.Unlock()
	d.async(ev)
}

func (d *device) queuePairs() []*queuePair {
	if p := d.qps.Load(); p != nil {
		return *p
	}
	return nil
}

// An id that the inner device gets is kind | index | number, where the index is that of
// a queue pair.
const (
	idKindShift  = 62
	idIndexShift = 32
	idIndexMask  = 1<<30 - 1

	idSend = uint64(sending)
	idRecv = uint64(receiving)
	idSRQ  = 2
	idEnd  = 3 // the number is the direction
)

func makeID(kind uint64, index int, number uint32) uint64 {
	return kind<<idKindShift | uint64(index)<<idIndexShift | uint64(number)
}

// NewQP implements [hw.Device].
func (d *device) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	if err := d.fault.call(FailNewQP, "fault.NewQP", hw.ResourceTEP); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	qps := slices.Clone(d.queuePairs())
	q := &queuePair{dev: d, cfg: cfg, index: slices.Index(qps, nil), number: uint64(d.fault.qps.Add(1))}
	if q.index < 0 {
		q.index, qps = len(qps), append(qps, nil)
	}
	inner, err := d.Device.NewQP(q.innerConfig())
	if err != nil {
		return nil, err
	}
	q.inner = inner
	qps[q.index] = q
	d.qps.Store(&qps)
	return q, nil
}

// forget frees the index of a closed queue pair.
func (d *device) forget(q *queuePair) {
	d.mu.Lock()
	defer d.mu.Unlock()
	qps := slices.Clone(d.queuePairs())
	qps[q.index] = nil
	d.qps.Store(&qps)
}
