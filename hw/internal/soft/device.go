package soft

import (
	"sync"
	"sync/atomic"

	"godat/hw"
)

// Config says what kind of device it is.
type Config struct {
	Provider string // begins the operation of every error
	// Attr has the limits.
	Attr hw.Attr
	// Split gives regions a remote key of their own, so that a peer knows none
	// that is good for local use.
	Split bool
	// Grace waits until all that was in progress when it was called has stopped
	// or moved on, and looks keys up again: those that died before are dead.
	Grace func()
}

// Device is what is open on a device. Its methods may be called from any
// goroutine.
type Device struct {
	// Immutable.
	cfg  Config
	Keys Table

	mu     sync.Mutex
	closed bool
	counts [kinds]int
	asked  map[*Request]struct{} // handed out and not answered

	// bindMu guards what windows are bound to. It is a leaf but for the table's.
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

// Init makes the device, which is zero.
func (d *Device) Init(cfg Config) {
	entries := cfg.Attr.MaxMRs + 2*cfg.Attr.MaxWindows
	if cfg.Split {
		entries += cfg.Attr.MaxMRs
	}
	d.cfg = cfg
	d.Keys.init(entries)
	d.asked = make(map[*Request]struct{})
}

// Attr reports the limits.
func (d *Device) Attr() hw.Attr { return d.cfg.Attr }

// errorf is hw.Errorf for an operation of the provider's.
func (d *Device) errorf(op string, typ hw.Type, sub hw.Subtype, format string, args ...any) error {
	return hw.Errorf(d.cfg.Provider+"."+op, typ, sub, format, args...)
}

// limit is how many there may be of a kind, and what is short when there are.
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
		return d.errorf(op, hw.InvalidHandle, hw.HandleIA, "the device is closed")
	}
	if d.counts[k] == limit {
		return d.errorf(op, hw.InsufficientResources, sub, "all %d are in use", limit)
	}
	d.counts[k]++
	return nil
}

// Unuse counts one less.
func (d *Device) Unuse(k Kind) {
	d.mu.Lock()
	d.counts[k]--
	d.mu.Unlock()
}

// End closes the device: nothing can be made on it any more, and connection
// requests that were handed out and not answered are refused. It fails with
// IA_IN_USE while a zone, region, queue pair or listener lives.
func (d *Device) End() error {
	const op = "Close"
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return d.errorf(op, hw.InvalidHandle, hw.HandleIA, "the device is closed")
	}
	if c := &d.counts; c[QPs]+c[Zones]+c[Listeners] > 0 {
		qps, zones, listeners := c[QPs], c[Zones], c[Listeners]
		d.mu.Unlock()
		return d.errorf(op, hw.InvalidState, hw.StateIAInUse,
			"%d queue pairs, %d zones and %d listeners", qps, zones, listeners)
	}
	d.closed = true
	asked := d.asked
	d.asked = nil
	d.mu.Unlock()
	for r := range asked {
		if r.answered.CompareAndSwap(false, true) {
			r.refuse()
		}
	}
	return nil
}

// Request is the part of a connection request that says who answers it: whoever
// takes it, or the device when it ends.
type Request struct {
	// Immutable after Pend.
	dev    *Device
	refuse func()

	answered atomic.Bool
}

// Pend enters a request that is about to be handed out, with what the device does
// to one that nobody answers; false when the device is closed.
func (r *Request) Pend(d *Device, refuse func()) bool {
	r.dev, r.refuse = d, refuse
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.asked[r] = struct{}{}
	return true
}

// Take makes the caller the one who answers; false if somebody else is.
func (r *Request) Take() bool {
	if !r.answered.CompareAndSwap(false, true) {
		return false
	}
	r.dev.mu.Lock()
	delete(r.dev.asked, r)
	r.dev.mu.Unlock()
	return true
}
