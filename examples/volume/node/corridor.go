package node

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/target"
	"godat/mem"
	"godat/runtime/rpc"
)

// corridor is how hosts reach the leader through this node, which follows. The data of a write comes to a room of this
// node, from which the leader reads it into a slot of its own; a read asks the leader which record this node must have
// applied, and then sees the disk that is here. Consensus owns it.
type corridor struct {
	c       *consensus
	free    []int                 // rooms
	rooms   map[*target.Write]int // where the data of a write comes, or is
	placing []*target.Write       // that wait for a room
	passage *passage              // or nil, while hosts can't go through
	opening bool
	calls   int            // orders and questions under way
	reads   []*target.Read // that wait for the next question
	asked   bool           // a question is under way
	quiet   int            // for how many ticks none was
	reading []lateRead
}

// passage is a connection to a leader.
type passage struct {
	lead   uint64
	client *rpc.Client
	ctx    context.Context
	end    context.CancelFunc
	passes *passes
	under  int       // orders under way
	queue  []*errand // orders that wait for those
}

// errand is a change that goes to the leader.
type errand struct {
	order
	from   target.Origin
	source mem.RemoteSegment // of its data
	done   func(error)
}

// lateRead are reads that see the disk when this node has applied a record.
type lateRead struct {
	reading
	ticks int // that they have waited
}

// rooms is how many writes a follower has at a time, each with memory for the longest one.
const rooms = 8

func newCorridor(c *consensus) *corridor {
	v := &corridor{c: c, rooms: make(map[*target.Write]int)}
	for i := range rooms {
		v.free = append(v.free, i)
	}
	return v
}

// open reports whether hosts can go through.
func (v *corridor) open() bool { return v.passage != nil && !v.shut() }

// shut reports whether the disk is none to read: it is being rebuilt, or ahead of the leader's.
func (v *corridor) shut() bool { return v.c.rotten.Load() || v.c.ahead.Load() != nil }

// place finds room for a write's data.
func (v *corridor) place(w *target.Write) {
	if w.Len > v.c.cfg.Layout.SlotSize {
		w.Done(nvme.StatusError(nvme.InvalidField | nvme.DoNotRetry))
		return
	}
	v.placing = append(v.placing, w)
	v.placeAll()
}

func (v *corridor) placeAll() {
	for len(v.placing) != 0 && len(v.free) != 0 {
		w, room := v.placing[0], v.free[0]
		v.placing, v.free = v.placing[1:], v.free[1:]
		v.rooms[w] = room
		w.Placed(len(v.c.journal.Memory()) + room*v.c.cfg.Layout.SlotSize)
	}
}

// leave gives a write's room back.
func (v *corridor) leave(w *target.Write) {
	v.free = append(v.free, v.rooms[w])
	delete(v.rooms, w)
	v.placeAll()
}

// take sends a write whose data has come to the leader.
func (v *corridor) take(w *target.Write) {
	e := &errand{
		order: order{kind: orderWrite, off: uint64(w.Offset), size: uint32(w.Len)}, from: w.From,
		source: v.c.annexed.Remote(v.rooms[w]*v.c.cfg.Layout.SlotSize, w.Len),
	}
	e.done = func(err error) {
		v.leave(w)
		w.Done(err)
	}
	v.send(e)
}

// drop gives up a write whose connection has ended.
func (v *corridor) drop(w *target.Write) {
	if _, placed := v.rooms[w]; placed {
		v.leave(w)
		return
	}
	v.placing = slices.DeleteFunc(v.placing, func(other *target.Write) bool { return other == w })
}

// zero sends the leader a range that is to read as zeros.
func (v *corridor) zero(from target.Origin, off, size int, done func(error)) {
	v.send(&errand{order: order{kind: orderZero, off: uint64(off), size: uint32(size)}, from: from, done: done})
}

// send sends a change to the leader when this node has the host's pass.
func (v *corridor) send(e *errand) {
	p := v.passage
	if p == nil {
		e.done(errChange)
		return
	}
	p.passes.admit(e.from, func(x pass, err error) {
		if err != nil {
			e.done(err)
			return
		}
		e.order.host, e.order.pass = e.from.Host, x
		p.queue = append(p.queue, e)
		v.sendNext(p)
	})
}

// sendNext has as many orders under way as a connection has calls, but for one that reads and passes need.
func (v *corridor) sendNext(p *passage) {
	for p.under < calls-1 && len(p.queue) != 0 {
		e := p.queue[0]
		p.queue = p.queue[1:]
		p.under++
		v.calls++
		v.c.tasks.Go(func() {
			_, err := v.call(p, methodOrder, e.order.append(nil), e.source)
			v.c.events.put(func() { v.sent(p, e, err) })
		})
	}
}

// sent ends an order. What became of one whose connection has ended nobody knows: the host makes the command again, and
// gets no pass by which that would come before this one.
func (v *corridor) sent(p *passage, e *errand, err error) {
	p.under--
	v.calls--
	switch {
	case err == nil:
		e.done(nil)
	case errors.Is(err, errNoPass) && v.passage == p:
		p.passes.lose(e.from.Host, e.order.pass)
		v.send(e) // it was not made
	default:
		v.failed(p, err)
		e.done(errChange)
	}
	v.sendNext(p)
}

// call calls the leader.
func (v *corridor) call(p *passage, method uint16, b []byte, source mem.RemoteSegment) ([]byte, error) {
	ctx, cancel := context.WithTimeout(p.ctx, orderTime)
	defer cancel()
	return p.client.Call(ctx, rpc.Call{Method: method, Payload: append(v.c.note(p.lead), b...), Source: source}, nil)
}

