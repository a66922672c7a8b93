package iwarp

import (
	"encoding/binary"
	"math"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
	"godat/internal/release"
)

// control handles a message whose payload is not placed in memory as it comes.
func (p *placer) control(h *wire.Header, b []byte) error {
	if h.Opcode.Extension() && !p.link.agreed.extended {
		return wire.ErrOpcode
	}
	switch h.Opcode {
	case wire.OpReadRequest:
		return p.readRequest(h, b)
	case wire.OpAtomicRequest:
		return p.atomicRequest(h, b)
	case wire.OpAtomicResponse:
		return p.atomicResponse(h, b)
	case wire.OpTerminate:
		return p.terminated(b)
	default:
		return p.immediate(h, b)
	}
}

// beginMessage claims a receive for a new message, of which n octets have come, and
// checks the receive.
func (p *placer) beginMessage(h *wire.Header, n int) error {
	switch {
	case h.MSN != p.msn+1:
		return wire.ErrMSN
	case h.MO != 0:
		return wire.ErrMO
	case !p.rq.claim():
		return wire.ErrNoBuffer
	}
	if p.n == batch {
		p.emit()
	}
	p.msn++
	wr := p.rq.claimed()
	p.open, p.got, p.room = true, 0, min(soft.Total(wr.SGL), soft.MaxMessage)
	p.msg = soft.Cursor{SGL: wr.SGL, Need: hw.LocalWrite}
	if !checkedByAccess(wr.SGL, uint64(n)) && !p.mem.Allows(wr.SGL, hw.LocalWrite) {
		p.failed = hw.StatusLocalProtection
		return wire.ErrRDMAPLocal
	}
	return nil
}

// beginSend checks a segment of a send against the message that it continues, or
// begins a new message.
func (p *placer) beginSend(h *wire.Header, n int) error {
	if !p.open {
		if err := p.beginMessage(h, n); err != nil {
			return err
		}
	}
	switch {
	case h.MSN != p.msn:
		return wire.ErrMSN
	case h.MO != p.got:
		return wire.ErrMO
	case uint64(p.got)+uint64(n) > p.room:
		p.failed = hw.StatusLocalLength
		return wire.ErrTooLong
	}
	p.dst = &p.msg
	return nil
}

// finishSend counts a segment, and completes the receive after the last one.
func (p *placer) finishSend(h *wire.Header, n int) error {
	p.got += uint32(n)
	if !h.Last {
		return nil
	}
	if h.Opcode == wire.OpSend && p.rq.srq == nil {
		p.receivedPlain()
		return nil
	}
	invalidates := h.Opcode.Invalidates()
	if invalidates {
		p.emit() // an invalidation may wait, and nothing is kept from the program meanwhile
		if !p.invalidate(h.STag) {
			p.failed = hw.StatusBindFailed
			return wire.ErrInvalidate
		}
	}
	wc := p.received(hw.OpRecv, p.got)
	if invalidates {
		wc.Op, wc.Flags, wc.Imm = hw.OpRecvInvalidate, hw.WCInvalidated, h.STag
	}
	if h.Opcode.Solicited() {
		wc.Flags |= hw.WCSolicited
	}
	return nil
}

// receivedPlain is received for most messages: a send without a mark, which took a receive of
// the queue pair's own. The sink keeps the completions of several messages of one read.
func (p *placer) receivedPlain() {
	if p.n > 0 {
		p.handOut()
	}
	id := p.rq.claimed().ID
	p.rq.head++
	release.Uint64(&p.rq.freed, p.rq.head) // before a poster can see the completion
	p.open, p.wrote = false, 0
	var flags hw.WCFlags
	if p.kept = p.kept || p.more; p.kept {
		flags = hw.WCMore
	}
	p.sink.CompleteOne(id, hw.OpRecv, p.got, flags)
}

// received completes the receive of the present message, with success and a length. It
// returns the completion, of which the caller sets the rest. A composite literal would be
// built on the stack and copied in wider pieces, for which the processor waits.
func (p *placer) received(op hw.Op, length uint32) *hw.WC {
	if p.wcs == nil {
		p.wcs = make([]hw.WC, batch)
	}
	wc := &p.wcs[p.n]
	p.n++
	wc.ID, wc.Len, wc.Op, wc.Status = p.rq.claimed().ID, length, op, hw.StatusSuccess
	wc.Imm, wc.QP, wc.Flags = 0, 0, 0
	if p.rq.srq != nil {
		wc.QP = p.link.qp.Cfg.Number
	} else {
		p.rq.head++
	}
	p.open, p.wrote = false, 0
	return wc
}

// immediate claims a receive for immediate data. The completion's length is the number of
// octets that the write before it has placed, whatever the peer says. The codec has seen that b has
// [wire.ImmediateSize] octets.
func (p *placer) immediate(h *wire.Header, b []byte) error {
	if p.open {
		return wire.ErrMSN
	}
	if err := p.beginMessage(h, 0); err != nil {
		return err
	}
	wc := p.received(hw.OpRecvImm, uint32(min(p.wrote, math.MaxUint32)))
	wc.Imm, wc.Flags = binary.BigEndian.Uint32(b), hw.WCImm
	if h.Opcode.Solicited() {
		wc.Flags |= hw.WCSolicited
	}
	return nil
}

// terminated ends the connection because of the peer's Terminate.
func (p *placer) terminated(b []byte) error {
	p.own.Check()
	t, _, err := wire.ParseTerminate(b, true)
	if err == nil || t.Code != 0 {
		p.link.die(ending{why: hw.ReasonBroken, cause: termCause(t.Code, hw.SidePeer), verdict: verdictOf(&t, &p.link.reads)})
	} else {
		p.link.die(ending{why: hw.ReasonBroken, cause: faultCause(wire.ErrTerminate)})
	}
	return errOver
}

// verdictOf finds out which of this end's requests a Terminate is about.
func verdictOf(t *wire.Terminate, reads *readQueue) (v verdict) {
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
		v.read = reads.quoted(t)
	}
	return v
}

// quoted is the number, counted from 1, of the read or atomic that a Terminate is about:
// the read whose sink it quotes; the oldest one if it quotes no header, or only the header
// of a read or atomic request; 0 if it quotes another kind of request, or an unknown sink.
func (q *readQueue) quoted(t *wire.Terminate) uint64 {
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
