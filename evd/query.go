package evd

import "godat/hw"

// Field is a set of parameters, DAT_EVD_PARAM_MASK.
type Field uint32

// The parameters.
const (
	FieldIA      Field = 0x01
	FieldQLen    Field = 0x02
	FieldState   Field = 0x04
	FieldCNO     Field = 0x08
	FieldStreams Field = 0x10
	FieldAll     Field = 0x1f
)

// Param is DAT_EVD_PARAM. What was not asked for is zero.
type Param struct {
	IA      any // the adapter it was made on, a *runtime.IA; nil for none
	QLen    int // events it holds; in ModeChannel 80 more than asked for
	State   State
	CNO     *CNO // nil for none
	Streams Streams
}

// Query reports the parameters that mask names. An unknown one is
// INVALID_PARAMETER. DAT: dat_evd_query.
func (d *Dispatcher) Query(mask Field) (Param, error) {
	const op = "evd.Query"
	if d == nil || d.main.closed() {
		return Param{}, invalidHandle(op)
	}
	if mask&^FieldAll != 0 {
		return Param{}, hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "mask %#x", uint32(mask))
	}
	var p Param
	d.mu.Lock()
	defer d.mu.Unlock()
	if mask&FieldIA != 0 {
		p.IA = d.ia
	}
	if mask&FieldQLen != 0 {
		p.QLen = d.qlen()
	}
	if mask&FieldState != 0 {
		p.State = d.state()
	}
	if mask&FieldCNO != 0 {
		p.CNO = d.cno.Load()
	}
	if mask&FieldStreams != 0 {
		p.Streams = d.streams
	}
	return p, nil
}

// state packs the three sub-states. mu is held.
func (d *Dispatcher) state() State {
	s := StateEnabled
	if d.disabled {
		s = StateDisabled
	}
	if d.main.parked.Load()&unwaitableBit != 0 {
		return s | StateUnwaitable | d.feeds.config()
	}
	return s | StateWaitable | d.feeds.config()
}

// qlen is the length of the queue: what posts are admitted against.
func (d *Dispatcher) qlen() int { return int(d.main.limit.Load()) }

// Resize changes the length. It keeps all events and their order. It fails with
// INVALID_STATE when more events are queued, with EVD_WAITER when somebody is in
// Wait until there are more, and with INSUFFICIENT_RESOURCES above
// Config.MaxLen, which see for what can grow. DAT: dat_evd_resize.
func (d *Dispatcher) Resize(qlen int) error {
	const op = "evd.Resize"
	switch {
	case d == nil || d.main.closed():
		return invalidHandle(op)
	case qlen < 1:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "queue length %d", qlen)
	case qlen > d.maxLen:
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEVD, "queue length %d, made for at most %d", qlen, d.maxLen)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.main.queuedNow(); n > qlen {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "%d events are queued", n)
	}
	if d.expected > qlen {
		return hw.Errorf(op, hw.InvalidState, hw.StateEVDWaiter, "somebody waits for %d events", d.expected)
	}
	limit := uint64(qlen)
	switch d.main.kind {
	case kindChannel:
		limit += slack
	case kindRing, kindCallback:
		d.main.ring.grow(qlen) // before the limit: see rings
	default:
	}
	d.main.limit.Store(limit)
	return nil
}

// expect says for how many events somebody waits, from which on Resize leaves room
// for them. It fails when it was faster.
func (d *Dispatcher) expect(threshold int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if threshold > d.qlen() {
		return errThreshold
	}
	d.expected = threshold
	return nil
}

// expectNone takes expect back.
func (d *Dispatcher) expectNone() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expected = 0
}

// queuedNow counts the events that the consumer has not got, for people and for
// Resize: it may be out of date at once.
func (q *Queue) queuedNow() int {
	switch q.kind {
	case kindRing, kindCallback:
		head := q.cons.Load() >> consShift
		return int(q.ring.Tail() - head)
	case kindChannel:
		return len(q.ch) + int(q.held.Load())
	case kindBatch:
		return q.batches.queued()
	default:
		return 0
	}
}

// Full reports whether every place is reserved or has an event in it. It looks
// afresh only if it seems so.
func (q *Queue) Full() bool {
	limit := q.limit.Load()
	return q.reserved.Load()-q.seen.Load() >= limit && q.reserved.Load()-q.freed(q.done.Load()) >= limit
}
