package loop

import (
	"sync"

	"godat/hw"
	"godat/internal/yield"
)

// sharedQueue is a shared receive queue. A pipe whose send needs a receive takes
// the first, one at a time; the others stay where they are, whatever becomes of
// the connection.
//
// A pipe that finds none is put in line by the same hold of the lock that found
// none, so whoever posts next sees it. A post calls the first in line for as many
// receives as there are: one called has a claim to a receive, and its kick comes
// after the lock was let go. Who was not called takes nothing while others wait,
// so a busy connection can't starve one that came before. A pipe that breaks, or
// has nothing more to send, gives its claim back.
type sharedQueue struct {
	// Immutable.
	dev      *device
	zone     *zone
	segments int
	onLow    func()

	// mu is a leaf: taken while a pipe is held, holds nothing else.
	mu          sync.Mutex
	slots       []hw.RecvWR
	mask        uint64
	depth       uint64
	head, tail  uint64 // those in between are there to be taken
	claims      uint64 // how many of them are for pipes that were called
	first, last *pipe  // the line
	low         uint64 // the watermark; 0 when it is not armed
	users       int    // queue pairs
	closed      bool
}

// place is where a pipe stands with its shared queue.
type place uint8

const (
	outside place = iota
	inLine
	called
)

// NewSRQ makes a shared receive queue. A value beyond the device's limits is an
// INVALID_PARAMETER.
func (d *device) NewSRQ(cfg hw.SRQConfig) (hw.SRQ, error) {
	const op = "loop.NewSRQ"
	if cfg.Depth < 1 || cfg.Depth > maxSRQDepth || cfg.Segments < 0 || cfg.Segments > maxSegments {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "depth %d, %d segments", cfg.Depth, cfg.Segments)
	}
	z, err := d.useZone(op, cfg.Zone)
	if err != nil {
		return nil, err
	}
	if err := d.use(op, &d.srqs, maxSRQs, hw.ResourceSRQ); err != nil {
		d.unuse(&z.users)
		return nil, err
	}
	n := ringLen(cfg.Depth)
	return &sharedQueue{
		dev: d, zone: z, segments: cfg.Segments, onLow: cfg.OnLow,
		slots: make([]hw.RecvWR, n), mask: uint64(n - 1), depth: uint64(cfg.Depth),
	}, nil
}

// useSRQ finds the device's queue behind a handle and counts one more queue pair
// that takes from it. It is of the same zone: the memory of its receives is
// checked as that of the queue pair's own would be.
func (d *device) useSRQ(op string, h hw.SRQ, z *zone) (*sharedQueue, error) {
	if h == nil {
		return nil, nil
	}
	q, ok := h.(*sharedQueue)
	if !ok || q == nil || q.dev != d {
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleSRQ, "not a shared receive queue of this device")
	}
	if q.zone != z {
		return nil, hw.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the shared receive queue is of another zone")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, q.gone(op)
	}
	q.users++
	return q, nil
}

func (q *sharedQueue) unuse() {
	if q != nil {
		q.mu.Lock()
		q.users--
		q.mu.Unlock()
	}
}

func (q *sharedQueue) gone(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleSRQ, "the shared receive queue is closed")
}

// PostRecv appends receives, and runs the pipes that wait for one.
func (q *sharedQueue) PostRecv(wrs []hw.RecvWR) (int, error) {
	const op = "loop.SRQ.PostRecv"
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return 0, q.gone(op)
	}
	n, depth := 0, q.depth
	for n < len(wrs) && q.tail-q.head != depth && len(wrs[n].SGL) <= q.segments {
		q.slots[q.tail&q.mask] = wrs[n]
		q.tail++
		n++
	}
	next := q.call()
	q.mu.Unlock()
	q.wake(next)
	switch {
	case n == len(wrs):
		return n, nil
	case len(wrs[n].SGL) > q.segments:
		return n, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%d segments of %d", len(wrs[n].SGL), q.segments)
	}
	return n, full(op, int(depth))
}

// call calls the first in line, if there is a receive for it. Who called it wakes
// it, and looks for the next, when the lock is let go.
func (q *sharedQueue) call() *pipe {
	p := q.first
	if p == nil || q.tail-q.head == q.claims {
		return nil
	}
	q.remove(p)
	p.place = called
	q.claims++
	return p
}

// wake kicks a pipe that was called, and all that can be called behind it. One
// that stands in line between two of these calls is seen by the next.
func (q *sharedQueue) wake(p *pipe) {
	for p != nil {
		yield.Point()
		p.kick()
		q.mu.Lock()
		p = q.call()
		q.mu.Unlock()
	}
}

