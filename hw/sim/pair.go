package sim

import (
	"math/rand/v2"

	"godat/hw"
)

var _ hw.Pairer = (*Device)(nil)

// pairMTU is the MTU of all devices. Nothing depends on it.
const pairMTU = 1024

// gid is the address as a global identifier.
func (a addr) gid() (gid [16]byte) {
	copy(gid[:], a)
	return gid
}

// own is the device's queue pair behind qp, entered, or nil.
func (d *Device) own(op string, qp hw.QP) (*queuePair, error) {
	q, _ := qp.(*queuePair)
	if q == nil || q.dev != d {
		return nil, hw.Errorf("sim."+op, hw.InvalidHandle, hw.HandleEP, "not a queue pair of this device")
	}
	q.enter(op)
	if q.state == stateClosed {
		q.leave()
		return nil, hw.Errorf("sim."+op, hw.InvalidHandle, hw.HandleEP, "the queue pair is closed")
	}
	return q, nil
}

// Local implements [hw.Pairer].
func (d *Device) Local(qp hw.QP) (hw.PairAddr, error) {
	q, err := d.own("Local", qp)
	if err != nil {
		return hw.PairAddr{}, err
	}
	defer q.leave()
	return q.local(), nil
}

// local is the queue pair's values of its present life; the first call draws them.
func (q *queuePair) local() hw.PairAddr {
	s := q.dev.sim
	for q.values.QPN < 2 {
		q.values = hw.PairAddr{
			QPN: rand.Uint32N(hw.MaxQPN), PSN: rand.Uint32N(hw.MaxPSN + 1), GID: addr(q.dev.name).gid(), MTU: pairMTU,
		}
		if s.numbers[q.values.QPN] != nil {
			q.values.QPN = 0
		}
	}
	if q.state != stateBroken {
		s.numbers[q.values.QPN] = q
	}
	return q.values
}

// Pair implements [hw.Pairer]. What the queue pair sends waits until the peer has paired,
// too. When the peer is closed or broken instead, the queue pair hears Down.
func (d *Device) Pair(qp hw.QP, peer hw.PairAddr) error {
	const op = "sim.Pair"
	if err := peer.Check(op); err != nil {
		return err
	}
	q, err := d.own("Pair", qp)
	if err != nil {
		return err
	}
	defer q.leave()
	if q.state != stateNew {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the queue pair is %v", q.state)
	}
	q.local()
	p := d.sim.numbers[peer.QPN]
	bad := func(why string) error { return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "%v: %s", peer, why) }
	switch {
	case p == nil:
		return bad("no queue pair has the number")
	case p == q:
		return bad("the number is the queue pair's own")
	case p.values.GID != peer.GID || p.values.LID != peer.LID:
		return bad("the GID or LID is not the queue pair's")
	case p.values.PSN != peer.PSN:
		return bad("the PSN is not the queue pair's")
	case p.caller != nil && p.caller != q, p.peer != nil && p.peer != q, p.peer == nil && p.state != stateNew:
		return bad("the queue pair has another peer")
	}
	q.state, q.held, q.peer, p.caller = stateUp, true, p, q
	q.readsIn, q.readsOut = q.cfg.ReadsIn, q.cfg.ReadsOut
	q.established(hw.ConnInfo{Local: q.values, Remote: peer, ReadsIn: q.readsIn, ReadsOut: q.readsOut})
	return nil
}
