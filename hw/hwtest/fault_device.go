package hwtest

import (
	"sync"
	"sync/atomic"

	"godat/hw"
)

// faultDevice wraps a device. What it doesn't override is the inner device's:
// zones and regions are handed out as they are.
type faultDevice struct {
	hw.Device // the inner one
	fault     *Fault
	attr      hw.Attr
	async     func(hw.AsyncEvent)
	polled    hw.Polled // the inner one's; nil when it is not polled
	worker    faultWorker

	mu   sync.Mutex
	srqs []*faultSRQ // by index; closed ones are nil
	cqs  []*faultCQ
	turn int // where the next poll begins
	// polling says that the poller is inside Poll. What is added meanwhile it finds
	// before it returns.
	polling bool

	// By index; closed ones are nil. Replaced as a whole, so that a completion
	// finds its queue pair without a lock.
	qps atomic.Pointer[[]*faultQP]
}

// Unwrap is the inner device.
func (d *faultDevice) Unwrap() hw.Device { return d.Device }

// dress gives the device the optional interfaces of the inner one, and no other.
func (d *faultDevice) dress() hw.Device {
	p, isPolled := d.Device.(hw.Polled)
	s, isShared := d.Device.(hw.SharedReceiver)
	b, isBinder := d.Device.(hw.Binder)
	polled, shared, binder := faultPolled{d}, faultShared{d, s}, faultBinder{d, b}
	d.polled = p
	switch {
	case isPolled && isShared && isBinder:
		return struct {
			*faultDevice
			faultPolled
			faultShared
			faultBinder
		}{d, polled, shared, binder}
	case isPolled && isShared:
		return struct {
			*faultDevice
			faultPolled
			faultShared
		}{d, polled, shared}
	case isPolled && isBinder:
		return struct {
			*faultDevice
			faultPolled
			faultBinder
		}{d, polled, binder}
	case isShared && isBinder:
		return struct {
			*faultDevice
			faultShared
			faultBinder
		}{d, shared, binder}
	case isPolled:
		return struct {
			*faultDevice
			faultPolled
		}{d, polled}
	case isShared:
		return struct {
			*faultDevice
			faultShared
		}{d, shared}
	case isBinder:
		return struct {
			*faultDevice
			faultBinder
		}{d, binder}
	}
	return d
}

// Close implements [hw.Device].
func (d *faultDevice) Close() error {
	if err := d.Device.Close(); err != nil {
		return err
	}
	d.worker.close()
	return nil
}

// Register implements [hw.Device].
func (d *faultDevice) Register(zone hw.Zone, mem []byte, priv hw.Privileges) (hw.MR, error) {
	if err := d.fault.call(FailRegister, "fault.Register", hw.ResourceMemoryRegion); err != nil {
		return nil, err
	}
	return d.Device.Register(zone, mem, priv)
}

// Listen implements [hw.Device].
func (d *faultDevice) Listen(cfg hw.ListenConfig) (hw.Listener, error) {
	if take := cfg.OnRequest; take != nil {
		cfg.OnRequest = func(r hw.Request) bool { return take(&faultRequest{Request: r}) }
	}
	return d.Device.Listen(cfg)
}

// faultRequest is a request that is accepted with a wrapped queue pair.
type faultRequest struct{ hw.Request }

// Accept implements [hw.Request].
func (r *faultRequest) Accept(qp hw.QP, private []byte) error {
	q, ok := qp.(*faultQP)
	if !ok {
		return r.Request.Accept(qp, private)
	}
	q.calls.Lock()
	defer q.calls.Unlock()
	return r.Request.Accept(q.inner, private)
}

// faultBinder hands windows on.
type faultBinder struct {
	d     *faultDevice
	inner hw.Binder
}

// NewWindow implements [hw.Binder].
func (b faultBinder) NewWindow(zone hw.Zone, qp hw.QP) (hw.Window, error) {
	if q, ok := qp.(*faultQP); ok {
		qp = q.inner
	}
	return b.inner.NewWindow(zone, qp)
}

// onAsync names the wrapped objects instead of the inner ones.
func (d *faultDevice) onAsync(ev hw.AsyncEvent) {
	if ev.QP != nil {
		for _, q := range d.queuePairs() {
			if q != nil && q.inner == ev.QP {
				ev.QP = q
				break
			}
		}
	}
	d.mu.Lock()
	if ev.CQ != nil {
		for _, c := range d.cqs {
			if c.CQ == ev.CQ {
				ev.CQ = c
				break
			}
		}
	}
	if ev.SRQ != nil {
		for _, s := range d.srqs {
			if s != nil && s.SRQ == ev.SRQ {
				ev.SRQ = s
				break
			}
		}
	}
	d.mu.Unlock()
	d.async(ev)
}

func (d *faultDevice) queuePairs() []*faultQP {
	if p := d.qps.Load(); p != nil {
		return *p
	}
	return nil
}

// An id given to the inner device is kind | index | number, where the index is
// a queue pair's, or a shared receive queue's.
const (
	faultKindShift  = 62
	faultIndexShift = 32
	faultIndexMask  = 1<<30 - 1

	faultIDSend = uint64(sendQueue)
	faultIDRecv = uint64(recvQueue)
	faultIDSRQ  = 2
	faultIDEnd  = 3 // the number is the queue
)

func faultID(kind uint64, index int, number uint32) uint64 {
	return kind<<faultKindShift | uint64(index)<<faultIndexShift | uint64(number)
}

// NewQP implements [hw.Device].
func (d *faultDevice) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	if err := d.fault.call(FailNewQP, "fault.NewQP", hw.ResourceTEP); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	qps := append([]*faultQP(nil), d.queuePairs()...)
	q := &faultQP{dev: d, cfg: cfg, index: len(qps), who: uint64(d.fault.qps.Add(1))}
	for i, o := range qps {
		if o == nil {
			q.index = i
			break
		}
	}
	inner, err := d.Device.NewQP(q.innerConfig())
	if err != nil {
		return nil, err
	}
	q.inner = inner
	if q.index == len(qps) {
		qps = append(qps, q)
	} else {
		qps[q.index] = q
	}
	d.qps.Store(&qps)
	return q, nil
}

// forget frees a queue pair's index.
func (d *faultDevice) forget(q *faultQP) {
	d.mu.Lock()
	defer d.mu.Unlock()
	qps := append([]*faultQP(nil), d.queuePairs()...)
	qps[q.index] = nil
	d.qps.Store(&qps)
}
