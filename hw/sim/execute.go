package sim

import "godat/hw"

// canBegin reports whether the next request may begin or go on. A fenced request waits
// for the outstanding reads, a read for a credit, and a send for the peer's receive.
func (q *sendQueue) canBegin() bool {
	if q.failed || q.next == q.tail || !q.qp.reachesPeer() {
		return false
	}
	p, s := q.qp.peer, q.at(q.next)
	if s.begun {
		return true
	}
	if s.wr.Flags&hw.WRFence != 0 && q.reads > 0 {
		return false
	}
	if s.wr.Op == hw.OpRead {
		return q.reads < q.qp.readsOut || q.qp.readsOut == 0
	}
	return s.wr.Op != hw.OpSend || p.rq.ready() || !q.qp.waitsForReceive()
}

// begin begins the next request, or moves its next chunk.
func (q *sendQueue) begin() {
	s := q.at(q.next)
	local := span{dev: q.qp.dev, zone: q.qp.zone, need: hw.LocalRead, sgl: s.wr.SGL}
	limit := uint64(maxMessage)
	if s.wr.Op == hw.OpRead {
		local.need = hw.LocalWrite
	}
	if s.wr.Op != hw.OpSend {
		limit = maxRDMA
	}
	if !s.begun {
		q.qp.dev.clearDeadline(q.qp)
		switch {
		case s.total > limit:
			q.finishNext(hw.StatusLocalLength)
			return
		case !local.check(s.total):
			q.finishNext(hw.StatusLocalProtection)
			return
		case s.wr.Op == hw.OpRead && q.qp.readsOut == 0:
			q.finishNext(hw.StatusLocalEP)
			return
		case s.wr.Op == hw.OpRead && q.qp.peer.readsIn == 0: // two ends that pair agree on nothing
			q.finishNext(hw.StatusRemoteResponder)
			return
		}
	}
	switch s.wr.Op {
	case hw.OpSend:
		q.send(s, local)
	case hw.OpWrite:
		q.write(s, local)
	case hw.OpRead:
		s.begun, s.reading, s.due = true, true, q.qp.dev.delay()
		q.reads++
		q.next++
	}
}

// finishNext finishes the next request; retire completes it when its turn comes.
func (q *sendQueue) finishNext(status hw.Status) {
	s := q.at(q.next)
	q.next++
	q.finish(s, status)
}

func (q *sendQueue) finish(s *slot, status hw.Status) {
	s.finished, s.status = true, status
	if status != hw.StatusSuccess {
		q.failed = true
	}
}

// failAtTarget finishes a request that the target refused. With EarlyCompletion a send
// or write succeeds nevertheless, and only the connection breaks.
func (q *sendQueue) failAtTarget(s *slot, status hw.Status) {
	if !q.qp.dev.sim.cfg.EarlyCompletion || s.wr.Op == hw.OpRead {
		q.finish(s, status)
		return
	}
	q.finish(s, hw.StatusSuccess)
	q.failed = true
	op := s.wr.Op
	q.retire()
	q.qp.fail(op, status)
}

// copied is how far the copy of a request's bytes has come.
type copied uint8

const (
	copyOn     copied = iota // more is to copy
	copyDone                 // all bytes are there
	copyCut                  // the connection ended meanwhile
	sourceGone               // a region of the source is not valid any more
	targetGone
)

// copyChunk copies the next chunk of a request's bytes.
func (q *sendQueue) copyChunk(s *slot, dst, src *span) copied {
	p := q.qp.peer
	moved, dstGone, srcGone := q.qp.dev.move(dst, src, s.moved, s.total-s.moved)
	if q.qp.state != stateUp || q.qp.peer != p || !q.qp.reachesPeer() {
		return copyCut
	}
	s.moved += moved
	switch {
	case srcGone:
		return sourceGone
	case dstGone:
		return targetGone
	case s.moved == s.total:
		return copyDone
	}
	return copyOn
}

