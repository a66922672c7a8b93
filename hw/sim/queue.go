package sim

import "godat/hw"

// direction is one of a queue pair's queues.
type direction uint8

const (
	sending direction = iota
	receiving
)

// slot is a request in the send queue.
type slot struct {
	wr       hw.SendWR // the engine reads the owner's SGL when the request begins
	total    uint64
	moved    uint64
	begun    bool
	finished bool
	reading  bool // an RDMA read that waits for its response
	due      int  // steps until that response
	status   hw.Status
}

// sendQueue is a queue pair's send queue, whose requests the engine executes. It is a
// ring: the slots in [head, next) have begun, those in [next, tail) wait, except that the
// one at next may have moved some chunks. A slot is free again when retire or flush has
// passed it.
type sendQueue struct {
	qp               *queuePair
	slots            []slot
	head, next, tail uint64
	reads            int  // RDMA reads outstanding
	failed           bool // a request failed: none behind it begins
	mark             mark
}

func (q *sendQueue) at(i uint64) *slot { return &q.slots[i%uint64(len(q.slots))] }

// flush flushes the oldest request.
func (q *sendQueue) flush() {
	id := q.at(q.head).wr.ID
	*q.at(q.head) = slot{}
	q.head++
	q.next = max(q.next, q.head)
	q.qp.complete(sending, hw.WC{ID: id, Status: hw.StatusFlushed}, false)
}

// recvQueue is a queue pair's receive queue: a ring. copying says that the peer's engine
// is copying bytes into the oldest receive, with sim.mu released.
type recvQueue struct {
	qp         *queuePair
	srq        *sharedQueue // may be nil
	slots      []hw.RecvWR
	head, tail uint64
	copying    bool
}

func (q *recvQueue) at(i uint64) *hw.RecvWR { return &q.slots[i%uint64(len(q.slots))] }

// ready reports whether there is a receive for a message.
func (q *recvQueue) ready() bool {
	return q.head < q.tail || q.srq != nil && len(q.srq.wrs) > 0
}

// first is the receive into which the next message goes. The caller has checked ready.
func (q *recvQueue) first() *hw.RecvWR {
	if s := q.srq; s != nil && q.head == q.tail {
		*q.at(q.tail) = s.wrs[0]
		q.tail++
		s.wrs = s.wrs[1:]
		s.checkLow()
	}
	return q.at(q.head)
}

// complete completes the oldest receive.
func (q *recvQueue) complete(wc hw.WC) {
	wc.ID = q.at(q.head).ID
	*q.at(q.head) = hw.RecvWR{}
	q.head++
	q.qp.complete(receiving, wc, false)
}

// refusePost returns an error unless the queue pair is in one of the states in which it
// takes posts.
func (q *queuePair) refusePost(op string, states ...state) error {
	for _, s := range states {
		if q.state == s {
			return nil
		}
	}
	if q.state == stateBroken {
		q.dev.violateLocked("%s after Break", op)
	}
	return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the queue pair is %v", q.state)
}

// PostSend implements [hw.QP].
func (q *queuePair) PostSend(wrs []hw.SendWR) (int, error) {
	const op = "sim.PostSend"
	q.enter("PostSend")
	defer q.leave()
	q.dev.calls.posts.PostSends++
	if !q.answering() {
		if err := q.refusePost(op, stateUp, stateDown); err != nil {
			return 0, err
		}
	}
	defer q.dev.schedule(q)
	for i := range wrs {
		if err := q.sq.admit(op, &wrs[i]); err != nil {
			return i, err
		}
		*q.sq.at(q.sq.tail) = slot{wr: wrs[i], total: total(wrs[i].SGL)}
		q.sq.tail++
		q.dev.calls.posts.Sends++
	}
	return len(wrs), nil
}

// admit makes the checks that are made when a request is posted.
func (q *sendQueue) admit(op string, wr *hw.SendWR) error {
	switch {
	case q.qp.draining:
		q.qp.dev.violateLocked("PostSend after Drain")
		return hw.Errorf(op, hw.InvalidState, hw.StateEPDisconnectPending, "Drain was called")
	case !q.qp.dev.sim.cfg.Ops.Has(wr.Op):
		return hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "the device has no %v", wr.Op)
	case len(wr.SGL) > q.qp.cfg.SendSegments:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg3, "%d segments, at most %d", len(wr.SGL), q.qp.cfg.SendSegments)
	case q.tail-q.head == uint64(len(q.slots)):
		q.qp.dev.violateLocked("more than %d sends outstanding", len(q.slots))
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceCredits, "%d sends are outstanding", len(q.slots))
	}
	return nil
}

