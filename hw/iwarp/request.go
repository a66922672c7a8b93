package iwarp

import (
	"encoding/binary"
	"math"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
)

// nextMessage begins the next message that may be sent, or appends the whole of it, and
// reports whether there is one.
func (s *sender) nextMessage() bool {
	if s.last != nil || s.writer.shut {
		return false
	}
	if s.rtrDue {
		s.rtrDue = false
		s.beginRTR()
		return true
	}
	owed := s.answer != s.link.answers.pushed.Load()
	if owed && s.turns < fairShare {
		s.turns++
		return s.beginResponse()
	}
	s.turns = 0
	return s.nextRequest() || owed && s.beginResponse()
}

// nextRequest begins the next request that is to be sent, or appends the whole of it, and
// executes the binds before it. check/models/fence.pml is the model of what a request waits for.
func (s *sender) nextRequest() bool {
	for !s.stop && s.next != s.sq.Tail.Load() {
		wr := &s.sq.Slots[s.next&s.sq.Mask]
		if wr.Flags&hw.WRFence != 0 && s.link.reads.outstanding() > 0 {
			return false
		}
		if wr.Op != hw.OpBind {
			return s.appendShort(wr) || s.beginRequest(wr)
		}
		if !s.bind(wr) {
			return false
		}
	}
	return false
}

// beginRTR begins a message of no octets: a ready-to-receive, nudge, probe or
// farewell. Chelsio's hardware refuses an STag of 0.
func (s *sender) beginRTR() {
	s.active = true
	if s.rtr == wire.OpWrite {
		s.cur = message{h: wire.Header{Opcode: wire.OpWrite, STag: rtrSTag}, silent: true}
		if s.farewell {
			s.cur.h.TO = farewellTO
		}
		return
	}
	s.readMSN++
	s.cur = message{h: wire.Header{Opcode: wire.OpReadRequest, MSN: s.readMSN}, silent: true}
	s.askRead(read{stag: rtrSTag}, wire.ReadRequest{SinkSTag: rtrSTag, SrcSTag: rtrSTag})
}

// rtrSTag is the STag of messages of no octets, which no peer looks up.
const rtrSTag = 1

// askRead enters a read and appends its request to the present message.
func (s *sender) askRead(r read, req wire.ReadRequest) {
	s.link.reads.push(r)
	s.cur.extraLen = len(req.Append(s.cur.extra[:0]))
}

// beginRequest begins the next request of the send queue. It returns false if the request
// has to wait, or fails.
func (s *sender) beginRequest(wr *hw.SendWR) bool {
	n := soft.Total(wr.SGL)
	fetches := wr.Op == hw.OpRead || wr.Op == hw.OpFetchAdd || wr.Op == hw.OpCompareSwap
	need := hw.LocalRead
	if fetches {
		need = hw.LocalWrite
	}
	switch {
	case n > soft.MaxMessage, fetches && wr.Op != hw.OpRead && n != wordLen:
		s.fail(hw.StatusLocalLength)
		return false
	case fetches && s.link.agreed.readsOut == 0:
		s.fail(hw.StatusLocalEP)
		return false
	case (fetches || !checkedByAccess(wr.SGL, n)) && !s.mem.Allows(wr.SGL, need):
		s.fail(hw.StatusLocalProtection)
		return false
	case fetches && s.link.reads.outstanding() >= uint64(s.link.agreed.readsOut):
		return false
	}
	s.sq.reads[s.next&s.sq.Mask] = 0
	s.active, s.immediate = true, wr.Op == hw.OpWriteImm
	m := &s.cur // set field by field, because a literal would clear and copy all of extra
	m.c.SGL, m.c.Off, m.c.Need, m.left, m.slot = wr.SGL, 0, need, n, s.next
	m.extraLen, m.response, m.silent = 0, false, false
	switch {
	case fetches:
		s.beginFetch(wr, uint32(n))
	case wr.Op == hw.OpWrite || wr.Op == hw.OpWriteImm:
		m.h = wire.Header{Opcode: wire.OpWrite, STag: wr.RKey, TO: wr.RemoteAddr}
	default:
		s.msn++
		m.h = wire.Header{Opcode: sendOpcode(wr), MSN: s.msn, STag: wr.Imm}
	}
	return true
}

func sendOpcode(wr *hw.SendWR) wire.Opcode {
	op := wire.OpSend
	if wr.Op == hw.OpSendInvalidate {
		op = wire.OpSendInvalidate
	}
	if wr.Flags&hw.WRSolicited != 0 {
		op += wire.OpSendSE - wire.OpSend
	}
	return op
}

// beginFetch makes the request of a read or atomic. The sink's STag in it only identifies
// the request: the peer echoes it.
func (s *sender) beginFetch(wr *hw.SendWR, n uint32) {
	seq := s.link.reads.pushed.Load() + 1
	s.sq.reads[s.next&s.sq.Mask] = seq
	s.readMSN++
	s.cur.left = 0
	r := read{sgl: wr.SGL, size: n, stag: uint32(seq)<<8 | 1, op: wr.Op}
	if wr.Op == hw.OpRead {
		s.cur.h = wire.Header{Opcode: wire.OpReadRequest, MSN: s.readMSN}
		s.askRead(r, wire.ReadRequest{SinkSTag: r.stag, Size: n, SrcSTag: wr.RKey, SrcTO: wr.RemoteAddr})
		return
	}
	s.cur.h = wire.Header{Opcode: wire.OpAtomicRequest, MSN: s.readMSN}
	a := wire.AtomicRequest{Op: wire.FetchAdd, ID: r.stag, STag: wr.RKey, TO: wr.RemoteAddr, Data: wr.Operand}
	if wr.Op == hw.OpCompareSwap {
		a.Op, a.Mask, a.Compare, a.CompareMask = wire.CmpSwap, math.MaxUint64, wr.Compare, math.MaxUint64
	}
	r.atomic = true
	s.link.reads.push(r)
	s.cur.extraLen = len(a.Append(s.cur.extra[:0]))
}

// wordLen is the size of an atomic's target.
const wordLen = 8

// beginImmediate makes the message of immediate data. It uses four of the message's eight
// octets.
func (s *sender) beginImmediate(slot uint64) {
	wr := &s.sq.Slots[slot&s.sq.Mask]
	s.msn++
	s.cur = message{h: wire.Header{Opcode: wire.OpImmediate, MSN: s.msn}, slot: slot, extraLen: wire.ImmediateSize}
	if wr.Flags&hw.WRSolicited != 0 {
		s.cur.h.Opcode = wire.OpImmediateSE
	}
	binary.BigEndian.PutUint32(s.cur.extra[:], wr.Imm)
	s.active = true
}
