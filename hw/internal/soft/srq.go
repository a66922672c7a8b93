package soft

import (
	"sync"

	"godat/hw"
)

// SRQ is a shared receive queue: a ring that any goroutine fills. A connection that
// needs a receive takes the first, under the lock.
type SRQ struct {
	// Immutable.
	dev      *Device
	zone     *Zone
	segments int
	onLow    func()
	posted   func()

	// Mu guards the fields below and those that a provider adds. It is a leaf: its
	// holder takes no other lock.
	Mu         sync.Mutex
	slots      []hw.RecvWR
	mask       uint64
	depth      uint64
	head, tail uint64 // the receives in the queue are those from head up to tail
	low        uint64 // the watermark; 0 when it is not armed
	users      int    // number of queue pairs attached
	closed     bool
}

// NewSRQ makes a shared receive queue.
func (d *Device) NewSRQ(cfg hw.SRQConfig) (hw.SRQ, error) {
	q := new(SRQ)
	return q, q.Open(d, cfg, nil)
}

// Open makes the zero SRQ ready for use. PostRecv calls posted, which may be nil, after
// each post and without the lock. Open fails with INVALID_PARAMETER if a value is
// beyond the device's limits.
func (q *SRQ) Open(d *Device, cfg hw.SRQConfig, posted func()) error {
	const op = "NewSRQ"
	a := &d.cfg.Attr
	if cfg.Depth < 1 || cfg.Depth > a.MaxSRQDepth || cfg.Segments < 0 || cfg.Segments > a.MaxSRQSegments {
		return d.Errorf(op, hw.InvalidParameter, hw.Arg1, "depth %d, %d segments", cfg.Depth, cfg.Segments)
	}
	z, err := d.UseZone(op, cfg.Zone)
	if err != nil {
		return err
	}
	if err := d.Use(op, SRQs); err != nil {
		z.Unuse()
		return err
	}
	n := RingLen(cfg.Depth)
	q.dev, q.zone, q.segments, q.onLow, q.posted = d, z, cfg.Segments, cfg.OnLow, posted
	q.slots, q.mask, q.depth = make([]hw.RecvWR, n), uint64(n-1), uint64(cfg.Depth)
	return nil
}

// Attach counts one more queue pair that takes from the queue. The queue must be of
// the queue pair's device d and zone z, because the memory of its receives is checked
// as that of the queue pair's own receives would be.
func (q *SRQ) Attach(op string, d *Device, z *Zone) error {
	if q == nil || q.dev != d {
		return d.Errorf(op, hw.InvalidHandle, hw.HandleSRQ, "not a shared receive queue of this device")
	}
	if q.zone != z {
		return d.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the shared receive queue is of another zone")
	}
	if err := q.lock(op); err != nil {
		return err
	}
	defer q.Mu.Unlock()
	q.users++
	return nil
}

// Detach counts one queue pair less. On a nil SRQ it does nothing.
func (q *SRQ) Detach() {
	if q != nil {
		q.Mu.Lock()
		q.users--
		q.Mu.Unlock()
	}
}

// lock takes the lock of a queue that is not closed.
func (q *SRQ) lock(op string) error {
	q.Mu.Lock()
	if q.closed {
		q.Mu.Unlock()
		return q.dev.Errorf(op, hw.InvalidHandle, hw.HandleSRQ, "the shared receive queue is closed")
	}
	return nil
}

// PostRecv appends receives.
func (q *SRQ) PostRecv(wrs []hw.RecvWR) (int, error) {
	const op = "SRQ.PostRecv"
	if err := q.lock(op); err != nil {
		return 0, err
	}
	n, depth := 0, q.depth
	for n < len(wrs) && q.tail-q.head != depth && len(wrs[n].SGL) <= q.segments {
		q.slots[q.tail&q.mask] = wrs[n]
		q.tail++
		n++
	}
	q.Mu.Unlock()
	if q.posted != nil {
		q.posted()
	}
	switch {
	case n == len(wrs):
		return n, nil
	case len(wrs[n].SGL) > q.segments:
		return n, q.dev.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%d segments of %d", len(wrs[n].SGL), q.segments)
	}
	return n, q.dev.Errorf(op, hw.InsufficientResources, hw.ResourceCredits, "the queue of %d is full", depth)
}

