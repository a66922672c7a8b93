package iwarp

import (
	"encoding/binary"
	"math"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// nextMessage begins the next message that may be sent.
func (l *life) nextMessage() bool {
	t := &l.tx
	if t.lastDue || t.finished {
		return false
	}
	if t.rtrDue {
		t.rtrDue = false
		l.beginRTR()
		return true
	}
	owed := t.answer != l.answers.pushed.Load()
	if owed && t.turns < fairShare {
		t.turns++
		return l.beginResponse()
	}
	t.turns = 0
	return l.nextRequest() || owed && l.beginResponse()
}

// nextRequest begins the next request that is to be sent, and does the binds
// before it.
func (l *life) nextRequest() bool {
	t := &l.tx
	for !t.stop && t.next != l.sq.Tail.Load() {
		wr := &l.sq.Slots[t.next&l.sq.Mask]
		if wr.Flags&hw.WRFence != 0 && l.fetching() > 0 {
			return false
		}
		if wr.Op != hw.OpBind {
			return l.beginRequest(wr)
		}
		if !l.bind(wr) {
			return false
		}
	}
	return false
}

// fetching is how many reads and atomics are outstanding.
func (l *life) fetching() uint64 { return l.reads.pushed.Load() - l.reads.done.Load() }

// beginRTR makes what says that the initiator is ready to receive. Chelsio's
// hardware refuses an STag of 0.
func (l *life) beginRTR() {
	t := &l.tx
	t.active = true
	if t.rtr == wire.OpWrite {
		t.cur = message{h: wire.Header{Opcode: wire.OpWrite, STag: rtrSTag}, silent: true}
		if t.farewell {
			t.cur.h.TO = farewellTO
		}
		return
	}
	t.readMSN++
	t.cur = message{h: wire.Header{Opcode: wire.OpReadRequest, MSN: t.readMSN}, silent: true}
	l.askRead(read{stag: rtrSTag}, wire.ReadRequest{SinkSTag: rtrSTag, SrcSTag: rtrSTag})
}

const rtrSTag = 1

// askRead enters a read and makes its request.
func (l *life) askRead(r read, req wire.ReadRequest) {
	l.pushRead(r)
	l.tx.cur.extraLen = len(req.Append(l.tx.cur.extra[:0]))
}

func (l *life) pushRead(r read) {
	n := l.reads.pushed.Load()
	l.reads.slots[n&l.reads.mask] = r
	l.reads.pushed.Store(n + 1)
}

// beginRequest begins the next request of the send queue; false if it has to
// wait, or fails.
func (l *life) beginRequest(wr *hw.SendWR) bool {
	t := &l.tx
	n := total(wr.SGL)
	fetches := wr.Op == hw.OpRead || wr.Op == hw.OpFetchAdd || wr.Op == hw.OpCompareSwap
	need := hw.LocalRead
	if fetches {
		need = hw.LocalWrite
	}
	switch {
	case n > maxMessage, fetches && wr.Op != hw.OpRead && n != wordLen:
		l.fail(hw.StatusLocalLength)
		return false
	case fetches && l.agreed.readsOut == 0:
		l.fail(hw.StatusLocalEP)
		return false
	case !l.allows(wr.SGL, need):
		l.fail(hw.StatusLocalProtection)
		return false
	case fetches && l.fetching() >= uint64(l.agreed.readsOut):
		return false
	}
	l.sq.reads[t.next&l.sq.Mask] = 0
	t.active, t.immediate = true, wr.Op == hw.OpWriteImm
	t.cur = message{c: cursor{sgl: wr.SGL, need: need}, left: n, slot: t.next}
	switch {
	case fetches:
		l.beginFetch(wr, uint32(n))
	case wr.Op == hw.OpWrite || wr.Op == hw.OpWriteImm:
		t.cur.h = wire.Header{Opcode: wire.OpWrite, STag: wr.RKey, TO: wr.RemoteAddr}
	default:
		t.msn++
		t.cur.h = wire.Header{Opcode: sendOpcode(wr), MSN: t.msn, STag: wr.Imm}
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

// beginFetch makes the request of a read or atomic. The sink is known by what
// the peer is to echo, and means nothing else.
func (l *life) beginFetch(wr *hw.SendWR, n uint32) {
	t := &l.tx
	seq := l.reads.pushed.Load() + 1
	l.sq.reads[t.next&l.sq.Mask] = seq
	t.readMSN++
	t.cur.left = 0
	r := read{sgl: wr.SGL, size: n, stag: uint32(seq)<<8 | 1}
	if wr.Op == hw.OpRead {
		t.cur.h = wire.Header{Opcode: wire.OpReadRequest, MSN: t.readMSN}
		l.askRead(r, wire.ReadRequest{SinkSTag: r.stag, Size: n, SrcSTag: wr.RKey, SrcTO: wr.RemoteAddr})
		return
	}
	t.cur.h = wire.Header{Opcode: wire.OpAtomicRequest, MSN: t.readMSN}
	a := wire.AtomicRequest{Op: wire.FetchAdd, ID: r.stag, STag: wr.RKey, TO: wr.RemoteAddr, Data: wr.Operand}
	if wr.Op == hw.OpCompareSwap {
		a.Op, a.Mask, a.Compare, a.CompareMask = wire.CmpSwap, math.MaxUint64, wr.Compare, math.MaxUint64
	}
	r.atomic = true
	l.pushRead(r)
	t.cur.extraLen = len(a.Append(t.cur.extra[:0]))
}

// wordLen is the size of an atomic's target.
const wordLen = 8

// beginImmediate makes the message of immediate data: four octets of the eight
// that it has.
func (l *life) beginImmediate(slot uint64) {
	t := &l.tx
	wr := &l.sq.Slots[slot&l.sq.Mask]
	t.msn++
	t.cur = message{h: wire.Header{Opcode: wire.OpImmediate, MSN: t.msn}, slot: slot, extraLen: wire.ImmediateSize}
	if wr.Flags&hw.WRSolicited != 0 {
		t.cur.h.Opcode = wire.OpImmediateSE
	}
	binary.BigEndian.PutUint32(t.cur.extra[:], wr.Imm)
	t.active = true
}
