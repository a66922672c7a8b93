package ep

import (
	"godat/hw"
)

// check says what a post of w returns at once. It has no effect. The key of a
// single segment is looked up on the way; those of more are checked here and
// looked up again when they have a slot.
func (e *Endpoint) check(q *queue, w *work) (lkey uint32, err error) {
	state := e.state.Load()
	if (uint32(w.flags)|always)&e.illegal[w.op&31] != 0 || len(w.segs) > q.iov || q.admits>>state&1 == 0 {
		return 0, e.whyNot(q, w, State(state))
	}
	o := &operations[w.op&31]
	var total uint64
	if w.single() {
		var ok bool
		if lkey, ok = e.pz.LKey(&w.segs[0], o.local); !ok {
			_, err = e.checkMany(w, o)
			return 0, err
		}
		total = uint64(w.segs[0].Len)
	} else if total, err = e.checkMany(w, o); err != nil {
		return 0, err
	}
	if w.op == hw.OpRecv || !o.special && total <= e.attr.MaxMessageSize {
		return lkey, nil
	}
	return lkey, e.checkSize(w, o, total)
}

// checkSize wants lengths that go together and are not too long.
func (e *Endpoint) checkSize(w *work, o *operation, total uint64) error {
	switch {
	case o.rdma:
		return e.checkRDMA(w, total)
	case o.atomic:
		return checkAtomic(w, total)
	case total > e.attr.MaxMessageSize:
		return tooLong(o.call, total, e.attr.MaxMessageSize)
	}
	return nil
}

// whyNot says why w can't be posted in that state, in the order of what a caller
// should mend first. The state may be another one by now.
func (e *Endpoint) whyNot(q *queue, w *work, state State) error {
	call := callOf(w.op)
	switch {
	case int(w.op) >= len(operations) || operations[w.op].call == "":
		return hw.Errorf(call, hw.InvalidParameter, hw.NoSubtype, "operation %v can't be posted", w.op)
	case !postable(e.adapter.attr.Ops).Has(w.op):
		return hw.Errorf(call, hw.ModelNotSupported, hw.NoSubtype, "%v on %s", w.op, e.adapter.attr.Device)
	case q.srq != nil && state != closed:
		return &hw.Error{Op: call, Type: hw.InvalidState, Sub: hw.StateSRQInUse, Text: "receives come from the shared queue"}
	case uint32(w.flags)&e.illegal[w.op] != 0:
		return hw.Errorf(call, hw.InvalidParameter, hw.NoSubtype, "completion flags %#x", uint16(w.flags))
	case len(w.segs) > q.iov:
		return hw.Errorf(call, hw.InvalidParameter, hw.NoSubtype, "%d segments; the endpoint allows %d", len(w.segs), q.iov)
	}
	return stateError(call, state)
}

// checkMany checks any number of segments and adds up their lengths.
func (e *Endpoint) checkMany(w *work, o *operation) (total uint64, err error) {
	const some = 8
	var sges [some]hw.SGE
	for segs := w.segs; len(segs) > 0; {
		n := min(len(segs), some)
		part, fail := e.pz.Resolve(sges[:], segs[:n], o.local)
		if fail != nil {
			return 0, wrap(o.call, fail)
		}
		total += part
		segs = segs[n:]
	}
	return total, nil
}

// checkRDMA compares both sides' lengths. A read moves as much as the peer's side
// has, a write as much as this one.
func (e *Endpoint) checkRDMA(w *work, local uint64) error {
	remote, moved := uint64(w.remote.Len), local
	fits := local <= remote
	if w.op == hw.OpRead {
		fits, moved = remote <= local, remote
	}
	switch {
	case !fits:
		return hw.Errorf(callOf(w.op), hw.LengthError, hw.NoSubtype, "%d bytes here, %d at the peer", local, remote)
	case moved > e.attr.MaxRDMASize:
		return tooLong(callOf(w.op), moved, e.attr.MaxRDMASize)
	}
	return nil
}

func tooLong(op string, n, most uint64) error {
	return hw.Errorf(op, hw.LengthError, hw.NoSubtype, "%d bytes; the endpoint allows %d", n, most)
}

func nilEndpoint(op hw.Op) error {
	return &hw.Error{Op: callOf(op), Type: hw.InvalidHandle, Sub: hw.HandleEP, Text: "the endpoint is nil"}
}