// Left is the number of receives in the queue. The lock is held.
func (q *SRQ) Left() uint64 { return q.tail - q.head }

// Pop takes the first receive. The queue is not empty, and the lock is held. If low is
// true, the caller calls [SRQ.Low] once it has released the lock.
func (q *SRQ) Pop(to *hw.RecvWR) (low bool) {
	slot := &q.slots[q.head&q.mask]
	*to = *slot
	slot.SGL = nil
	q.head++
	return q.isLow()
}

// isLow reports whether the queue is below the watermark, and disarms it then. The
// lock is held.
func (q *SRQ) isLow() bool {
	low := q.Left() < q.low
	if low {
		q.low = 0
	}
	return low
}

// Low tells the owner that few receives are left.
func (q *SRQ) Low() {
	if q.onLow != nil {
		q.onLow()
	}
}

// Take takes the first receive and reports whether there was one.
func (q *SRQ) Take(to *hw.RecvWR) bool {
	q.Mu.Lock()
	if q.Left() == 0 {
		q.Mu.Unlock()
		return false
	}
	low := q.Pop(to)
	q.Mu.Unlock()
	if low {
		q.Low()
	}
	return true
}

// Arm sets the watermark. If fewer receives than that are in the queue already, Arm
// calls OnLow before it returns.
func (q *SRQ) Arm(limit int) error {
	const op = "SRQ.Arm"
	if err := q.lock(op); err != nil {
		return err
	}
	if depth := q.depth; limit < 0 || uint64(limit) > depth {
		q.Mu.Unlock()
		return q.dev.Errorf(op, hw.InvalidParameter, hw.Arg1, "%d of %d", limit, depth)
	}
	q.low = uint64(limit)
	low := q.isLow()
	q.Mu.Unlock()
	if low {
		q.Low()
	}
	return nil
}

// Resize changes the depth. It fails with INVALID_STATE when more receives than
// that are in the queue.
func (q *SRQ) Resize(depth int) error {
	const op = "SRQ.Resize"
	if depth < 1 || depth > q.dev.cfg.Attr.MaxSRQDepth {
		return q.dev.Errorf(op, hw.InvalidParameter, hw.Arg1, "depth %d", depth)
	}
	n := RingLen(depth)
	slots := make([]hw.RecvWR, n)
	if err := q.lock(op); err != nil {
		return err
	}
	defer q.Mu.Unlock()
	if left := q.Left(); left > uint64(depth) {
		return q.dev.Errorf(op, hw.InvalidState, hw.StateSRQOperational, "%d receives are in the queue", left)
	}
	mask := uint64(n - 1)
	for i := q.head; i != q.tail; i++ {
		slots[i&mask] = q.slots[i&q.mask]
	}
	q.slots, q.mask, q.depth = slots, mask, uint64(depth)
	return nil
}

// Available implements [hw.SRQCounter].
func (q *SRQ) Available() int {
	q.Mu.Lock()
	defer q.Mu.Unlock()
	return int(q.Left())
}

// Close frees the queue with the receives that are left in it. It fails with
// SRQ_IN_USE while a queue pair is attached.
func (q *SRQ) Close() error {
	const op = "SRQ.Close"
	if q == nil {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleSRQ, "no shared receive queue")
	}
	if err := q.lock(op); err != nil {
		return err
	}
	if n := q.users; n > 0 {
		q.Mu.Unlock()
		return q.dev.Errorf(op, hw.InvalidState, hw.StateSRQInUse, "%d queue pairs take from it", n)
	}
	q.closed, q.slots = true, nil
	q.Mu.Unlock()
	q.dev.Unuse(SRQs)
	q.zone.Unuse()
	return nil
}
