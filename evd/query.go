package evd

import (
	"godat/hw"
	"godat/hw/event"
)

// Field is a set of a dispatcher's parameters: DAT_EVD_PARAM_MASK.
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

// Param is DAT_EVD_PARAM. Fields that the mask of Query does not name are zero.
type Param struct {
	IA      any // the adapter it was made on, a *runtime.IA; nil for none
	QLen    int // events it holds; in ModeChannel 80 more than asked for
	State   State
	CNO     *CNO // nil for none
	Streams event.Streams
}

// Query returns the parameters that mask names. An unknown bit is
// INVALID_PARAMETER. DAT: dat_evd_query.
func (d *Dispatcher) Query(mask Field) (Param, error) {
	const op = "evd.Query"
	if d.closed() {
		return Param{}, invalidHandle(op)
	}
	if mask&^FieldAll != 0 {
		return Param{}, hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "mask %#x", uint32(mask))
	}
	var p Param
	d.mu.Lock()
	defer d.mu.Unlock()
	fill(mask&FieldIA, &p.IA, d.ia)
	fill(mask&FieldQLen, &p.QLen, d.inner.QLen())
	fill(mask&FieldState, &p.State, d.state())
	fill(mask&FieldCNO, &p.CNO, d.cno.Load())
	fill(mask&FieldStreams, &p.Streams, d.inner.Streams())
	return p, nil
}

// fill sets a parameter if the mask names it.
func fill[M ~uint32, T any](asked M, dst *T, v T) {
	if asked != 0 {
		*dst = v
	}
}

// state packs the three sub-states. The caller holds mu.
func (d *Dispatcher) state() State {
	s := StateEnabled
	if d.disabled {
		s = StateDisabled
	}
	if d.inner.Consumer().Unwaitable() {
		s |= StateUnwaitable
	} else {
		s |= StateWaitable
	}
	return s | State(d.inner.Feeds().Config())<<configShift
}

// Resize changes the queue's length to qlen events. It keeps all events and their
// order. It fails with INVALID_STATE when more than qlen events are queued, with
// EVD_WAITER when a goroutine is in Wait for more than qlen events, and with
// INSUFFICIENT_RESOURCES above Config.MaxLen, whose documentation says which modes
// can grow. DAT: dat_evd_resize.
func (d *Dispatcher) Resize(qlen int) error {
	if !d.isMade() {
		return invalidHandle("evd.Resize")
	}
	return d.inner.Resize(qlen)
}
