package hwtest

import (
	"slices"

	"godat/hw"
)

// simSRQ is a shared receive queue. The engine of a sender moves the first receive
// to the queue pair that a message arrives at, when it begins to place it; from
// then on it is as one of that queue pair's own.
type simSRQ struct {
	// Immutable.
	dev   *SimDevice
	zone  *simZone
	segs  int
	onLow func()

	// Guarded by dev.sim.mu.
	wrs    []hw.RecvWR // the first is taken next
	depth  int
	low    int // 0: not armed
	users  []*simQP
	closed bool
}

var (
	_ hw.SharedReceiver = (*SimDevice)(nil)
	_ hw.SRQCounter     = (*simSRQ)(nil)
)

// NewSRQ implements [hw.SharedReceiver].
func (d *SimDevice) NewSRQ(cfg hw.SRQConfig) (hw.SRQ, error) {
	const op = "sim.NewSRQ"
	z, _ := cfg.Zone.(*simZone)
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	switch {
	case d.closed:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the device is closed")
	case z == nil || z.dev != d || z.closed:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "not an open zone of this device")
	case cfg.Depth < 1 || cfg.Depth > simMaxDepth || outside(cfg.Segments, simMaxSegments):
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "a limit of Attr is exceeded")
	}
	z.users++
	d.children++
	return &simSRQ{dev: d, zone: z, segs: cfg.Segments, onLow: cfg.OnLow, depth: cfg.Depth}, nil
}

func (s *simSRQ) gone(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleSRQ, "the shared receive queue is closed")
}

// PostRecv implements [hw.SRQ].
func (s *simSRQ) PostRecv(wrs []hw.RecvWR) (int, error) {
	const op = "sim.SRQ.PostRecv"
	s.dev.sim.mu.Lock()
	defer s.dev.sim.mu.Unlock()
	if s.closed {
		return 0, s.gone(op)
	}
	defer s.wake()
	for i := range wrs {
		switch {
		case len(wrs[i].SGL) > s.segs:
			return i, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%d segments, at most %d", len(wrs[i].SGL), s.segs)
		case len(s.wrs) >= s.depth:
			return i, hw.Errorf(op, hw.InsufficientResources, hw.ResourceSRQ, "%d receives are in the queue", len(s.wrs))
		}
		s.wrs = append(s.wrs, wrs[i])
	}
	return len(wrs), nil
}

// wake has those look again that may wait for a receive.
func (s *simSRQ) wake() {
	for _, q := range s.users {
		q.received()
	}
}

// Arm implements [hw.SRQ].
func (s *simSRQ) Arm(limit int) error {
	const op = "sim.SRQ.Arm"
	s.dev.sim.mu.Lock()
	defer s.dev.sim.mu.Unlock()
	switch {
	case s.closed:
		return s.gone(op)
	case outside(limit, s.depth):
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "limit %d of %d", limit, s.depth)
	}
	s.low = limit
	s.checkLow()
	return nil
}

// checkLow has the engine tell that the queue is low, if it is.
func (s *simSRQ) checkLow() {
	if len(s.wrs) < s.low {
		s.low = 0
		s.dev.lows = append(s.dev.lows, s)
		s.dev.wakeEngine()
	}
}

// tellLow tells the owner of the first queue that is low.
func (d *SimDevice) tellLow() {
	s := d.lows[0]
	d.lows = d.lows[1:]
	if s.closed || s.onLow == nil {
		return
	}
	d.sim.mu.Unlock()
	s.onLow()
	d.sim.mu.Lock()
}

// Resize implements [hw.SRQ].
func (s *simSRQ) Resize(depth int) error {
	const op = "sim.SRQ.Resize"
	s.dev.sim.mu.Lock()
	defer s.dev.sim.mu.Unlock()
	switch {
	case s.closed:
		return s.gone(op)
	case depth < 1 || depth > simMaxDepth:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "depth %d", depth)
	case len(s.wrs) > depth:
		return hw.Errorf(op, hw.InvalidState, hw.StateSRQOperational, "%d receives are in the queue", len(s.wrs))
	}
	s.depth = depth
	return nil
}

// Available implements [hw.SRQCounter].
func (s *simSRQ) Available() int {
	s.dev.sim.mu.Lock()
	defer s.dev.sim.mu.Unlock()
	return len(s.wrs)
}

// Close implements [hw.SRQ].
func (s *simSRQ) Close() error {
	const op = "sim.SRQ.Close"
	s.dev.sim.mu.Lock()
	defer s.dev.sim.mu.Unlock()
	switch {
	case s.closed:
		return s.gone(op)
	case len(s.users) > 0:
		return hw.Errorf(op, hw.InvalidState, hw.StateSRQInUse, "%d queue pairs take from it", len(s.users))
	}
	s.closed, s.wrs = true, nil
	s.zone.users--
	s.dev.children--
	return nil
}

// shared finds the device's queue behind a handle.
func (d *SimDevice) shared(op string, h hw.SRQ, z *simZone) (*simSRQ, error) {
	if h == nil {
		return nil, nil
	}
	s, _ := h.(*simSRQ)
	switch {
	case s == nil || s.dev != d || s.closed:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleSRQ, "not an open shared receive queue of this device")
	case s.zone != z:
		return nil, hw.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the shared receive queue is of another zone")
	}
	return s, nil
}

// join and part count a queue pair that takes from the queue; there may be none.
func (s *simSRQ) join(q *simQP) {
	if s != nil {
		s.users = append(s.users, q)
	}
}

func (s *simSRQ) part(q *simQP) {
	if s != nil {
		s.users = slices.DeleteFunc(s.users, func(o *simQP) bool { return o == q })
	}
}

// hasReceive reports whether a message for the queue pair finds a receive.
func (q *simQP) hasReceive() bool {
	return q.rq.head < q.rq.tail || q.srq != nil && len(q.srq.wrs) > 0
}

// receive is the receive that a message goes to. There is one.
func (q *simQP) receive() *hw.RecvWR {
	if s := q.srq; s != nil && q.rq.head == q.rq.tail {
		*q.rq.at(q.rq.tail) = s.wrs[0]
		q.rq.tail++
		s.wrs = s.wrs[1:]
		s.checkLow()
	}
	return q.rq.at(q.rq.head)
}
