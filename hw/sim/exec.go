package sim

import (
	"time"

	"godat/hw"
)

// work does one piece of a queue pair's work and reports whether there may be more. The
// queue pair's own engine calls it with sim.mu held; work releases it while it copies
// memory and while it tells a fact.
func (q *queuePair) work() (more bool) {
	if q.nfacts > 0 {
		q.tell()
		return true
	}
	switch q.state {
	case stateConnecting:
		return q.connecting()
	case stateAccepting:
		return q.accepting()
	case stateUp:
		return q.transfer()
	case stateDown, stateBroken:
		return q.flush()
	default: // nothing to do
		return false
	}
}

// transfer is the work of a connected queue pair.
func (q *queuePair) transfer() (more bool) {
	switch {
	case q.notice != hw.ReasonNone:
		q.peer = nil
		q.down(q.notice, q.noticed)
		return true
	case q.lost > 0:
		return q.losing()
	case q.held:
		return false // Established has not returned; after tell the queue pair runs again
	}
	q.pace()
	read, begin := q.sq.reads > 0 && q.heard(), q.canBegin()
	switch {
	case q.state != stateUp || q.notice != hw.ReasonNone || q.lost > 0:
		return true // the connection ended during the pause
	case read && (!begin || q.dev.rng.IntN(2) == 0):
		q.response()
	case begin:
		q.begin()
	case q.draining && q.sq.head == q.sq.tail:
		if q.dev.rng.IntN(2) == 0 {
			q.part(hw.ReasonPeer, nil) // by chance now, otherwise only at Break
		}
		q.down(hw.ReasonDrained, nil)
	default:
		return false
	}
	q.retire()
	return true
}

// losing counts down the steps until the queue pair notices that its peer is gone, and
// then fails the oldest send and ends the connection.
func (q *queuePair) losing() (more bool) {
	if q.lost--; q.lost > 0 {
		return true
	}
	if q.sq.head < q.sq.tail {
		s := q.sq.at(q.sq.head)
		s.finished, s.status = true, hw.StatusTransport
		q.sq.next = max(q.sq.next, q.sq.head+1)
		q.retire()
	}
	q.down(hw.ReasonBroken, &hw.Cause{Text: "the peer is gone", Err: hw.StatusTransport.Err()})
	return true
}

// pace pauses for Config.Every before a work request begins, with sim.mu released.
func (q *queuePair) pace() {
	d := q.dev
	if every := d.sim.cfg.Every; every > 0 && q.sq.next < q.sq.tail {
		d.sim.mu.Unlock()
		pause(every)
		d.sim.mu.Lock()
	}
}

// canBegin reports whether the next request may begin or go on. A fenced request waits
// for the outstanding reads, a read for a credit, and a send for the peer's receive.
func (q *queuePair) canBegin() bool {
	if q.sq.failed || q.sq.next == q.sq.tail || !q.heard() {
		return false
	}
	p, s := q.peer, q.sq.at(q.sq.next)
	if s.begun {
		return true
	}
	if s.wr.Flags&hw.WRFence != 0 && q.sq.reads > 0 {
		return false
	}
	if s.wr.Op == hw.OpRead {
		return q.sq.reads < q.readsOut || q.readsOut == 0
	}
	return s.wr.Op != hw.OpSend || p.hasReceive() || !q.waitsForReceive()
}

// heard reports whether a message that is sent now reaches the peer. When the answer
// becomes true, or the peer is lost, the queue pair is scheduled.
func (q *queuePair) heard() bool { return q.peer != nil && q.peer.hears() }

// hears reports whether the queue pair takes its peer's messages.
func (q *queuePair) hears() bool {
	return q.state == stateUp && !q.held && q.notice == hw.ReasonNone || q.answering()
}

// waitsForReceive reports whether a send that finds no receive waits for one, and sets
// its deadline. PostRecv of the peer, or the deadline, schedules the queue pair again.
func (q *queuePair) waitsForReceive() bool {
	if q.dev.sim.cfg.NoNotReadyWait || q.cfg.NotReady == 0 {
		return false
	}
	if q.deadline.IsZero() {
		q.dev.setDeadline(q, time.Now().Add(q.cfg.NotReady))
	}
	return true
}

// late acts on the passed deadline of a queue pair: of its attempt to connect, or of a
// send that waited for a receive.
func (q *queuePair) late() {
	switch q.state {
	case stateConnecting:
		q.attempt.withdraw()
		q.refused(hw.ReasonTimeout, nil, &hw.Cause{
			Text: "the peer did not answer in time", Err: hw.ErrTimeout, Local: q.attempt.remote, Remote: q.attempt.local,
		})
	case stateUp:
		if p := q.peer; q.heard() && !p.hasReceive() && q.sq.next < q.sq.tail {
			q.finishNext(hw.StatusReceiverNotReady)
			q.retire()
		}
		q.dev.schedule(q)
	default: // the wait had ended before the deadline
	}
}

// begin begins the next request, or moves its next chunk.
func (q *queuePair) begin() {
	s := q.sq.at(q.sq.next)
	local := span{dev: q.dev, zone: q.zone, need: hw.LocalRead, sgl: s.wr.SGL}
	limit := uint64(maxMessage)
	if s.wr.Op == hw.OpRead {
		local.need = hw.LocalWrite
	}
	if s.wr.Op != hw.OpSend {
		limit = maxRDMA
	}
	if !s.begun {
		q.dev.clearDeadline(q)
		switch {
		case s.total > limit:
			q.finishNext(hw.StatusLocalLength)
			return
		case !local.check(s.total):
			q.finishNext(hw.StatusLocalProtection)
			return
		case s.wr.Op == hw.OpRead && q.readsOut == 0:
			q.finishNext(hw.StatusLocalEP)
			return
		}
	}
	switch s.wr.Op {
	case hw.OpSend:
		q.send(s, local)
	case hw.OpWrite:
		q.write(s, local)
	case hw.OpRead:
		s.begun, s.reading, s.due = true, true, q.dev.delay()
		q.sq.reads++
		q.sq.next++
	}
}

