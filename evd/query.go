package evd

import (
	"godat/hw/event"
	"godat/internal/door"
)

// Param describes a dispatcher: DAT_EVD_PARAM.
type Param struct {
	QLen    int // events it holds; in ModeChannel 80 more than asked for
	State   State
	CNO     *CNO // nil for none
	Streams event.Streams
}

// Query describes the dispatcher. It answers to dat_evd_query.
func (d *Dispatcher) Query() (Param, error) {
	if d.closed() {
		return Param{}, invalidHandle("evd.Query")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return Param{QLen: d.inner.QLen(), State: d.state(), CNO: d.cno.Load(), Streams: d.inner.Streams()}, nil
}

// Home returns the adapter; nil for none. Package runtime calls it.
func (d *Dispatcher) Home(door.Key) (ia any, err error) {
	if d.closed() {
		return nil, invalidHandle("runtime.IAOf")
	}
	return d.ia, nil
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
