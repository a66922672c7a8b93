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

// sendRing is a ring of slots: those in [head, next) have begun, those in [next, tail)
// wait, except that the one at next may have moved some chunks. A slot is free again
// when retire or flush has passed it.
type sendRing struct {
	slots            []slot
	head, next, tail uint64
	reads            int  // RDMA reads outstanding
	failed           bool // a request failed: none behind it begins
}

func (s *sendRing) at(i uint64) *slot { return &s.slots[i%uint64(len(s.slots))] }

// recvRing is a ring of receives. copying says that the peer's engine is copying bytes
// into the oldest receive, with sim.mu released.
type recvRing struct {
	slots      []hw.RecvWR
	head, tail uint64
	copying    bool
}

func (r *recvRing) at(i uint64) *hw.RecvWR { return &r.slots[i%uint64(len(r.slots))] }

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
	if !q.answering() {
		if err := q.refusePost(op, stateUp, stateDown); err != nil {
			return 0, err
		}
	}
	defer q.dev.schedule(q)
	for i := range wrs {
		if err := q.admit(op, &wrs[i]); err != nil {
			return i, err
		}
		*q.sq.at(q.sq.tail) = slot{wr: wrs[i], total: total(wrs[i].SGL)}
		q.sq.tail++
	}
	return len(wrs), nil
}

// admit makes the checks that are made when a request is posted.
func (q *queuePair) admit(op string, wr *hw.SendWR) error {
	switch {
	case q.draining:
		q.dev.violateLocked("PostSend after Drain")
		return hw.Errorf(op, hw.InvalidState, hw.StateEPDisconnectPending, "draining")
	case !q.dev.sim.cfg.Ops.Has(wr.Op):
		return hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "no %v", wr.Op)
	case len(wr.SGL) > q.cfg.SendSegments:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg3, "%d segments, at most %d", len(wr.SGL), q.cfg.SendSegments)
	case q.sq.tail-q.sq.head == uint64(len(q.sq.slots)):
		q.dev.violateLocked("more than %d sends outstanding", len(q.sq.slots))
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceCredits, "%d sends are outstanding", len(q.sq.slots))
	}
	return nil
}

// PostRecv implements [hw.QP].
func (q *queuePair) PostRecv(wrs []hw.RecvWR) (int, error) {
	const op = "sim.PostRecv"
	q.enter("PostRecv")
	defer q.leave()
	if err := q.refusePost(op, stateNew, stateConnecting, stateAccepting, stateUp, stateRefused, stateDown); err != nil {
		return 0, err
	}
	if q.srq != nil {
		return 0, hw.Errorf(op, hw.InvalidState, hw.StateSRQInUse, "receives come from the shared receive queue")
	}
	defer q.received()
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
	}
	return len(wrs), nil
}

// received schedules the work that new receives may allow: the peer's send that waits
// for one, or the flush of this queue pair.
func (q *queuePair) received() {
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
		if q.srq != nil && !end {
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

// retire completes the finished requests at the head of the send queue, in order. The
// first that failed breaks the connection.
func (q *queuePair) retire() {
	for q.sq.head < q.sq.next && q.sq.at(q.sq.head).finished {
		s := q.sq.at(q.sq.head)
		wr, status, n := &s.wr, s.status, s.total
		q.sq.head++
		if status != hw.StatusSuccess || wr.Flags&hw.WRSignaled != 0 {
			q.complete(sending, hw.WC{ID: wr.ID, Status: status, Op: wr.Op, Len: uint32(n)}, false)
		}
		op, failed := wr.Op, status != hw.StatusSuccess
		*s = slot{}
		if failed {
			q.fail(op, status)
			return
		}
	}
}

// flush completes one outstanding request with StatusFlushed, or ends a queue. The seed
// chooses the queue. work calls it only when no fact is left to tell.
func (q *queuePair) flush() (more bool) {
	sends := q.sq.head < q.sq.tail
	recvs := q.rq.head < q.rq.tail
	switch {
	case sends && (!recvs || q.rq.copying || q.dev.rng.IntN(2) == 0):
		id := q.sq.at(q.sq.head).wr.ID
		*q.sq.at(q.sq.head) = slot{}
		q.sq.head++
		q.sq.next = max(q.sq.next, q.sq.head)
		q.complete(sending, hw.WC{ID: id, Status: hw.StatusFlushed}, false)
	case recvs && !q.rq.copying:
		id := q.rq.at(q.rq.head).ID
		*q.rq.at(q.rq.head) = hw.RecvWR{}
		q.rq.head++
		q.complete(receiving, hw.WC{ID: id, Status: hw.StatusFlushed}, false)
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
	} else {
		q.rq.head, q.rq.tail = 0, 0
	}
	q.complete(dir, hw.WC{ID: id, Status: hw.StatusFlushed, Op: hw.OpEnd}, true)
}
