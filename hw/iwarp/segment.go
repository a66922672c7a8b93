package iwarp

import (
	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
)

// message is a message that is being cut into FPDUs.
type message struct {
	h        wire.Header
	c        soft.Cursor // position in the payload
	left     uint64      // octets of the payload that are left
	extra    [wire.AtomicRequestSize]byte
	extraLen int // octets of extra: an RDMAP header
	slot     uint64
	response bool
	silent   bool // the message belongs to no request
}

// assemble cuts messages into FPDUs for one write, and reports whether there is
// anything to write.
func (s *sender) assemble() bool {
	s.link.token.Check()
	for s.active || s.nextMessage() {
		if !s.active { // the whole message is in the outbox
			continue
		}
		if s.out.sendBuf == nil {
			s.out.ready()
		}
		if !s.segment(&s.cur) {
			break
		}
	}
	if s.out.empty() {
		s.out.release()
		return false
	}
	return true
}

// segment appends the next FPDU of a message. It returns false if there is no room for
// the FPDU, or if a key of its memory is dead.
func (s *sender) segment(m *message) bool {
	limit := s.link.agreed.untagged
	if m.h.Opcode.Tagged() {
		limit = s.link.agreed.tagged
	}
	n := int(min(m.left, uint64(limit)))
	copied := s.port.staged() || s.link.agreed.markersOut || n <= inlined || s.link.agreed.crc && !s.steady(&m.c, n)
	need := frameSpare
	if copied {
		need += n + n/wire.MarkerInterval*wire.MarkerSize + 4*wire.MarkerSize
	}
	if !s.out.room(need) {
		return false
	}
	m.h.Last = uint64(n) == m.left
	slot := m.slot
	if m.response {
		slot = s.out.answers(&s.link.answers.slots[slot&s.link.answers.mask])
	}
	s.out.begin(slot, m.response)
	ok := false
	switch {
	case s.link.agreed.markersOut:
		ok = s.appendMarked(m, n)
	case copied:
		ok = s.appendCopied(m, n)
	default:
		ok = s.appendVector(m, n)
	}
	if !ok {
		s.out.cut(len(s.out.frames) - 1)
		s.lost(slot, m.response)
		return false
	}
	s.out.seal()
	m.left -= uint64(n)
	if m.h.Opcode.Tagged() {
		m.h.TO += uint64(n)
	} else {
		m.h.MO += uint32(n)
	}
	if m.h.Last {
		s.sent(m)
	}
	return true
}

// steady reports whether the n octets at the cursor are of one region, whose memory nobody
// changes while it is sent.
func (s *sender) steady(c *soft.Cursor, n int) bool {
	at := &c.SGL[0]
	return n <= int(at.Len-c.Off) && s.mem.Steady(at.Addr, at.Len, at.LKey)
}

// passingMin is the least payload, in bytes, whose CRC is computed while it is copied.
// For fewer bytes one pass over the whole FPDU costs less than a pass for each of its parts.
const passingMin = 1 << 10

// appendCopied appends an FPDU that is copied to the arena as a whole. An FPDU with a CRC
// is, unless its memory is steady: otherwise others could write to the memory between the
// computation of the CRC and the write, and the peer would see a corrupt connection.
func (s *sender) appendCopied(m *message, n int) bool {
	o, crc := &s.out, s.link.agreed.crc
	start, length := len(o.arena), m.h.Size()+m.extraLen+n
	o.arena = m.h.AppendFramed(o.arena, m.extraLen+n)
	if m.extraLen > 0 {
		o.arena = append(o.arena, m.extra[:m.extraLen]...)
	}
	inPassing := crc && n >= passingMin
	var sum uint32
	if inPassing {
		sum = wire.UpdateCRC(0, o.arena[start:])
	}
	for n > 0 {
		mem := s.mem.Next(&m.c, n)
		if mem == nil {
			o.arena = o.arena[:start]
			return false
		}
		at := len(o.arena)
		if o.arena = o.arena[:at+len(mem)]; inPassing { // segment has looked for the room
			sum = wire.CopyCRC(sum, o.arena[at:], mem)
		} else {
			copy(o.arena[at:], mem)
		}
		m.c.Off += uint32(len(mem))
		n -= len(mem)
	}
	if inPassing {
		o.arena = wire.AppendTrailer(o.arena, length, sum, true)
	} else {
		o.arena = wire.SealFPDU(o.arena, start, crc)
	}
	o.addArena(start)
	return true
}

// appendVector appends an FPDU whose payload stays in its region.
func (s *sender) appendVector(m *message, n int) bool {
	o, crc := &s.out, s.link.agreed.crc
	start := len(o.arena)
	o.arena = m.h.AppendFramed(o.arena, n)
	length := m.h.Size() + n
	var sum uint32
	if crc {
		sum = wire.UpdateCRC(0, o.arena[start:])
	}
	o.addArena(start)
	for n > 0 {
		mem := s.mem.Next(&m.c, n)
		if mem == nil {
			return false
		}
		if crc {
			sum = wire.UpdateCRC(sum, mem)
		}
		o.addMemory(mem, &m.c)
		m.c.Off += uint32(len(mem))
		n -= len(mem)
	}
	start = len(o.arena)
	o.arena = wire.AppendTrailer(o.arena, length, sum, crc)
	o.addArena(start)
	return true
}

// appendMarked appends an FPDU with markers.
func (s *sender) appendMarked(m *message, n int) bool {
	o := &s.out
	o.parts = append(o.parts[:0], m.h.Append(o.header[:0]), m.extra[:m.extraLen])
	for n > 0 {
		mem := s.mem.Next(&m.c, n)
		if mem == nil {
			clear(o.parts)
			return false
		}
		o.parts = append(o.parts, mem)
		m.c.Off += uint32(len(mem))
		n -= len(mem)
	}
	start := len(o.arena)
	o.arena = wire.AppendMarkedFPDU(o.arena, o.queued, s.link.agreed.crc, o.parts...)
	clear(o.parts)
	o.addArena(start)
	return true
}

// sent records that the last FPDU of a message is in the outbox.
func (s *sender) sent(m *message) {
	s.active = false
	switch {
	case m.response:
		s.answer++
		s.link.answers.done.Store(s.answer)
	case s.immediate:
		s.immediate = false
		s.beginImmediate(m.slot)
	case !m.silent:
		s.sq.ends[m.slot&s.sq.Mask] = s.out.queued
		s.next++
	}
}

// lost records that the memory of a request or response is deregistered: the sender
// sends everything before it, and nothing behind it. The slot is that of its frame.
func (s *sender) lost(slot uint64, isResponse bool) {
	s.link.token.Check()
	s.active, s.stop = false, true
	if !isResponse {
		s.next = slot
		s.fail(hw.StatusLocalProtection)
		return
	}
	r := &s.out.asked[slot]
	s.last = &ending{why: hw.ReasonBroken, term: r.refusal(wire.ErrSTag), cause: faultCause(wire.ErrSTag)}
}

// fail makes the next request fail once all requests before it have completed.
func (s *sender) fail(status hw.Status) {
	s.link.token.Check()
	s.failed, s.failAt, s.failStatus, s.stop = true, s.next, status, true
}
