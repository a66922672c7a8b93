package iwarp

import (
	"godat/hw"
	"godat/hw/iwarp/wire"
)

// appendShort appends a send of few octets, which lie in one segment, as one FPDU. So most
// small messages need no state between their beginning and their end. It returns false if
// the request is of another kind, has to wait for room, or fails: then nothing has changed,
// and beginRequest decides what comes of it.
func (s *sender) appendShort(wr *hw.SendWR) bool {
	if len(wr.SGL) != 1 || wr.Op != hw.OpSend && wr.Op != hw.OpSendInvalidate {
		return false
	}
	o, agreed, from := &s.out, &s.link.agreed, &wr.SGL[0]
	n := int(from.Len)
	if n == 0 || n > min(inlined, agreed.untagged) || agreed.markersOut {
		return false
	}
	if o.sendBuf == nil {
		o.ready()
	}
	if !o.room(frameSpare + n) {
		return false
	}
	mem := s.mem.Bytes(from.Addr, from.Len, from.LKey, hw.LocalRead)
	if mem == nil {
		return false
	}
	s.msn++
	h := wire.Header{Opcode: sendOpcode(wr), MSN: s.msn, STag: wr.Imm, Last: true}
	start := len(o.arena)
	o.begin(s.next, false)
	o.arena = append(h.AppendFramed(o.arena, n), mem...)
	o.arena = wire.SealFPDU(o.arena, start, agreed.crc)
	o.addArena(start)
	o.seal()
	i := s.next & s.sq.Mask
	s.sq.reads[i], s.sq.ends[i] = 0, o.queued
	s.next++
	return true
}
