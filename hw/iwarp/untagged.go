package iwarp

import (
	"encoding/binary"
	"math"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// control takes the messages that carry no payload to memory.
func (l *life) control(h *wire.Header, b []byte) error {
	if h.Opcode.Extension() && !l.agreed.extended {
		return wire.ErrOpcode
	}
	switch h.Opcode {
	case wire.OpReadRequest:
		return l.readRequest(h, b)
	case wire.OpAtomicRequest:
		return l.atomicRequest(h, b)
	case wire.OpAtomicResponse:
		return l.atomicResponse(h, b)
	case wire.OpTerminate:
		return l.terminated(b)
	default:
		return l.immediate(h, b)
	}
}

// taken is the receive of the message at hand.
func (l *life) taken() *hw.RecvWR {
	if l.qp.srq != nil {
		return &l.rx.drawn
	}
	return &l.rq.slots[l.rx.head&l.rq.mask]
}

// take finds a receive for a new message.
func (l *life) take() bool {
	if srq := l.qp.srq; srq != nil {
		return srq.Take(&l.rx.drawn)
	}
	return l.rx.head != l.rq.tail.Load()
}

// beginMessage takes a receive for a new message.
func (l *life) beginMessage(h *wire.Header) error {
	x := &l.rx
	switch {
	case h.MSN != x.msn+1:
		return wire.ErrMSN
	case h.MO != 0:
		return wire.ErrMO
	case !l.take():
		return wire.ErrNoBuffer
	}
	if x.n == batch {
		l.emit()
	}
	x.msn++
	wr := l.taken()
	x.open, x.got, x.room = true, 0, min(total(wr.SGL), maxMessage)
	x.msg = cursor{sgl: wr.SGL, need: hw.LocalWrite}
	if !l.allows(wr.SGL, hw.LocalWrite) {
		x.failed = hw.StatusLocalProtection
		return wire.ErrRDMAPLocal
	}
	return nil
}

// beginSend holds a segment of a send against the message that it continues, or
// takes a receive for a new one.
func (l *life) beginSend(h *wire.Header, n int) error {
	x := &l.rx
	if !x.open {
		if err := l.beginMessage(h); err != nil {
			return err
		}
	}
	switch {
	case h.MSN != x.msn:
		return wire.ErrMSN
	case h.MO != x.got:
		return wire.ErrMO
	case uint64(x.got)+uint64(n) > x.room:
		x.failed = hw.StatusLocalLength
		return wire.ErrTooLong
	}
	x.dst = &x.msg
	return nil
}

// finishSend notes a segment, and completes the receive with the last.
func (l *life) finishSend(h *wire.Header, n int) error {
	x := &l.rx
	x.got += uint32(n)
	if !h.Last {
		return nil
	}
	wc := hw.WC{Len: x.got, Op: hw.OpRecv}
	if h.Opcode.Invalidates() {
		if !l.invalidate(h.STag) {
			x.failed = hw.StatusBindFailed
			return wire.ErrInvalidate
		}
		wc.Op, wc.Flags, wc.Imm = hw.OpRecvInvalidate, hw.WCInvalidated, h.STag
	}
	if h.Opcode.Solicited() {
		wc.Flags |= hw.WCSolicited
	}
	l.received(wc)
	return nil
}

// received completes the receive of the message at hand.
func (l *life) received(wc hw.WC) {
	x := &l.rx
	wc.ID = l.taken().ID
	if l.qp.srq != nil {
		wc.QP = l.qp.cfg.Number
	} else {
		x.head++
	}
	x.wcs[x.n] = wc
	x.n++
	x.open, x.wrote = false, 0
}

// immediate takes a receive for immediate data. Its length is what the write before
// it has placed, whatever the peer says.
func (l *life) immediate(h *wire.Header, b []byte) error {
	var data wire.Immediate
	if _, err := data.Parse(b); err != nil {
		return err
	}
	if l.rx.open {
		return wire.ErrMSN
	}
	if err := l.beginMessage(h); err != nil {
		return err
	}
	wc := hw.WC{
		Imm: binary.BigEndian.Uint32(data[:]), Len: uint32(min(l.rx.wrote, math.MaxUint32)),
		Op: hw.OpRecvImm, Flags: hw.WCImm,
	}
	if h.Opcode.Solicited() {
		wc.Flags |= hw.WCSolicited
	}
	l.received(wc)
	return nil
}

// terminated takes the peer's last word.
func (l *life) terminated(b []byte) error {
	t, _, err := wire.ParseTerminate(b, true)
	if err == nil || t.Code != 0 {
		l.die(hw.ReasonBroken, termCause(t.Code, hw.SidePeer), nil, l.blame(&t))
	} else {
		l.die(hw.ReasonBroken, faultCause(wire.ErrTerminate), nil, verdict{})
	}
	return errOver
}

// blame finds out which of our requests a Terminate is about.
func (l *life) blame(t *wire.Terminate) (v verdict) {
	protection := t.Code.Layer() == wire.LayerRDMAP && t.Code.Type() == wire.TypeProtection ||
		t.Code.Layer() == wire.LayerDDP && t.Code.Type() == wire.TypeTagged
	operation := t.Code.Layer() == wire.LayerRDMAP && t.Code.Type() == wire.TypeOperation
	switch {
	case protection:
		v.status, v.other = hw.StatusRemoteAccess, hw.StatusRemoteAccess
		v.op = hw.Ops(hw.OpWrite, hw.OpWriteImm)
	case operation:
		v.status, v.other = hw.StatusRemoteResponder, hw.StatusRemoteResponder
		v.op = ^hw.OpSet(0)
	case t.Code == wire.TermUntaggedNoBuffer:
		v.other, v.op = hw.StatusReceiverNotReady, hw.Ops(hw.OpSend, hw.OpSendInvalidate, hw.OpWriteImm)
	case t.Code.Layer() != wire.LayerLLP:
		v.other, v.op = hw.StatusRemoteResponder, ^hw.OpSet(0)
	}
	if v.status != 0 {
		v.read = l.blamedRead(t)
	}
	return v
}

// blamedRead is the read that a Terminate quotes, by its sink; without a quote
// our oldest one, but not if something else is quoted.
func (l *life) blamedRead(t *wire.Terminate) uint64 {
	q := &l.reads
	first, last := q.done.Load(), q.pushed.Load()
	if t.HasRead {
		for n := first; n != last; n++ {
			if q.slots[n&q.mask].stag == t.Read.SinkSTag {
				return n + 1
			}
		}
		return 0
	}
	if first == last {
		return 0
	}
	var h wire.Header
	if _, err := h.Parse(t.Header, int(t.Length)); err == nil && h.Opcode != wire.OpReadRequest && h.Opcode != wire.OpAtomicRequest {
		return 0
	}
	return first + 1
}
