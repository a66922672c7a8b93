package iwarp

import (
	"godat/hw"
	"godat/hw/iwarp/wire"
)

// message is what is being cut into FPDUs.
type message struct {
	h        wire.Header
	c        cursor // of the payload
	left     uint64 // of the payload
	extra    [wire.AtomicRequestSize]byte
	extraLen int // octets of extra: an RDMAP header
	slot     uint64
	response bool
	silent   bool // ends nothing: of our own making, or a part of a request
}

// sending is the token holder's state.
type sending struct {
	head, next   uint64 // the oldest request not completed, and the first not begun
	msn, readMSN uint32 // numbers of the last messages
	atomicMSN    uint32
	answer       uint64 // the next response
	turns        int    // responses since the last request
	cur          message
	active       bool // cur is something
	immediate    bool // cur's write is followed by immediate data
	rtr          wire.Opcode
	rtrDue       bool
	stop         bool // no request is begun any more: one has failed
	failed       bool
	failAt       uint64
	failStatus   hw.Status
	last         []byte // the ULPDU of a Terminate that goes when all is written
	lastDue      bool
	verdict      verdict // that goes with it
	cause        *hw.Cause
	farewell     bool // is said, or due
	finished     bool // our half is closed
	mute         bool // the connection takes nothing more
	one          [1]hw.SGE
	header       [wire.UntaggedHeaderSize]byte
	tail         []byte // what the sender writes at the end
	resumed      bool   // the outbox is from before the socket was full
	loose        bool   // see letLoose
	doomed       bool   // a request had a fate of its own
	patient      bool   // the holder is the sender
	unsettled    bool   // a bind waits for one that is
	scratch      []busy // of settle
}

// fairShare is how many responses go before a request has its turn.
const fairShare = 4

// assemble cuts messages into FPDUs for one write, and reports whether there is
// anything to write.
func (l *life) assemble() bool {
	t := &l.tx
	for l.tx.active || l.nextMessage() {
		if l.out.sendBuf == nil {
			l.out.ready()
		}
		if !l.segment(&t.cur) {
			break
		}
	}
	if l.out.empty() {
		l.out.release()
		return false
	}
	return true
}

// segment appends the next FPDU of a message; false when there is no room for
// it, or its memory is gone.
func (l *life) segment(m *message) bool {
	limit := l.agreed.untagged
	if m.h.Opcode.Tagged() {
		limit = l.agreed.tagged
	}
	n := int(min(m.left, uint64(limit)))
	copied := l.port.staged || l.agreed.markersOut || l.agreed.crc || n <= inlined
	need := frameSpare
	if copied {
		need += n + n/wire.MarkerInterval*wire.MarkerSize + 4*wire.MarkerSize
	}
	if !l.out.room(need) {
		return false
	}
	m.h.Last = uint64(n) == m.left
	l.out.begin(m.slot, m.response)
	ok := false
	switch {
	case l.agreed.markersOut:
		ok = l.appendMarked(m, n)
	case copied:
		ok = l.appendCopied(m, n)
	default:
		ok = l.appendVector(m, n)
	}
	if !ok {
		l.out.cut(len(l.out.frames) - 1)
		l.lost(m.slot, m.response)
		return false
	}
	l.out.seal()
	m.left -= uint64(n)
	if m.h.Opcode.Tagged() {
		m.h.TO += uint64(n)
	} else {
		m.h.MO += uint32(n)
	}
	if m.h.Last {
		l.sent(m)
	}
	return true
}

// appendCopied appends an FPDU all of which is in the arena. One with a CRC always
// is: others may write to the memory between the sum and the write, and the peer
// would find the connection corrupt.
func (l *life) appendCopied(m *message, n int) bool {
	o := &l.out
	start := len(o.arena)
	o.arena = m.h.AppendFramed(o.arena, m.extraLen+n)
	o.arena = append(o.arena, m.extra[:m.extraLen]...)
	for n > 0 {
		mem := l.rest(&m.c, n)
		if mem == nil {
			o.arena = o.arena[:start]
			return false
		}
		o.arena = append(o.arena, mem...)
		m.c.off += uint32(len(mem))
		n -= len(mem)
	}
	o.arena = wire.SealFPDU(o.arena, start, l.agreed.crc)
	o.addArena(start)
	return true
}

// appendVector appends an FPDU whose payload stays where it is, and which has no CRC.
func (l *life) appendVector(m *message, n int) bool {
	o := &l.out
	start := len(o.arena)
	o.arena = m.h.AppendFramed(o.arena, n)
	length := m.h.Size() + n
	o.addArena(start)
	for n > 0 {
		mem := l.rest(&m.c, n)
		if mem == nil {
			return false
		}
		o.addMemory(mem, &m.c)
		m.c.off += uint32(len(mem))
		n -= len(mem)
	}
	start = len(o.arena)
	o.arena = wire.AppendTrailer(o.arena, length, 0, false)
	o.addArena(start)
	return true
}

// appendMarked appends an FPDU with markers.
func (l *life) appendMarked(m *message, n int) bool {
	o := &l.out
	o.parts = append(o.parts[:0], m.h.Append(l.tx.header[:0]), m.extra[:m.extraLen])
	for n > 0 {
		mem := l.rest(&m.c, n)
		if mem == nil {
			return false
		}
		o.parts = append(o.parts, mem)
		m.c.off += uint32(len(mem))
		n -= len(mem)
	}
	start := len(o.arena)
	o.arena = wire.AppendMarkedFPDU(o.arena, o.queued, l.agreed.crc, o.parts...)
	clear(o.parts)
	o.addArena(start)
	return true
}

// sent notes that the last FPDU of a message is in the outbox.
func (l *life) sent(m *message) {
	t := &l.tx
	t.active = false
	switch {
	case m.response:
		t.answer++
		l.answers.freed.Store(t.answer)
	case t.immediate:
		t.immediate = false
		l.beginImmediate(m.slot)
	case !m.silent:
		l.sq.ends[m.slot&l.sq.Mask] = l.out.queued
		t.next++
	}
}

// lost notes that a message's memory is gone: everything before it is sent, and
// nothing behind it.
func (l *life) lost(slot uint64, isResponse bool) {
	t := &l.tx
	t.active, t.stop = false, true
	if !isResponse {
		t.next = slot
		l.fail(hw.StatusLocalProtection)
		return
	}
	r := &l.answers.slots[slot&l.answers.mask]
	t.last, t.lastDue, t.cause = r.refusal(wire.ErrSTag), true, faultCause(wire.ErrSTag)
}

// ownFailure is the cause of the end that fail brings.
func (l *life) ownFailure() *hw.Cause {
	return statusCause(l.sq.Slots[l.tx.failAt&l.sq.Mask].Op, l.tx.failStatus)
}

// fail has the next request fail as soon as those before it have completed.
func (l *life) fail(status hw.Status) {
	t := &l.tx
	t.failed, t.failAt, t.failStatus, t.stop = true, t.next, status, true
}