// delay chooses a number of steps up to Config.MaxDelay.
func (d *Device) delay() int {
	if n := d.sim.cfg.MaxDelay; n > 0 {
		return d.rng.IntN(n + 1)
	}
	return 0
}

// finishNext finishes the next request; retire completes it when its turn comes.
func (q *queuePair) finishNext(status hw.Status) {
	s := q.sq.at(q.sq.next)
	q.sq.next++
	q.finish(s, status)
}

func (q *queuePair) finish(s *slot, status hw.Status) {
	s.finished, s.status = true, status
	if status != hw.StatusSuccess {
		q.sq.failed = true
	}
}

// failAtTarget finishes a request that the target refused. With EarlyCompletion a send
// or write succeeds nevertheless, and only the connection breaks.
func (q *queuePair) failAtTarget(s *slot, status hw.Status) {
	if !q.dev.sim.cfg.EarlyCompletion || s.wr.Op == hw.OpRead {
		q.finish(s, status)
		return
	}
	q.finish(s, hw.StatusSuccess)
	q.sq.failed = true
	op := s.wr.Op
	q.retire()
	q.fail(op, status)
}

// send places a message into the peer's oldest receive.
func (q *queuePair) send(s *slot, local span) {
	p := q.peer
	if !p.hasReceive() {
		q.sq.next++
		q.failAtTarget(s, hw.StatusReceiverNotReady)
		return
	}
	r := p.receive()
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
	moved, farGone, gone := q.move(&far, &local, s.moved, s.total-s.moved)
	p.rq.copying = false
	if q.state != stateUp || q.peer != p || !q.heard() {
		p.dev.schedule(p) // the peer's flush may have waited for the copy
		return
	}
	s.moved += moved
	switch {
	case gone:
		q.finishNext(hw.StatusLocalProtection)
	case farGone:
		q.failReceive(s, p, hw.StatusLocalProtection)
	case s.moved == s.total:
		p.completeReceive(hw.WC{Op: hw.OpRecv, Len: uint32(s.total), Flags: solicited(s.wr.Flags)})
		q.finishNext(hw.StatusSuccess)
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
func (q *queuePair) failReceive(s *slot, p *queuePair, status hw.Status) {
	p.completeReceive(hw.WC{Status: status})
	q.sq.next++
	q.failAtTarget(s, hw.StatusRemoteResponder)
}

// completeReceive completes the queue pair's oldest receive.
func (q *queuePair) completeReceive(wc hw.WC) {
	wc.ID = q.rq.at(q.rq.head).ID
	*q.rq.at(q.rq.head) = hw.RecvWR{}
	q.rq.head++
	q.complete(receiving, wc, false)
}

// write moves a chunk into the peer's memory.
func (q *queuePair) write(s *slot, local span) {
	far := q.remote(s, hw.RemoteWrite)
	if !s.begun {
		s.begun = true
		if !far.check(s.total) {
			q.sq.next++
			q.failAtTarget(s, hw.StatusRemoteAccess)
			return
		}
	}
	p := q.peer
	moved, farGone, gone := q.move(&far, &local, s.moved, s.total-s.moved)
	if q.state != stateUp || q.peer != p || !q.heard() {
		return
	}
	s.moved += moved
	switch {
	case gone:
		q.finishNext(hw.StatusLocalProtection)
	case farGone:
		q.sq.next++
		q.failAtTarget(s, hw.StatusRemoteAccess)
	case s.moved == s.total:
		q.finishNext(hw.StatusSuccess)
	}
}

// remote is the range of the peer's memory that a request names.
func (q *queuePair) remote(s *slot, need hw.Privileges) span {
	return span{
		dev: q.peer.dev, zone: q.peer.zone, need: need, far: true,
		remote: [1]hw.SGE{{Addr: s.wr.RemoteAddr, Len: uint32(s.total), LKey: s.wr.RKey}},
	}
}

// response moves a chunk of the oldest outstanding read from the peer's memory.
func (q *queuePair) response() {
	i := q.sq.head
	for !q.sq.at(i).reading || q.sq.at(i).finished {
		i++
	}
	s := q.sq.at(i)
	if s.due > 0 {
		s.due--
		return
	}
	p := q.peer
	far := q.remote(s, hw.RemoteRead)
	local := span{dev: q.dev, zone: q.zone, need: hw.LocalWrite, sgl: s.wr.SGL}
	if s.moved == 0 && !far.check(s.total) {
		q.answered(s, hw.StatusRemoteAccess)
		return
	}
	moved, gone, farGone := q.move(&local, &far, s.moved, s.total-s.moved)
	if q.state != stateUp || q.peer != p {
		return
	}
	s.moved += moved
	switch {
	case farGone:
		q.answered(s, hw.StatusRemoteAccess)
	case gone:
		q.answered(s, hw.StatusLocalProtection)
	case s.moved == s.total:
		q.answered(s, hw.StatusSuccess)
	}
}

func (q *queuePair) answered(s *slot, status hw.Status) {
	q.sq.reads--
	q.finish(s, status)
}