// PostRecv implements [hw.QP].
func (q *queuePair) PostRecv(wrs []hw.RecvWR) (int, error) {
	const op = "sim.PostRecv"
	q.enter("PostRecv")
	defer q.leave()
	q.dev.calls.posts.PostRecvs++
	if err := q.refusePost(op, stateNew, stateConnecting, stateAccepting, stateUp, stateRefused, stateDown); err != nil {
		return 0, err
	}
	if q.rq.srq != nil {
		return 0, hw.Errorf(op, hw.InvalidState, hw.StateSRQInUse, "receives come from the shared receive queue")
	}
	defer q.receivesPosted()
	for i := range wrs {
		switch {
		case len(wrs[i].SGL) > q.cfg.RecvSegments:
			return i, hw.Errorf(op, hw.InvalidParameter, hw.Arg3, "%d segments, at most %d", len(wrs[i].SGL), q.cfg.RecvSegments)
		case q.rq.tail-q.rq.head == uint64(len(q.rq.slots)):
			q.dev.violateLocked("more than %d receives outstanding", len(q.rq.slots))
			return i, hw.Errorf(op, hw.InsufficientResources, hw.ResourceCredits, "%d receives are outstanding", len(q.rq.slots))
		}
		*q.rq.at(q.rq.tail) = wrs[i]
		q.rq.tail++
		q.dev.calls.posts.Recvs++
	}
	return len(wrs), nil
}

// receivesPosted schedules the work that new receives may allow: the peer's send that waits
// for one, or the flush of this queue pair.
func (q *queuePair) receivesPosted() {
	if q.peer != nil {
		q.peer.dev.schedule(q.peer)
	}
	if q.state == stateDown {
		q.dev.schedule(q)
	}
}

// complete stores a completion. In a failed one only ID and Status have a meaning, so it
// fills the other fields with garbage.
func (q *queuePair) complete(dir direction, wc hw.WC, end bool) {
	cq := q.sendCQ
	if dir == receiving {
		cq = q.recvCQ
		if q.rq.srq != nil && !end {
			wc.QP = q.cfg.Number
		}
	}
	if wc.Status != hw.StatusSuccess && !end {
		wc.Len, wc.Imm = q.dev.rng.Uint32(), q.dev.rng.Uint32()
		wc.Op, wc.Flags = hw.Op(q.dev.rng.UintN(256)), hw.WCFlags(q.dev.rng.UintN(256))
	}
	e := cqEntry{wc: wc}
	if end {
		e.end = q
	}
	cq.push(e, wc.Status != hw.StatusSuccess || wc.Flags&hw.WCSolicited != 0)
}

// flush completes one outstanding request with StatusFlushed, or ends a queue. The seed
// chooses the queue. work calls it only when no fact is left to tell.
func (q *queuePair) flush() (more bool) {
	sends := q.sq.head < q.sq.tail
	recvs := q.rq.head < q.rq.tail
	switch {
	case sends && (!recvs || q.rq.copying || q.dev.rng.IntN(2) == 0):
		q.sq.flush()
	case recvs && !q.rq.copying:
		q.rq.complete(hw.WC{Status: hw.StatusFlushed})
	case recvs || q.state != stateBroken:
		return false // the end of the copy, or Break, schedules the queue pair again
	case !q.ended[sending] || !q.ended[receiving]:
		q.end()
	default:
		return false
	}
	return true
}

// end ends one of the queues that have not ended.
func (q *queuePair) end() {
	dir, id := sending, q.cfg.SendEnd
	if q.ended[sending] || !q.ended[receiving] && q.dev.rng.IntN(2) == 0 {
		dir, id = receiving, q.cfg.RecvEnd
	}
	q.ended[dir] = true
	if dir == sending {
		q.sq.head, q.sq.next, q.sq.tail, q.sq.reads, q.sq.failed = 0, 0, 0, 0, false
		q.sq.mark.due = false
	} else {
		q.rq.head, q.rq.tail = 0, 0
	}
	q.complete(dir, hw.WC{ID: id, Status: hw.StatusFlushed, Op: hw.OpEnd}, true)
}
