package node

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/target"
	"godat/runtime/rpc"
)

// order is a change of a host's that a follower brings to the leader. The data of a write is in the caller's memory.
type order struct {
	kind byte
	size uint32
	off  uint64
	host identity.ID
	pass pass
}

const (
	orderWrite byte = iota + 1
	orderZero

	passLen  = 8 + 8
	orderLen = 1 + 4 + 8 + len(identity.ID{}) + passLen

	// orderTime is how long an order may take while the leader stays: as long as a busy disk does.
	orderTime = 5 * time.Second
)

// errNoPass is the refusal of an order whose node has not the host's pass. It was not made, and never will be.
var errNoPass = &rpc.Error{Code: rpc.CodeUser + 3}

func (x pass) append(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, x.term), x.number)
}

func parsePass(b []byte) pass {
	return pass{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

// An order as bytes, little-endian.
//
//	0      1      5     13     29     37       45
//	+------+------+-----+------+------+--------+
//	| kind | size | off | host | term | number |
//	+------+------+-----+------+------+--------+
func (o *order) append(b []byte) []byte {
	b = append(b, o.kind)
	b = binary.LittleEndian.AppendUint32(b, o.size)
	b = binary.LittleEndian.AppendUint64(b, o.off)
	return o.pass.append(append(b, o.host[:]...))
}

// parseOrder parses an order for a disk of some size.
func parseOrder(b []byte, disk int) (o order, err error) {
	if len(b) != orderLen {
		return o, errNote
	}
	o = order{b[0], binary.LittleEndian.Uint32(b[1:]), binary.LittleEndian.Uint64(b[5:]), identity.ID(b[13:29]), parsePass(b[29:])}
	if o.size == 0 || uint64(o.size) > uint64(disk) || o.off > uint64(disk)-uint64(o.size) {
		return o, fmt.Errorf("node: %d bytes at %d of a disk of %d", o.size, o.off, disk)
	}
	return o, nil
}

// takePass gives a follower the pass of a host.
func (d *door) takePass(from uint64, b []byte, r *rpc.Request) ([]byte, error) {
	if len(b) != len(identity.ID{}) {
		return nil, errNote
	}
	host := identity.ID(b) // the request's memory may go before the claim is settled
	type answer struct {
		pass pass
		err  error
	}
	answers := make(chan answer, 1)
	got := func(x pass, err error) { answers <- answer{x, err} }
	d.events.put(func() { d.consensus.claim(claim{host, from, got}) })
	select {
	case x := <-answers:
		return x.pass.append(nil), x.err
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	case <-d.ctx.Done():
		return nil, context.Cause(d.ctx)
	}
}

// claim gives a follower the pass of a host, if this node leads.
func (c *consensus) claim(x claim) {
	if err := c.refusal(); err != nil {
		x.got(pass{}, err)
		return
	}
	c.reign.grants.claim(x)
}

// takeIndex says up to where a follower must have applied, so that a read sees all that was acknowledged before the call.
func (d *door) takeIndex() ([]byte, error) {
	type answer struct {
		index uint64
		err   error
	}
	answers := make(chan answer, 1)
	if !d.events.put(func() { d.consensus.question(func(index uint64, err error) { answers <- answer{index, err} }) }) {
		return nil, errNotLeader
	}
	x := <-answers
	return binary.LittleEndian.AppendUint64(nil, x.index), x.err
}

// takeOrder makes a change that a follower brings.
func (d *door) takeOrder(from uint64, b []byte, r *rpc.Request) ([]byte, error) {
	o, err := parseOrder(b, len(d.disk.Memory()))
	if err != nil {
		return nil, err
	}
	switch o.kind {
	case orderZero:
		return nil, d.zeroOrder(from, o)
	case orderWrite:
		return nil, d.writeOrder(from, o, r)
	}
	return nil, errNote
}

func (d *door) zeroOrder(from uint64, o order) error {
	done := make(chan error, 1)
	if !d.events.put(func() {
		if err := d.consensus.allows(from, &o); err != nil {
			done <- err
			return
		}
		d.consensus.proposeZero(int(o.off), int(o.size), func(err error) { done <- err })
	}) {
		return errNotLeader
	}
	return <-done
}

// writeOrder reads the data of a write into a slot, as that of a host of this node's. While its data comes,
// which may take long, a quarter of the slots at most is for such writes.
func (d *door) writeOrder(from uint64, o order, r *rpc.Request) error {
	if r.SourceLen() < int(o.size) || int(o.size) > d.cfg.Layout.SlotSize {
		return errNote
	}
	select {
	case d.orders <- struct{}{}:
	case <-r.Context().Done():
		return context.Cause(r.Context())
	}
	w, answer := target.NewWrite()
	w.Offset, w.Len = int(o.off), int(o.size)
	err := d.fill(w, answer, from, &o, r)
	<-d.orders
	if err != nil {
		return err
	}
	if !d.events.put(func() {
		if err := d.consensus.allows(from, &o); err != nil {
			d.consensus.drop(w)
			w.Done(err)
			return
		}
		d.consensus.commit(w)
	}) {
		return errNotLeader
	}
	return answer()
}

// fill gets a slot for a write, and its data.
func (d *door) fill(w *target.Write, answer func() error, from uint64, o *order, r *rpc.Request) error {
	if !d.events.put(func() {
		if err := d.consensus.allows(from, o); err != nil {
			w.Done(err)
			return
		}
		d.consensus.place(w)
	}) {
		return errNotLeader
	}
	if err := answer(); err != nil {
		return err
	}
	err := r.Read(d.region.Segment(w.At, w.Len), 0)
	if err != nil {
		d.events.put(func() { d.consensus.drop(w) })
	}
	return err
}

// allows refuses an order of a node that has not the host's pass.
func (c *consensus) allows(from uint64, o *order) error {
	if err := c.refusal(); err != nil {
		return err
	}
	if !c.reign.grants.valid(o.host, from, o.pass) {
		return errNoPass
	}
	return nil
}
