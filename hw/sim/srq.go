package sim

import (
	"slices"

	"godat/hw"
)

// sharedQueue implements [hw.SRQ]. When a sender's engine begins to place a message, it
// moves the first receive to the receive queue of the queue pair at which the message
// arrives; from then on the receive is that queue pair's own.
type sharedQueue struct {
	// Immutable.
	dev   *Device
	zone  *zone
	segs  int
	onLow func()

	// Guarded by dev.sim.mu.
	wrs    []hw.RecvWR // the next message takes the first
	depth  int
	low    int // 0: not armed
	users  []*queuePair
	closed bool
}

var (
	_ hw.SharedReceiver = (*Device)(nil)
	_ hw.SRQCounter     = (*sharedQueue)(nil)
)

// NewSRQ implements [hw.SharedReceiver].
func (d *Device) NewSRQ(cfg hw.SRQConfig) (hw.SRQ, error) {
	const op = "sim.NewSRQ"
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	z, err := d.openZone(op, cfg.Zone)
	switch {
	case err != nil:
		return nil, err
	case cfg.Depth < 1 || cfg.Depth > maxDepth || outside(cfg.Segments, maxSegments):
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "a limit of Attr is exceeded")
	}
	z.users++
	d.children++
	return &sharedQueue{dev: d, zone: z, segs: cfg.Segments, onLow: cfg.OnLow, depth: cfg.Depth}, nil
}

func (s *sharedQueue) closedError(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleSRQ, "the shared receive queue is closed")
}

// PostRecv implements [hw.SRQ].
func (s *sharedQueue) PostRecv(wrs []hw.RecvWR) (int, error) {
	const op = "sim.SRQ.PostRecv"
	s.dev.sim.mu.Lock()
	defer s.dev.sim.mu.Unlock()
	if s.closed {
		return 0, s.closedError(op)
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

// wake schedules the senders that may be waiting for a receive.
func (s *sharedQueue) wake() {
	for _, q := range s.users {
		q.receivesPosted()
	}
}

// Arm implements [hw.SRQ].
func (s *sharedQueue) Arm(limit int) error {
	const op = "sim.SRQ.Arm"
	s.dev.sim.mu.Lock()
	defer s.dev.sim.mu.Unlock()
	switch {
	case s.closed:
		return s.closedError(op)
	case outside(limit, s.depth):
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "limit %d of %d", limit, s.depth)
	}
	s.low = limit
	s.checkLow()
	return nil
}

// checkLow disarms the queue and makes the engine call OnLow, if fewer receives are left
// than the limit.
func (s *sharedQueue) checkLow() {
	if len(s.wrs) < s.low {
		s.low = 0
		s.dev.lowQueues = append(s.dev.lowQueues, s)
		s.dev.wakeEngine()
	}
}

// callOnLow calls OnLow of the first queue in lowQueues, with sim.mu released.
func (d *Device) callOnLow() {
	s := d.lowQueues[0]
	d.lowQueues = d.lowQueues[1:]
	if s.closed || s.onLow == nil {
		return
	}
	d.sim.mu.Unlock()
	s.onLow()
	d.sim.mu.Lock()
}

// Resize implements [hw.SRQ].
func (s *sharedQueue) Resize(depth int) error {
	const op = "sim.SRQ.Resize"
	s.dev.sim.mu.Lock()
	defer s.dev.sim.mu.Unlock()
	switch {
	case s.closed:
		return s.closedError(op)
	case depth < 1 || depth > maxDepth:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "depth %d", depth)
	case len(s.wrs) > depth:
		return hw.Errorf(op, hw.InvalidState, hw.StateSRQOperational, "%d receives are in the queue", len(s.wrs))
	}
	s.depth = depth
	return nil
}

// Available implements [hw.SRQCounter].
func (s *sharedQueue) Available() int {
	s.dev.sim.mu.Lock()
	defer s.dev.sim.mu.Unlock()
	return len(s.wrs)
}

// Close implements [hw.SRQ].
func (s *sharedQueue) Close() error {
	const op = "sim.SRQ.Close"
	s.dev.sim.mu.Lock()
	defer s.dev.sim.mu.Unlock()
	switch {
	case s.closed:
		return s.closedError(op)
	case len(s.users) > 0:
		return hw.Errorf(op, hw.InvalidState, hw.StateSRQInUse, "%d queue pairs take from it", len(s.users))
	}
	s.closed, s.wrs = true, nil
	s.zone.users--
	s.dev.children--
	return nil
}

// shared finds the device's shared queue behind a handle; nil stays nil.
func (d *Device) shared(op string, h hw.SRQ, z *zone) (*sharedQueue, error) {
	if h == nil {
		return nil, nil
	}
	s, _ := h.(*sharedQueue)
	switch {
	case s == nil || s.dev != d || s.closed:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleSRQ, "not an open shared receive queue of this device")
	case s.zone != z:
		return nil, hw.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the shared receive queue is of another zone")
	}
	return s, nil
}

// join adds a queue pair that takes receives from the queue, and leave removes it. Both
// do nothing for a nil queue.
func (s *sharedQueue) join(q *queuePair) {
	if s != nil {
		s.users = append(s.users, q)
	}
}

func (s *sharedQueue) leave(q *queuePair) {
	if s != nil {
		s.users = slices.DeleteFunc(s.users, func(o *queuePair) bool { return o == q })
	}
}
