package ep

import (
	"math"
	"slices"

	"godat/evd"
	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
	"godat/mem"
)

// SRQState is a shared receive queue's state: DAT_SRQ_STATE, with DAT 2.0's numbers.
type SRQState uint8

// The states of a shared receive queue.
const (
	SRQError       SRQState = 0 // the device gave the queue up; Close still works
	SRQOperational SRQState = 1
)

// Unknown is a count that the device can't tell: DAT_VALUE_UNKNOWN.
const Unknown = -2

// SRQParam describes a shared receive queue: DAT_SRQ_PARAM.
type SRQParam struct {
	State        SRQState
	PZ           *mem.PZ
	MaxRecvDTOs  int
	MaxRecvIOV   int
	LowWatermark int // what SetLowWatermark was last given
	Available    int // receives that no endpoint has taken, or Unknown
	Outstanding  int // receives posted whose completion has not been delivered
}

// Query describes the shared receive queue. It answers to dat_srq_query.
func (q *SRQ) Query() (SRQParam, error) {
	const op = "ep.SRQ.Query"
	if q == nil || q.adapter == nil {
		return SRQParam{}, deadSRQ(op)
	}
	available := Unknown
	if counter, ok := q.hw.(hw.SRQCounter); ok {
		available = counter.Available()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return SRQParam{}, deadSRQ(op)
	}
	state := SRQOperational
	if q.failed {
		state = SRQError
	}
	return SRQParam{
		State: state, PZ: q.pz, MaxRecvDTOs: q.depth, MaxRecvIOV: q.iov,
		LowWatermark: int(q.lw.Load()), Available: available, Outstanding: q.used,
	}, nil
}

// Home returns the adapter. Package runtime calls it.
func (q *SRQ) Home(door.Key) (ia any, err error) {
	if _, err := q.Query(); err != nil {
		return nil, err
	}
	return q.adapter.cfg.IA, nil
}

// Resize changes how many receives may be outstanding. If more are, it is
// INVALID_STATE/SRQ_OPERATIONAL. On a device with completion queues, a queue with endpoints can't
// outgrow what their completion queues were made for: that is INSUFFICIENT_RESOURCES/TEVD.
// It answers to dat_srq_resize.
func (q *SRQ) Resize(maxRecvDTOs int) error {
	const op = "ep.SRQ.Resize"
	if q == nil || q.adapter == nil {
		return deadSRQ(op)
	}
	if limit := min(q.adapter.attr.MaxSRQDepth, maxDepth); maxRecvDTOs < 1 || maxRecvDTOs > limit {
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "%d receives; this device allows 1 to %d", maxRecvDTOs, limit)
	}
	q.ctl.Lock()
	defer q.ctl.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return deadSRQ(op)
	case q.failed:
		return wrap(op, errFailedSRQ)
	case q.used > maxRecvDTOs:
		return hw.Errorf(op, hw.InvalidState, hw.StateSRQOperational, "%d receives are outstanding", q.used)
	case maxRecvDTOs > q.cqRoom:
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEVD, "the endpoints were made for %d receives", q.cqRoom)
	}
	// Under the lock, so that no post sees only the device's queue resized.
	if err := q.hw.Resize(maxRecvDTOs); err != nil {
		return wrap(op, err)
	}
	q.depth = maxRecvDTOs
	if maxRecvDTOs > len(q.slots) {
		q.grow(maxRecvDTOs)
	}
	return nil
}

// SetLowWatermark asks for one asynchronous event when fewer than that many
// receives are left that no endpoint has taken; the event comes at once if fewer
// are left already. 0 withdraws the request. The event has number
// ASYNC_ERROR_EP_BROKEN, as DAT has no other, the queue as its source, and reason
// SRQLowWatermark.
// It answers to dat_srq_set_lw.
func (q *SRQ) SetLowWatermark(receives int) error {
	const op = "ep.SRQ.SetLowWatermark"
	if q == nil || q.adapter == nil {
		return deadSRQ(op)
	}
	q.ctl.Lock()
	defer q.ctl.Unlock()
	q.mu.Lock()
	failed := q.failed
	q.mu.Unlock()
	switch { // only calls that hold ctl write what is read here
	case q.closed:
		return deadSRQ(op)
	case failed:
		return wrap(op, errFailedSRQ)
	case receives < 0 || receives > q.depth:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "%d receives; the queue allows %d", receives, q.depth)
	}
	was := q.lw.Swap(int64(receives))
	err := q.hw.Arm(receives)
	if err != nil {
		q.lw.Store(was)
	}
	return wrap(op, err)
}

// reportLow delivers the event; the device calls it.
func (q *SRQ) reportLow() { wiring(q.adapter.cfg.Async).PutAsync(&q.low) }

// Close frees the queue. It drops receives that no endpoint has taken, without a
// completion. While an endpoint is attached it is INVALID_STATE/SRQ_IN_USE and has
// no effect. Closing a closed queue does nothing.
// It answers to dat_srq_free.
func (q *SRQ) Close() error {
	const op = "ep.SRQ.Close"
	if q == nil || q.adapter == nil {
		return deadSRQ(op)
	}
	q.ctl.Lock()
	defer q.ctl.Unlock()
	q.mu.Lock()
	users, closed := q.users, q.closed
	q.closed = closed || users == 0
	q.mu.Unlock()
	switch {
	case closed:
		return nil
	case users > 0:
		return hw.Errorf(op, hw.InvalidState, hw.StateSRQInUse, "%d endpoints take from it", users)
	}
	if err := q.hw.Close(); err != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.closed = false
		return wrap(op, err)
	}
	q.zone.Unuse()
	q.adapter.counters.srqsFreed.whole.Add(1)
	q.adapter.srqs.remove(q.hw) // last: an adapter's close that no longer sees the queue must find it closed, and counted
	return nil
}

// fail records that the device gave the queue up.
func (q *SRQ) fail() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed = true
}

// attach counts an endpoint that completes to d, and reserves room there for the outstanding
// receives. The endpoint may take all that there can be, so room is the queue's depth.
func (q *SRQ) attach(d *evd.Dispatcher) (f *feed, room int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, 0, errDeadSRQ
	}
	if f, err = q.feedOf(d); err != nil {
		return nil, 0, err
	}
	f.users++
	q.users++
	if q.adapter.cfg.CQs != nil {
		q.cqRoom = min(q.cqRoom, q.depth)
	}
	return f, q.depth, nil
}

// feedOf returns the feed of a dispatcher, and makes it if there is none. The caller holds mu.
func (q *SRQ) feedOf(d *evd.Dispatcher) (*feed, error) {
	if i := slices.IndexFunc(q.feeds, func(f *feed) bool { return f.d == d }); i >= 0 {
		return q.feeds[i], nil
	}
	f := &feed{srq: q, d: d, to: make([]*delivery.Queue, len(q.slots))}
	for i := range q.slots {
		if q.slots[i].busy && !f.reserve(i, q.slots[i].cookie) {
			f.releaseAll()
			return nil, errNoEventRoom
		}
	}
	q.feeds = append(q.feeds, f)
	return f, nil
}

// detach undoes one attach. The endpoint has completed all that it took.
func (q *SRQ) detach(f *feed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.users--; q.users == 0 {
		q.cqRoom = math.MaxInt
	}
	if f.users--; f.users > 0 {
		return
	}
	f.releaseAll()
	q.feeds = slices.DeleteFunc(q.feeds, func(other *feed) bool { return other == f })
}

func (f *feed) releaseAll() {
	for i := range f.to {
		f.release(i)
	}
}
