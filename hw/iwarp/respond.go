package iwarp

import (
	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
)

// beginResponse begins the next response. It returns false if a termination comes
// instead.
func (s *sender) beginResponse() bool {
	r := &s.link.answers.slots[s.answer&s.link.answers.mask]
	switch r.kind {
	case termination:
		s.last, s.stop = r.end, true
		return false
	case atomicResponse:
		s.atomicMSN++
		s.cur = message{h: wire.Header{Opcode: wire.OpAtomicResponse, MSN: s.atomicMSN}}
		a := wire.AtomicResponse{ID: r.stag, Original: r.value}
		s.cur.extraLen = len(a.Append(s.cur.extra[:0]))
	default:
		s.one[0] = hw.SGE{Addr: r.src, Len: r.size, LKey: r.srcKey}
		s.cur = message{
			h:    wire.Header{Opcode: wire.OpReadResponse, STag: r.stag, TO: r.to},
			c:    soft.Cursor{SGL: s.one[:], Need: hw.RemoteRead},
			left: uint64(r.size),
		}
	}
	s.cur.slot, s.cur.response = s.answer, true
	s.active = true
	return true
}

// refusal is the ULPDU of the Terminate that says why a read request was not answered. It
// quotes the request.
func (r *response) refusal(e *wire.Error) []byte {
	req := wire.ReadRequest{SinkSTag: r.stag, SinkTO: r.to, Size: r.size, SrcSTag: r.srcKey, SrcTO: r.src}
	h := wire.Header{Opcode: wire.OpReadRequest, MSN: r.msn, Last: true}
	ulpdu := req.Append(h.Append(nil))
	return terminate(e.Term, ulpdu, len(ulpdu))
}

// terminate is the ULPDU of a Terminate for an error in the ULPDU that begins b and has
// length octets; see [wire.NewTerminate].
func terminate(code wire.TermCode, b []byte, length int) []byte {
	h := wire.Header{Opcode: wire.OpTerminate, Last: true, MSN: 1}
	t := wire.NewTerminate(code, b, length)
	return t.Append(h.Append(nil))
}

// localTerminate is the ULPDU of a Terminate for an error at this end.
func localTerminate() []byte { return terminate(wire.TermRDMAPLocal, nil, 0) }
