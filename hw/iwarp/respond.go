package iwarp

import (
	"godat/hw"
	"godat/hw/iwarp/wire"
)

// beginResponse begins the next response; false if it is an end instead.
func (l *life) beginResponse() bool {
	t := &l.tx
	r := &l.answers.slots[t.answer&l.answers.mask]
	switch r.kind {
	case termination:
		t.last, t.lastDue, t.stop, t.verdict, t.cause = r.term, true, true, r.verdict, r.cause
		return false
	case atomicResponse:
		t.atomicMSN++
		t.cur = message{h: wire.Header{Opcode: wire.OpAtomicResponse, MSN: t.atomicMSN}}
		a := wire.AtomicResponse{ID: r.stag, Original: r.value}
		t.cur.extraLen = len(a.Append(t.cur.extra[:0]))
	default:
		t.one[0] = hw.SGE{Addr: r.src, Len: r.size, LKey: r.srcKey}
		t.cur = message{
			h:    wire.Header{Opcode: wire.OpReadResponse, STag: r.stag, TO: r.to},
			c:    cursor{sgl: t.one[:], need: hw.RemoteRead},
			left: uint64(r.size),
		}
	}
	t.cur.slot, t.cur.response = t.answer, true
	t.active = true
	return true
}

// refusal is the Terminate that says why a read request was not answered: a
// ULPDU, quoting the request.
func (r *response) refusal(e *wire.Error) []byte {
	req := wire.ReadRequest{SinkSTag: r.stag, SinkTO: r.to, Size: r.size, SrcSTag: r.srcKey, SrcTO: r.src}
	h := wire.Header{Opcode: wire.OpReadRequest, MSN: r.msn, Last: true}
	ulpdu := req.Append(h.Append(nil))
	return terminate(e.Term, ulpdu, len(ulpdu))
}

// terminate is the ULPDU of a Terminate that the one in b calls for.
func terminate(code wire.TermCode, b []byte, length int) []byte {
	h := wire.Header{Opcode: wire.OpTerminate, Last: true, MSN: 1}
	t := wire.NewTerminate(code, b, length)
	return t.Append(h.Append(make([]byte, 0, wire.UntaggedHeaderSize+t.Size())))
}

// localTerminate says that something here has gone wrong.
func localTerminate() []byte { return terminate(wire.TermRDMAPLocal, nil, 0) }

// push enters a response; false when the peer has more outstanding than agreed.
func (q *responseQueue) push(r response) bool {
	n := q.pushed.Load()
	if r.kind != termination && n-q.freed.Load() >= q.limit {
		return false
	}
	q.slots[n&q.mask] = r
	q.pushed.Store(n + 1)
	return true
}
