package soft

import (
	"math"
	"sync"

	"godat/hw"
)

// Config describes a provider's device.
type Config struct {
	Provider string // begins the operation of every error
	// Attr holds the device's limits.
	Attr hw.Attr
	// Split gives each region a second key for remote access, so that no key that a
	// peer knows is good for local access.
	Split bool
}

// Device records the state of a provider's device: the numbers of objects open on it,
// the keys, and the requests without an answer. Its methods may be called from any
// goroutine.
type Device struct {
	// Immutable.
	cfg  Config
	Keys Table

	mu     sync.Mutex
	closed bool
	counts [kinds]int
	asked  map[*Request]struct{} // handed out and not answered; nil once the device is closed

	answers sync.WaitGroup // under way; none begins once the device is closed

	// bindMu guards which regions windows are bound to. Its holder takes no other lock
	// but the table's.
	bindMu sync.Mutex
}

// Kind is a kind of object that a device counts.
type Kind uint8

// The kinds. Zones count their regions themselves.
const (
	QPs Kind = iota
	Zones
	Listeners
	SRQs
	Windows
	kinds
)

// Common completes a device's attributes with what all software devices have in common. MaxCQs
// and MaxCQDepth mean nothing, because such a device delivers completions by itself.
func Common(a hw.Attr) hw.Attr {
	a.Vendor, a.Hardware, a.Firmware = "godat", [2]int{1, 0}, [2]int{1, 0}
	a.MaxQPs, a.MaxZones, a.MaxSRQs, a.MaxMRs, a.MaxWindows = 1<<16, 1<<16, 1<<16, 1<<20, 1<<18
	a.MaxDepth, a.MaxSRQDepth = 1<<14, 1<<16
	a.MaxCQs, a.MaxCQDepth = math.MaxInt32, math.MaxInt32
	a.MaxRecvSegments, a.MaxReadSegments, a.MaxSRQSegments = a.MaxSendSegments, a.MaxSendSegments, a.MaxSendSegments
	a.MaxMessage, a.MaxRDMA, a.MaxMR = MaxMessage, MaxMessage, 1<<40
	a.Alignment, a.ZeroBased = CacheLine, true
	return a
}

// MaxMessage is the most bytes of a message or an RDMA operation.
const MaxMessage = 1 << 31

// Init initializes a zero Device.
func (d *Device) Init(cfg Config) {
	entries := cfg.Attr.MaxMRs + 2*cfg.Attr.MaxWindows
	if cfg.Split {
		entries += cfg.Attr.MaxMRs
	}
	d.cfg = cfg
	d.Keys.slots.Init(entries)
	d.asked = make(map[*Request]struct{})
}

// Attr reports the limits.
func (d *Device) Attr() hw.Attr { return d.cfg.Attr }

// Errorf is hw.Errorf with the provider's name before op.
func (d *Device) Errorf(op string, typ hw.Type, sub hw.Subtype, format string, args ...any) error {
	return hw.Errorf(d.cfg.Provider+"."+op, typ, sub, format, args...)
}

// limit returns the most objects of a kind, and the subtype of the error beyond that.
func (d *Device) limit(k Kind) (int, hw.Subtype) {
	a := &d.cfg.Attr
	return [kinds]int{a.MaxQPs, a.MaxZones, a.MaxQPs, a.MaxSRQs, a.MaxWindows}[k],
		[kinds]hw.Subtype{
			hw.ResourceTEP, hw.ResourceProtectionDomain, hw.ResourceDevice, hw.ResourceSRQ, hw.ResourceMemoryRegion,
		}[k]
}

// Use counts one more object of a kind, within its limit.
func (d *Device) Use(op string, k Kind) error {
	limit, sub := d.limit(k)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the device is closed")
	}
	if d.counts[k] == limit {
		return d.Errorf(op, hw.InsufficientResources, sub, "all %d are in use", limit)
	}
	d.counts[k]++
	return nil
}

// Unuse counts one object of a kind less.
func (d *Device) Unuse(k Kind) {
	d.mu.Lock()
	d.counts[k]--
	d.mu.Unlock()
}

// End closes the device: nothing can be made on it any more. It refuses the
// connection requests that were handed out and not answered, and waits for answers that are under
// way. It fails with IA_IN_USE while a zone, region, queue pair or listener is open.
func (d *Device) End() error {
	const op = "Close"
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return d.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the device is closed")
	}
	if c := &d.counts; c[QPs]+c[Zones]+c[Listeners] > 0 {
		qps, zones, listeners := c[QPs], c[Zones], c[Listeners]
		d.mu.Unlock()
		return d.Errorf(op, hw.InvalidState, hw.StateIAInUse,
			"%d queue pairs, %d zones and %d listeners", qps, zones, listeners)
	}
	d.closed = true
	asked := d.asked
	d.asked = nil
	d.mu.Unlock()
	for r := range asked {
		r.refuse()
	}
	d.answers.Wait()
	return nil
}

// Request is the part of a connection request that decides who answers it: the first
// caller of take, or the device at its End.
type Request struct {
	// Immutable after Offer.
	dev    *Device
	refuse func()
}

// Offer hands a request to the program by hand, which reports whether the program took it.
// The device calls refuse if the request has no answer when the device ends. Offer
// reports whether the provider is to decline the request.
func (r *Request) Offer(d *Device, refuse func(), hand func() bool) (declined bool) {
	r.dev, r.refuse = d, refuse
	d.mu.Lock()
	open := !d.closed
	if open {
		d.asked[r] = struct{}{}
	}
	d.mu.Unlock()
	switch {
	case !open:
		return true
	case hand() || !r.take():
		return false
	}
	d.answers.Done() // the listener's, for which its Close waits
	return true
}

// answer is take for the program, with an error for a request that has been answered.
func (r *Request) answer(op string) error {
	if !r.take() {
		return r.dev.Errorf(op, hw.InvalidHandle, hw.HandleCR, "the request has been answered")
	}
	return nil
}

// Accept begins the attempt of the queue pair with which the program answers the request; nil
// if that is none of the provider's. If it fails it calls decline, unless the request has been
// answered.
func (r *Request) Accept(q *QP, private []byte, decline func()) error {
	const op = "Accept"
	if err := r.answer(op); err != nil {
		return err
	}
	defer r.dev.answers.Done()
	err := r.dev.CheckPrivate(op, hw.Arg2, private)
	if q == nil || q.dev != r.dev || q.closed.Load() {
		err = r.dev.Errorf(op, hw.InvalidHandle, hw.HandleEP, "not a queue pair of the listener's device")
	}
	if err == nil {
		err = q.life.Attempt(op)
	}
	if err != nil {
		decline()
	}
	return err
}

// Reject calls reject for a request that has no answer, without the private data if there is
// too much.
func (r *Request) Reject(private []byte, reject func(private []byte)) error {
	const op = "Reject"
	if err := r.answer(op); err != nil {
		return err
	}
	defer r.dev.answers.Done()
	err := r.dev.CheckPrivate(op, hw.Arg1, private)
	if err != nil {
		private = nil
	}
	reject(private)
	return err
}

// take reports whether the caller is the one to answer the request: it returns true to
// the first caller only, and to none once the device has ended. The device's End waits until that
// caller calls answers.Done.
func (r *Request) take() bool {
	d := r.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, asked := d.asked[r]; !asked {
		return false
	}
	delete(d.asked, r)
	d.answers.Add(1)
	return true
}