// fetch takes the first receive for a pipe, which is held, or puts it in line.
func (q *sharedQueue) fetch(p *pipe) bool {
	q.mu.Lock()
	switch {
	case p.place == called:
		p.place = outside
		q.claims--
	case q.first == nil && q.tail-q.head > q.claims:
	default:
		if p.place == outside {
			q.add(p)
		}
		q.mu.Unlock()
		return false
	}
	p.drawn = q.slots[q.head&q.mask]
	q.head++
	low := q.tail-q.head < q.low
	if low {
		q.low = 0
	}
	q.mu.Unlock()
	if low && q.onLow != nil {
		q.onLow()
	}
	return true
}

// leave takes a pipe, which is held, out of the line; its claim is the next one's.
func (q *sharedQueue) leave(p *pipe) {
	q.mu.Lock()
	switch p.place {
	case outside:
	case inLine:
		q.remove(p)
	case called:
		q.claims--
	}
	p.place = outside
	next := q.call()
	q.mu.Unlock()
	q.wake(next)
}

func (q *sharedQueue) add(p *pipe) {
	p.place = inLine
	if p.ahead = q.last; p.ahead == nil {
		q.first = p
	} else {
		p.ahead.behind = p
	}
	q.last = p
}

func (q *sharedQueue) remove(p *pipe) {
	if p.ahead == nil {
		q.first = p.behind
	} else {
		p.ahead.behind = p.behind
	}
	if p.behind == nil {
		q.last = p.ahead
	} else {
		p.behind.ahead = p.ahead
	}
	p.ahead, p.behind = nil, nil
}

// Arm sets the watermark. With fewer receives than that already, OnLow is called
// before Arm returns.
func (q *sharedQueue) Arm(limit int) error {
	const op = "loop.SRQ.Arm"
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return q.gone(op)
	}
	if limit < 0 || uint64(limit) > q.depth {
		q.mu.Unlock()
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "%d of %d", limit, q.depth)
	}
	q.low = uint64(limit)
	low := q.tail-q.head < q.low
	if low {
		q.low = 0
	}
	q.mu.Unlock()
	if low && q.onLow != nil {
		q.onLow()
	}
	return nil
}

// Resize changes the depth. It fails with INVALID_STATE when more receives than
// that are in the queue.
func (q *sharedQueue) Resize(depth int) error {
	const op = "loop.SRQ.Resize"
	if depth < 1 || depth > maxSRQDepth {
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "depth %d", depth)
	}
	n := ringLen(depth)
	slots := make([]hw.RecvWR, n)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return q.gone(op)
	}
	if left := q.tail - q.head; left > uint64(depth) {
		return hw.Errorf(op, hw.InvalidState, hw.StateSRQOperational, "%d receives are in the queue", left)
	}
	mask := uint64(n - 1)
	for i := q.head; i != q.tail; i++ {
		slots[i&mask] = q.slots[i&q.mask]
	}
	q.slots, q.mask, q.depth = slots, mask, uint64(depth)
	return nil
}

// Available implements [hw.SRQCounter].
func (q *sharedQueue) Available() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int(q.tail - q.head)
}

// Close frees the queue with the receives that are left in it.
func (q *sharedQueue) Close() error {
	const op = "loop.SRQ.Close"
	if q == nil {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleSRQ, "no shared receive queue")
	}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return q.gone(op)
	}
	if n := q.users; n > 0 {
		q.mu.Unlock()
		return hw.Errorf(op, hw.InvalidState, hw.StateSRQInUse, "%d queue pairs take from it", n)
	}
	q.closed, q.slots = true, nil
	q.mu.Unlock()
	q.dev.unuse(&q.dev.srqs)
	q.dev.unuse(&q.zone.users)
	return nil
}

// The pipe's side of it.

// ready reports whether there is a receive for the send that the pipe is at. One
// from a shared queue is taken then.
func (p *pipe) ready() bool { return p.available() || p.srq != nil && p.fetch() }

func (p *pipe) fetch() bool {
	if !p.hasDrawn {
		p.hasDrawn = p.srq.fetch(p)
		p.lined = !p.hasDrawn
	}
	return p.hasDrawn
}

// leaveLine gives up what fetch has asked for.
func (p *pipe) leaveLine() {
	if p.lined {
		p.lined = false
		p.srq.leave(p)
	}
}