// send places a message into the peer's oldest receive.
func (q *sendQueue) send(s *slot, local span) {
	p := q.qp.peer
	if !p.rq.ready() {
		q.next++
		q.failAtTarget(s, hw.StatusReceiverNotReady)
		return
	}
	r := p.rq.first()
	far := span{dev: p.dev, zone: p.zone, need: hw.LocalWrite, sgl: r.SGL}
	if !s.begun {
		s.begun = true
		status := hw.StatusSuccess
		if total(r.SGL) < s.total {
			status = hw.StatusLocalLength
		} else if !far.check(s.total) {
			status = hw.StatusLocalProtection
		}
		if status != hw.StatusSuccess {
			q.failReceive(s, p, status)
			return
		}
	}
	p.rq.copying = true
	got := q.copyChunk(s, &far, &local)
	p.rq.copying = false
	switch got {
	case copyCut:
		p.dev.schedule(p) // the peer's flush may have waited for the copy
	case sourceGone:
		q.finishNext(hw.StatusLocalProtection)
	case targetGone:
		q.failReceive(s, p, hw.StatusLocalProtection)
	case copyDone:
		p.rq.complete(hw.WC{Op: hw.OpRecv, Len: uint32(s.total), Flags: solicited(s.wr.Flags)})
		q.finishNext(hw.StatusSuccess)
	default: // more is to copy
	}
}

func solicited(f hw.WRFlags) hw.WCFlags {
	if f&hw.WRSolicited != 0 {
		return hw.WCSolicited
	}
	return 0
}

// failReceive ends a message that the peer's receive can't take: the receive fails with
// status, and the send with StatusRemoteResponder.
func (q *sendQueue) failReceive(s *slot, p *queuePair, status hw.Status) {
	p.rq.complete(hw.WC{Status: status})
	q.next++
	q.failAtTarget(s, hw.StatusRemoteResponder)
}

// write moves a chunk into the peer's memory.
func (q *sendQueue) write(s *slot, local span) {
	far := q.remote(s, hw.RemoteWrite)
	if !s.begun {
		s.begun = true
		if !far.check(s.total) {
			q.next++
			q.failAtTarget(s, hw.StatusRemoteAccess)
			return
		}
	}
	switch q.copyChunk(s, &far, &local) {
	case sourceGone:
		q.finishNext(hw.StatusLocalProtection)
	case targetGone:
		q.next++
		q.failAtTarget(s, hw.StatusRemoteAccess)
	case copyDone:
		q.finishNext(hw.StatusSuccess)
	default: // more is to copy, or the connection ended
	}
}

// remote is the range of the peer's memory that a request names.
func (q *sendQueue) remote(s *slot, need hw.Privileges) span {
	return span{
		dev: q.qp.peer.dev, zone: q.qp.peer.zone, need: need, far: true,
		remote: [1]hw.SGE{{Addr: s.wr.RemoteAddr, Len: uint32(s.total), LKey: s.wr.RKey}},
	}
}

// response moves a chunk of the oldest outstanding read from the peer's memory.
func (q *sendQueue) response() {
	i := q.head
	for !q.at(i).reading || q.at(i).finished {
		i++
	}
	s := q.at(i)
	if s.due > 0 {
		s.due--
		return
	}
	far := q.remote(s, hw.RemoteRead)
	local := span{dev: q.qp.dev, zone: q.qp.zone, need: hw.LocalWrite, sgl: s.wr.SGL}
	if s.moved == 0 && !far.check(s.total) {
		q.finishRead(s, hw.StatusRemoteAccess)
		return
	}
	switch q.copyChunk(s, &local, &far) {
	case sourceGone:
		q.finishRead(s, hw.StatusRemoteAccess)
	case targetGone:
		q.finishRead(s, hw.StatusLocalProtection)
	case copyDone:
		q.finishRead(s, hw.StatusSuccess)
	default: // more is to copy, or the connection ended
	}
}

func (q *sendQueue) finishRead(s *slot, status hw.Status) {
	q.reads--
	q.finish(s, status)
}

// retire completes the finished requests at the head of the send queue, in order. The
// first that failed breaks the connection.
func (q *sendQueue) retire() {
	for q.head < q.next && q.at(q.head).finished {
		s := q.at(q.head)
		wr, status, n := &s.wr, s.status, s.total
		q.head++
		if status != hw.StatusSuccess || wr.Flags&hw.WRSignaled != 0 {
			q.qp.complete(sending, hw.WC{ID: wr.ID, Status: status, Op: wr.Op, Len: uint32(n)}, false)
		}
		op, failed := wr.Op, status != hw.StatusSuccess
		*s = slot{}
		if failed {
			q.qp.fail(op, status)
			return
		}
	}
	q.reportMark()
}
