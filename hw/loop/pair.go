package loop

import (
	"crypto/sha256"
	"math/rand/v2"
	"sync"

	"godat/hw"
)

// pairs knows the queue pairs of the process whose values were asked for, by number. A
// holder of its lock may take a connection's.
var pairs = struct {
	sync.Mutex
	ends map[uint32]*pairEnd
}{ends: make(map[uint32]*pairEnd)}

// pairEnd is a connection as its peer finds it by exchanged values. The lock of pairs
// guards all but conn and addr, which are immutable.
type pairEnd struct {
	conn   *connection
	addr   hw.PairAddr
	peer   *pairEnd  // Pair was called with its values
	caller *pairEnd  // Pair was called with this end's values by that end
	over   hw.Reason // why the owner broke or closed the queue pair; ReasonNone: it did not
}

// pairMTU is the MTU of all devices. Nothing depends on it.
const pairMTU = 4096

var _ hw.Pairer = (*device)(nil)

// Local implements [hw.Pairer]. The number and the PSN are drawn at random. The GID is
// made of the device's name.
func (d *device) Local(qp hw.QP) (hw.PairAddr, error) {
	e, err := d.pairEnd("Local", qp)
	if err != nil {
		return hw.PairAddr{}, err
	}
	return e.addr, nil
}

// pairEnd finds or makes the pairEnd of a queue pair's present life.
func (d *device) pairEnd(op string, qp hw.QP) (*pairEnd, error) {
	q, ok := qp.(*queuePair)
	if !ok || q == nil || q.dev != d || q.conn == nil {
		return nil, d.Errorf(op, hw.InvalidHandle, hw.HandleEP, "not a queue pair of this device")
	}
	c := q.conn
	pairs.Lock()
	defer pairs.Unlock()
	if c.pair != nil {
		return c.pair, nil
	}
	e := &pairEnd{conn: c, addr: hw.PairAddr{PSN: rand.Uint32N(hw.MaxPSN + 1), GID: gidOf(d.node.name), MTU: pairMTU}}
	for e.addr.QPN < 2 || pairs.ends[e.addr.QPN] != nil { // hardware has its own uses for 0 and 1
		e.addr.QPN = rand.Uint32N(hw.MaxQPN) // the last is multicast's
	}
	pairs.ends[e.addr.QPN] = e
	c.pair = e
	return e, nil
}

func gidOf(name string) (gid [16]byte) {
	sum := sha256.Sum256([]byte(name))
	copy(gid[:], sum[:])
	gid[0] = 0xfd // unique local: never a group's
	return gid
}

// Pair implements [hw.Pairer]. The requests of the end that pairs first wait for the
// other. When the other is closed or broken instead, the first hears Down.
func (d *device) Pair(qp hw.QP, peer hw.PairAddr) error {
	const op = "Pair"
	if err := peer.Check("loop." + op); err != nil {
		return err
	}
	e, err := d.pairEnd(op, qp)
	if err != nil {
		return err
	}
	if err := e.choose(op, peer); err != nil {
		return err
	}
	c := e.conn
	cfg := &c.qp.Cfg
	c.facts.Established(hw.ConnInfo{Local: e.addr, Remote: peer, ReadsIn: cfg.ReadsIn, ReadsOut: cfg.ReadsOut})
	c.Mu.Lock()
	c.Phase = waiting
	c.Mu.Unlock()
	// The phase is stored before the peer is looked at. So of two ends that pair at the same
	// time, the one that is told last finds that both wait.
	pairs.Lock()
	meets, why := e.peer.peer == e, e.peer.over
	pairs.Unlock()
	switch {
	case why != hw.ReasonNone:
		c.abandoned(why)
	case meets: // both ends may come here; one of them connects the two, unless one is over
		first, last := c, e.peer.conn
		if e.addr.QPN > e.peer.addr.QPN {
			first, last = last, first
		}
		couple(first, last, waiting, nil)
	}
	return nil
}

// choose finds the peer's end, and begins the connection if its values are right.
func (e *pairEnd) choose(op string, peer hw.PairAddr) error {
	bad := func(format string, args ...any) error {
		return e.conn.qp.dev.Errorf(op, hw.InvalidParameter, hw.Arg2, format, args...)
	}
	pairs.Lock()
	defer pairs.Unlock()
	o := pairs.ends[peer.QPN]
	switch {
	case o == nil:
		return bad("no queue pair of this process has the number %#x", peer.QPN)
	case o == e:
		return bad("queue pair %#x can't be its own peer", peer.QPN)
	case o.addr.GID != peer.GID:
		return bad("queue pair %#x is not at GID %x but at %x", peer.QPN, peer.GID, o.addr.GID)
	case o.addr.LID != peer.LID:
		return bad("LID %#x; loop has 0 alone", peer.LID)
	case o.addr.PSN != peer.PSN:
		return bad("PSN %#x is not that of the present life of queue pair %#x", peer.PSN, peer.QPN)
	case o.caller != nil && o.caller != e && o.caller.over == hw.ReasonNone, o.peer != nil && o.peer != e, o.peer == nil && !o.conn.Unused():
		return bad("queue pair %#x has another peer", peer.QPN)
	}
	if err := e.conn.Attempt(op); err != nil {
		return err
	}
	e.conn.local, e.conn.paired = e.addr, true
	e.peer, o.caller = o, e
	return nil
}

// unpair withdraws the values of a connection that is over, and tells an end that waits
// for it.
func (c *connection) unpair(why hw.Reason) {
	pairs.Lock()
	e := c.pair
	if e == nil || e.over != hw.ReasonNone {
		pairs.Unlock()
		return
	}
	e.over = why
	delete(pairs.ends, e.addr.QPN)
	w := e.caller
	pairs.Unlock()
	if w != nil {
		w.conn.abandoned(why)
	}
}

// abandoned ends a connection whose peer is over and never paired.
func (c *connection) abandoned(why hw.Reason) {
	c.stop(waiting, func() {
		c.facts.Down(why, &hw.Cause{
			Text: "the peer ended its queue pair before it paired", Found: hw.SidePeer, Local: c.local, Remote: c.pair.peer.addr,
		})
	})
}

// drain is Drain of a connection that has no pipes.
func (c *connection) drain() {
	c.Mu.Lock()
	p, idle := c.qp.out.Load(), c.sq.Tail.Load() == 0
	c.draining = p == nil && c.Phase == waiting
	c.Mu.Unlock()
	switch {
	case p != nil:
		p.drainTo()
	case idle:
		c.stop(waiting, func() { c.facts.Down(hw.ReasonDrained, nil) })
	}
}
