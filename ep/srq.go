package ep

import (
	"sync"
	"sync/atomic"

	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
	"godat/internal/memory"
	"godat/mem"
)

// SRQ is a shared receive queue: any of its endpoints may take its receives, in the order posted. A
// receive completes on the receive dispatcher of the endpoint that took it, which is the event's
// source; so across endpoints completions come in any order. A receive that no endpoint has taken
// stays when one closes. Its methods may be called from any goroutine. It answers to DAT_SRQ_HANDLE.
//
// [godat/runtime.IA.NewSRQ] makes one, and [Config] names it. Close fails while an endpoint takes from it.
type SRQ struct {
	// Immutable after NewSRQ.
	adapter *srqRegistry
	number  uint64
	pz      *mem.PZ
	zone    *memory.Zone // the pz's
	hw      hw.SRQ
	iov     int // segments of a receive
	low     delivery.AsyncNode

	// ctl lets one call at a time change the queue; posts do not take it. Its holder writes lw.
	ctl sync.Mutex
	lw  atomic.Int64

	// mu guards the fields below. Its holder makes no call on hw.SRQ except Resize,
	// which takes no lock of an endpoint.
	mu     sync.Mutex
	slots  []sharedSlot
	wrs    []hw.RecvWR // one for each slot
	sges   []hw.SGE    // iov of them for each slot
	free   []uint32    // numbers of free slots; the one freed last is on top
	feeds  []*feed
	depth  int // the most receives outstanding
	used   int // receives outstanding
	users  int // endpoints that take from the queue
	cqRoom int // receives for which every endpoint's completion queue has room, on a polled device
	failed bool
	closed bool
}

// srqRegistry has the shared receive queues of an adapter.
type srqRegistry struct {
	base
	srqs table[hw.SRQ, *SRQ]
}

// sharedSlot is the slot of a receive; busy from the post to the completion.
type sharedSlot struct {
	cookie uint64
	busy   bool
}

// feed is a dispatcher that a shared queue's completions may go to. Nobody knows which endpoint will
// take a receive, so PostRecv reserves room in each feed, and the completion gives back the rest.
type feed struct {
	srq   *SRQ              // immutable, as d
	d     *evd.Dispatcher   // nil: completions are dropped
	users int               // endpoints that complete to d
	to    []*delivery.Queue // by slot: the queue in which room is reserved
}

// SRQOf returns the shared receive queue that an asynchronous error is about, or nil.
func SRQOf(ev event.Event) *SRQ {
	q, _ := ev.Source.(*SRQ)
	return q
}

// grow extends the queue to n slots. Outstanding receives keep their segment arrays.
func (q *SRQ) grow(n int) {
	had := len(q.slots)
	q.slots = append(make([]sharedSlot, 0, n), q.slots...)[:n]
	q.wrs = append(make([]hw.RecvWR, 0, n), q.wrs...)[:n]
	q.sges = make([]hw.SGE, n*q.iov)
	q.free = append(make([]uint32, 0, n), q.free...)
	for i := n - 1; i >= had; i-- {
		q.wrs[i].ID = uint64(kindShared)<<kindPos | uint64(i)
		q.free = append(q.free, uint32(i))
	}
	for _, f := range q.feeds {
		f.to = append(make([]*delivery.Queue, 0, n), f.to...)[:n]
	}
}

// PostRecv posts a buffer for one message to any of the queue's endpoints. It
// returns at once and allocates nothing. nil means that the buffer waits until an
// endpoint takes it, and that one completion follows then; an error means that
// nothing has happened. The segments are of the queue's zone and need LocalWrite.
//
// If as many receives are outstanding as the queue allows, the error is
// INSUFFICIENT_RESOURCES/SRQ; if one of the endpoints' dispatchers has no room for
// the completion, INSUFFICIENT_RESOURCES/TEVD.
// It answers to dat_srq_post_recv.
func (q *SRQ) PostRecv(cookie uint64, segments ...mem.Segment) error {
	const op = "ep.SRQ.PostRecv"
	if q == nil {
		return deadSRQ(op)
	}
	slot, err := q.admit(cookie, segments)
	if err != nil {
		return wrap(op, err)
	}
	if _, err := q.hw.PostRecv(slot); err != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.retire(slot[0].ID&slotMask, nil)
		return wrap(op, err)
	}
	return nil
}

// admit checks a receive, reserves room for its completion in every feed, and gives it a slot.
func (q *SRQ) admit(cookie uint64, segments []mem.Segment) ([]hw.RecvWR, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, errDeadSRQ
	case q.failed:
		return nil, errFailedSRQ
	case len(segments) > q.iov:
		return nil, hw.Errorf("", hw.InvalidParameter, hw.NoSubtype, "%d segments; the queue allows %d", len(segments), q.iov)
	case q.used >= q.depth:
		return nil, errFullSRQ
	}
	i := int(q.free[len(q.free)-1])
	sges := q.sges[i*q.iov : (i+1)*q.iov : (i+1)*q.iov]
	if _, err := q.zone.Resolve(line.SGEsOf(sges, segments), hw.LocalWrite); err != nil {
		return nil, err
	}
	for n, f := range q.feeds {
		if !f.reserve(i, cookie) {
			for _, done := range q.feeds[:n] {
				done.release(i)
			}
			return nil, errNoEventRoom
		}
	}
	q.free = q.free[:len(q.free)-1]
	q.used++
	q.slots[i] = sharedSlot{cookie: cookie, busy: true}
	q.wrs[i].SGL = sges[:len(segments)]
	return q.wrs[i : i+1 : i+1], nil
}

// retire frees the slot of a receive that has ended, and gives back the room in all feeds but taker.
// It returns the cookie, and the queue of taker that gets the completion. The caller holds mu.
func (q *SRQ) retire(slot uint64, taker *feed) (cookie uint64, to *delivery.Queue) {
	for _, f := range q.feeds {
		if f == taker {
			to = f.to[slot]
			f.to[slot] = nil
		} else {
			f.release(int(slot))
		}
	}
	s := &q.slots[slot]
	cookie = s.cookie
	s.busy = false
	q.free = append(q.free, uint32(slot))
	q.used--
	return cookie, to
}

// Take implements [line.Shared] for the endpoints that complete to d.
func (f *feed) Take(id uint64) (cookie uint64, to *delivery.Queue) {
	f.srq.mu.Lock()
	defer f.srq.mu.Unlock()
	return f.srq.retire(id&slotMask, f)
}

func (f *feed) reserve(slot int, cookie uint64) bool {
	if f.d == nil {
		return true
	}
	to := wiring(f.d).For(cookie)
	if !to.Reserve(1) {
		return false
	}
	f.to[slot] = to
	return true
}

func (f *feed) release(slot int) {
	if to := f.to[slot]; to != nil {
		f.to[slot] = nil
		to.Release(1)
	}
}

var (
	errNoEventRoom = &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceTEVD, Text: "the dispatcher has no room for the completion"}

	errDeadSRQ   = &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleSRQ, Text: "the shared receive queue is nil or closed"}
	errFailedSRQ = &hw.Error{Type: hw.InvalidState, Sub: hw.StateSRQError, Text: "the device gave the shared receive queue up"}
	errFullSRQ   = &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceSRQ, Text: "as many receives are outstanding as the shared queue allows"}
)

func deadSRQ(op string) error { return wrap(op, errDeadSRQ) }
