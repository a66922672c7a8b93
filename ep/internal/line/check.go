package line

import (
	"errors"
	"math"

	"godat/hw"
	"godat/internal/memory"
)

// check is stage 1: it is [Rules.check] in the present state. It refuses the connection's own cookies to a post
// of the program, and names the state that it has looked at.
func (b *Mailbox) check(r *Rules, w *work) (lkey uint32, err error) {
	if w.cookie>>63 != 0 && b.reserves && !w.own {
		return 0, hw.Errorf(CallOf(w.op), hw.InvalidParameter, hw.NoSubtype,
			"cookie %#x: those whose highest bit is set are the connection's own", w.cookie)
	}
	s := b.State()
	if lkey, err = r.check(w, s.Phase()); err == errNotIn {
		err = b.cold.owner.NotIn(CallOf(w.op), s)
	}
	return lkey, err
}

// errNotIn is of a post that is refused for the state alone.
var errNotIn = errors.New("line: the state is another")

// check returns the error that a post of w gets at once in that phase. It has no effect. It
// looks up the key of a single segment on the way; fill looks up those of several again.
func (r *Rules) check(w *work, in Phase) (lkey uint32, err error) {
	if (uint32(w.flags)|always)&r.illegal[w.op&31] != 0 || len(w.segs) > r.IOV || r.admits>>in&1 == 0 {
		return r.checkSlow(w, in)
	}
	o := &operations[w.op&31]
	var total uint64
	if w.single() {
		var ok bool
		if lkey, ok = r.Zone.LKey((*memory.Segment)(&w.segs[0]), o.local); !ok {
			_, err = r.checkMany(w, o)
			return 0, err
		}
		total = uint64(w.segs[0].Len)
	} else if total, err = r.checkMany(w, o); err != nil {
		return 0, err
	}
	if w.op == hw.OpRecv || !o.special && total <= r.MaxMessage {
		return lkey, nil
	}
	return lkey, r.checkSize(w, o, total)
}

// checkSlow is check for a post that check's first test set aside. Most such posts
// are wrong; the rest are receives in phase Bare.
func (r *Rules) checkSlow(w *work, in Phase) (lkey uint32, err error) {
	if err := r.whyNot(w, in); err != nil {
		return 0, err
	}
	if _, err := r.checkMany(w, &operations[w.op&31]); err != nil {
		return 0, err
	}
	if w.single() {
		lkey, _ = r.Zone.LKey((*memory.Segment)(&w.segs[0]), hw.NoPrivileges)
	}
	return lkey, nil
}

// checkSize checks that the lengths fit each other and the endpoint's limits.
func (r *Rules) checkSize(w *work, o *operation, total uint64) error {
	switch {
	case o.rdma:
		return r.checkRDMA(w, total)
	case o.atomic && (total != atomicSize || w.remote.Len != atomicSize):
		return hw.Errorf(o.call, hw.LengthError, hw.NoSubtype, "%d bytes here, %d at the peer; an atomic has 8", total, w.remote.Len)
	case !o.atomic && total > r.MaxMessage:
		return tooLong(o.call, total, r.MaxMessage)
	}
	return nil
}

// whyNot says why w can't be posted in that phase, which the endpoint may have left by now. It
// tests first what a caller should mend first. It returns nil for a receive of an endpoint that
// was made for a request and has a zone.
func (r *Rules) whyNot(w *work, in Phase) error {
	call := CallOf(w.op)
	switch {
	case int(w.op) >= len(operations) || operations[w.op].call == "":
		return hw.Errorf(call, hw.InvalidParameter, hw.NoSubtype, "operation %v can't be posted", w.op)
	case !postable(r.Dev.Ops).Has(w.op):
		return hw.Errorf(call, hw.ModelNotSupported, hw.NoSubtype, "%v on %s", w.op, r.Dev.Device)
	case r.Shared && in != Gone:
		return &hw.Error{Op: call, Type: hw.InvalidState, Sub: hw.StateSRQInUse, Text: "receives come from the shared queue"}
	case uint32(w.flags)&r.illegal[w.op] != 0:
		return hw.Errorf(call, hw.InvalidParameter, hw.NoSubtype, "%s", badFlags(w.op, w.flags&hw.Flags(r.illegal[w.op])))
	case len(w.segs) > r.IOV:
		return hw.Errorf(call, hw.InvalidParameter, hw.NoSubtype, "%d segments; the endpoint allows %d", len(w.segs), r.IOV)
	case in == Bare && w.op == hw.OpRecv:
		if r.PZ != nil {
			return nil
		}
		return &hw.Error{Op: call, Type: hw.InvalidState, Sub: hw.StateEPPZ, Text: "the endpoint has no protection zone yet"}
	}
	return errNotIn
}

// checkMany checks any number of segments and adds up their lengths.
func (r *Rules) checkMany(w *work, o *operation) (total uint64, err error) {
	const some = 8
	var sges [some]hw.SGE
	for segs := w.segs; len(segs) > 0; {
		n := min(len(segs), some)
		part, fail := r.Zone.Resolve(SGEsOf(sges[:], segs[:n]), o.local)
		if fail != nil {
			return 0, Wrap(o.call, fail)
		}
		total += part
		segs = segs[n:]
	}
	return total, nil
}

// checkRDMA compares the lengths of both sides. A read moves as many bytes as the peer's
// segment has, a write as many as the local ones.
func (r *Rules) checkRDMA(w *work, local uint64) error {
	remote, moved := uint64(w.remote.Len), local
	fits, iov := local <= remote, r.WriteIOV
	if w.op == hw.OpRead || w.op == hw.OpReadToRMR {
		fits, moved, iov = remote <= local, remote, r.ReadIOV
	}
	switch {
	case len(w.segs) > iov:
		return hw.Errorf(CallOf(w.op), hw.InvalidParameter, hw.NoSubtype, "%d segments; the endpoint allows %d", len(w.segs), iov)
	case w.remote.Addr == math.MaxUint64 && moved > 0: // what LMR.Remote returns for a range out of bounds
		return hw.Errorf(CallOf(w.op), hw.LengthError, hw.NoSubtype, "the remote segment names a range that was not within its region (see LMR.Remote)")
	case !fits:
		return hw.Errorf(CallOf(w.op), hw.LengthError, hw.NoSubtype, "%d bytes here, %d at the peer: make the segments of one length", local, remote)
	case moved > r.MaxRDMA:
		return tooLong(CallOf(w.op), moved, r.MaxRDMA)
	}
	return nil
}

func tooLong(op string, n, most uint64) error {
	return hw.Errorf(op, hw.LengthError, hw.NoSubtype, "%d bytes; the endpoint allows %d", n, most)
}