// askPass asks the leader for a host's pass.
func (v *corridor) askPass(p *passage, host identity.ID, got func(pass, error)) {
	v.c.tasks.Go(func() {
		b, err := v.call(p, methodPass, host[:], mem.RemoteSegment{})
		var x pass
		if err == nil && len(b) != passLen {
			err = errNote
		}
		if err == nil {
			x = parsePass(b)
		}
		v.c.events.put(func() {
			if err != nil {
				v.failed(p, err)
				err = errChange
			}
			got(x, err)
		})
	})
}

// failed closes a passage whose connection has ended, or whose leader knows this node no more.
func (v *corridor) failed(p *passage, err error) {
	var refusal *rpc.Error
	if !errors.As(err, &refusal) || errors.Is(err, errStranger) {
		v.close(p)
	}
}

// read lets a read wait for what the leader says to the next question.
func (v *corridor) read(x *target.Read) {
	v.reads = append(v.reads, x)
	v.askIndex()
}

// askIndex asks the leader up to where this node must have applied, for all reads that wait.
func (v *corridor) askIndex() {
	if !v.asked && len(v.reads) != 0 {
		v.ask()
	}
}

// ask asks also when nobody waits: to see that the leader answers.
func (v *corridor) ask() {
	p, reads := v.passage, v.reads
	v.reads = nil
	if p == nil {
		refuseAll(reads, errChange)
		return
	}
	v.asked, v.quiet = true, 0
	v.calls++
	v.c.tasks.Go(func() {
		b, err := v.call(p, methodIndex, nil, mem.RemoteSegment{})
		if err == nil && len(b) != 8 {
			err = errNote
		}
		v.c.events.put(func() {
			v.asked = false
			v.calls--
			if err != nil {
				v.failed(p, err)
				refuseAll(reads, errChange)
			} else {
				v.reading = append(v.reading, lateRead{reading{binary.LittleEndian.Uint64(b), reads}, 0})
				v.finish()
			}
			v.askIndex()
		})
	})
}

func refuseAll(reads []*target.Read, err error) {
	for _, x := range reads {
		x.Done(err)
	}
}

// finish answers what waits for records that are applied now. A disk that is rebuilt is no disk to read.
func (v *corridor) finish() {
	v.reading = slices.DeleteFunc(v.reading, func(x lateRead) bool {
		switch {
		case v.shut() || x.ticks > electionTicks:
			refuseAll(x.reads, errElsewhere)
		case x.index <= v.c.applied:
			for _, r := range x.reads {
				r.Done(nil)
			}
		default:
			return false
		}
		return true
	})
}

// tick lets time pass, and opens the corridor to who leads.
func (v *corridor) tick() {
	for i := range v.reading {
		v.reading[i].ticks++
	}
	v.finish()
	if v.quiet++; v.quiet >= electionTicks && v.passage != nil && !v.asked {
		v.ask()
	}
	lead := v.c.leader.Load()
	peer := v.c.lanes.peers[lead]
	if v.passage != nil || v.opening || peer == nil || lead == v.c.cfg.ID || v.shut() || !v.c.ways.forwards(lead) {
		return
	}
	v.opening = true
	v.c.tasks.Go(func() { v.dial(lead, peer.addr) })
}

// dial connects to a leader, who says that he is one, and that this node is not ahead of him.
func (v *corridor) dial(lead uint64, addr string) {
	p := &passage{lead: lead}
	p.passes = newPasses(v.c, func(host identity.ID, got func(pass, error)) { v.askPass(p, host, got) })
	p.ctx, p.end = context.WithCancel(v.c.ctx)
	var err error
	if p.client, err = v.c.dial(p.ctx, lead, addr); err == nil {
		err = v.c.meets(p.client, lead)
	}
	if err == nil {
		_, err = v.call(p, methodIndex, nil, mem.RemoteSegment{})
	}
	if err != nil {
		p.end()
		if p.client != nil {
			_ = p.client.Close() // its memory is the node's
		}
	}
	put := v.c.events.put(func() {
		v.opening = false
		if err == nil {
			v.passage = p
			v.follow()
		}
		v.c.showState()
	})
	if !put && err == nil {
		p.end()
		_ = p.client.Close() // the same
	}
}

// follow closes a passage to one who leads no more.
func (v *corridor) follow() {
	if p := v.passage; p != nil && (p.lead != v.c.leader.Load() || v.c.ctx.Err() != nil) {
		v.close(p)
	}
}

// close ends a passage. What was under way ends by itself.
func (v *corridor) close(p *passage) {
	if v.passage != p {
		return
	}
	v.passage = nil
	p.end()
	v.c.tasks.Go(func() { _ = p.client.Close() }) // its memory is the node's
	p.passes.end()
	for _, e := range p.queue {
		e.done(errChange)
	}
	p.queue = nil
	v.c.showState()
}

// end refuses all, and waits for the calls under way, which end with the node.
func (v *corridor) end() {
	if v.passage != nil {
		v.close(v.passage)
	}
	for _, w := range v.placing {
		w.Done(errChange)
	}
	v.placing = nil
	for _, x := range v.reading {
		refuseAll(x.reads, errChange)
	}
	v.reading = nil
	for v.calls != 0 {
		<-v.c.events.filled
		v.c.events.drain(context.Background())
	}
}
