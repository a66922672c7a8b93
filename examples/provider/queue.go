package provider

import "godat/hw"

// phase is where a queue pair is in its life.
type phase uint8

const (
	fresh      phase = iota
	connecting       // asked or accepted
	up               // connected
	down             // refused, drained, or told that the connection is over; waits for Break
	over             // both queues have ended
)

// queuePair is a queue pair. A request is executed when it is posted, so only receives
// wait.
type queuePair struct {
	dev    *device
	cfg    hw.QPConfig
	zone   *zone
	local  addr
	remote addr

	phase phase
	life  int        // counts the calls of Break
	peer  *queuePair // while up, or drained
	recvs []hw.RecvWR
}

func (d *device) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	d.p.mu.Lock()
	defer d.p.unlock()
	if cfg.SRQ != nil {
		return nil, hw.Errorf("NewQP", hw.ModelNotSupported, hw.NoSubtype, "shared receive queues")
	}
	z, err := d.use(cfg.Zone, 1)
	if err != nil {
		return nil, err
	}
	return &queuePair{dev: d, cfg: cfg, zone: z}, nil
}

func (q *queuePair) PostRecv(wrs []hw.RecvWR) (int, error) {
	q.dev.p.mu.Lock()
	defer q.dev.p.unlock()
	q.recvs = append(q.recvs, wrs...)
	return len(wrs), nil
}

func (q *queuePair) PostSend(wrs []hw.SendWR) (int, error) {
	q.dev.p.mu.Lock()
	defer q.dev.p.unlock()
	for i := range wrs {
		wr := &wrs[i]
		if !q.dev.Attr().Ops.Has(wr.Op) {
			return i, hw.Errorf("PostSend", hw.ModelNotSupported, hw.NoSubtype, "the operation %v", wr.Op)
		}
		status, n := hw.StatusFlushed, uint64(0)
		if q.phase == up {
			status, n = q.execute(wr)
		}
		if status != hw.StatusSuccess || wr.Flags&hw.WRSignaled != 0 {
			q.dev.p.complete(q.cfg.SendSink, hw.WC{ID: wr.ID, Op: wr.Op, Status: status, Len: uint32(n)})
		}
		if status != hw.StatusSuccess && q.phase == up {
			here, there := hw.SideLocal, hw.SidePeer
			if status == hw.StatusRemoteAccess || status == hw.StatusRemoteResponder { // the peer found it
				here, there = there, here
			}
			peer, text := q.peer, wr.Op.String()+" failed: "+status.String()
			q.lost(hw.ReasonBroken, here, text)
			peer.lost(hw.ReasonBroken, there, text)
		}
	}
	return len(wrs), nil
}

// execute moves the bytes of a request.
func (q *queuePair) execute(wr *hw.SendWR) (hw.Status, uint64) {
	p, need := q.dev.p, hw.LocalRead
	if wr.Op == hw.OpRead {
		need = hw.LocalWrite
	}
	local, n, ok := p.gather(q.zone, wr.SGL, need)
	switch attr := q.dev.Attr(); {
	case n > attr.MaxMessage: // MaxRDMA is the same
		return hw.StatusLocalLength, 0
	case !ok:
		return hw.StatusLocalProtection, 0
	case wr.Op == hw.OpSend:
		return q.peer.receive(local, n, wr.Flags), n
	case n == 0:
		return hw.StatusSuccess, 0
	}
	need = hw.RemoteWrite
	if wr.Op == hw.OpRead {
		need = hw.RemoteRead
	}
	remote, ok := p.reach(q.peer.zone, wr.RemoteAddr, uint32(n), wr.RKey, need)
	switch {
	case !ok:
		return hw.StatusRemoteAccess, 0
	case wr.Op == hw.OpWrite:
		move([][]byte{remote}, local)
	default:
		move(local, [][]byte{remote})
	}
	return hw.StatusSuccess, n
}

// receive puts a message into the first receive. It returns the status of the send.
func (q *queuePair) receive(message [][]byte, n uint64, flags hw.WRFlags) hw.Status {
	if len(q.recvs) == 0 {
		return hw.StatusReceiverNotReady
	}
	wr := q.recvs[0]
	q.recvs = q.recvs[1:]
	into, room, ok := q.dev.p.gather(q.zone, wr.SGL, hw.LocalWrite)
	wc := hw.WC{ID: wr.ID, Op: hw.OpRecv, Len: uint32(n)}
	switch {
	case !ok:
		wc.Status = hw.StatusLocalProtection
	case n > room:
		wc.Status = hw.StatusLocalLength
	default:
		move(into, message)
	}
	if flags&hw.WRSolicited != 0 {
		wc.Flags = hw.WCSolicited
	}
	q.dev.p.complete(q.cfg.RecvSink, wc)
	if wc.Status != hw.StatusSuccess {
		return hw.StatusRemoteResponder
	}
	return hw.StatusSuccess
}

// move copies all of from, for which to has room.
func move(to, from [][]byte) {
	for len(from) > 0 && len(to) > 0 {
		n := copy(to[0], from[0])
		to[0], from[0] = to[0][n:], from[0][n:]
		if len(to[0]) == 0 {
			to = to[1:]
		}
		if len(from[0]) == 0 {
			from = from[1:]
		}
	}
}

// lost tells the owner that the connection is over, unless it knows.
func (q *queuePair) lost(why hw.Reason, found hw.Side, text string) {
	if q.phase == up {
		q.phase = down
		cause := &hw.Cause{Text: text, Found: found, Local: q.local, Remote: q.remote}
		q.dev.p.tell(func() { q.cfg.Facts.Down(why, cause) })
	}
}

// Drain has nothing to wait for.
func (q *queuePair) Drain() {
	q.dev.p.mu.Lock()
	defer q.dev.p.unlock()
	q.lost(hw.ReasonDrained, hw.SideLocal, "drained")
}

func (q *queuePair) Break(orderly bool) {
	q.dev.p.mu.Lock()
	defer q.dev.p.unlock()
	peer := q.peer
	q.phase, q.peer = over, nil
	q.life++
	for _, wr := range q.recvs {
		q.dev.p.complete(q.cfg.RecvSink, hw.WC{ID: wr.ID, Op: hw.OpRecv, Status: hw.StatusFlushed})
	}
	q.recvs = nil
	q.dev.p.complete(q.cfg.SendSink, hw.WC{ID: q.cfg.SendEnd, Op: hw.OpEnd})
	q.dev.p.complete(q.cfg.RecvSink, hw.WC{ID: q.cfg.RecvEnd, Op: hw.OpEnd})
	switch {
	case peer == nil:
	case orderly:
		peer.lost(hw.ReasonPeer, hw.SidePeer, "the peer ended the connection")
	default:
		peer.lost(hw.ReasonBroken, hw.SidePeer, "the peer broke the connection")
	}
}

func (q *queuePair) Reset() error { return q.renew("Reset", 0) }

func (q *queuePair) Close() error { return q.renew("Close", -1) }

// renew makes the queue pair as new, and gives up its place in the zone for Close.
func (q *queuePair) renew(op string, users int) error {
	q.dev.p.mu.Lock()
	defer q.dev.p.unlock()
	if q.phase != fresh && q.phase != over {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the queue pair lives")
	}
	q.phase, q.recvs = fresh, nil
	_, err := q.dev.use(q.zone, users)
	return err
}
