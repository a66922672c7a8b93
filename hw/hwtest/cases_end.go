package hwtest

import (
	"fmt"

	"godat/hw"
)

var endCases = []contractCase{
	{"Break ends a queue pair in every phase of its life, and Reset makes it as new", phases},
	{"an orderly Break: the peer gets Down(ReasonPeer)", func(r *rig) { breakTellsPeer(r, true, hw.ReasonPeer) }},
	{"a Break that is not orderly: the peer gets Down(ReasonBroken)", func(r *rig) { breakTellsPeer(r, false, hw.ReasonBroken) }},
	{"both sides Break at once", bothBreak},
	{"flushes come in order and before the end, on both queues of both sides", flushOrder},
	{"a queue does not end before Break", func(r *rig) {
		a, b := r.pair()
		a.recv()
		b.over() // b's queues have ended
		a.awaitDown()
		in := a.recv()
		a.mu.Lock()
		r.also.False(a.books[sendQueue].ended || a.books[recvQueue].ended)
		a.mu.Unlock()
		a.over()
		r.also.Equal(hw.StatusFlushed, a.statuses(recvQueue)[in])
	}},
	{"posts between Down and Break are taken and flushed", func(r *rig) {
		for _, orderly := range []bool{true, false} {
			a, b := r.pair()
			b.breakNow(orderly)
			a.awaitDown()
			for range 3 {
				a.post(sendOf(), hw.SendWR{Op: hw.OpSend})
				a.recv()
			}
			a.over()
			for _, s := range append(a.statuses(sendQueue), a.statuses(recvQueue)...) {
				r.also.Equal(hw.StatusFlushed, s)
			}
		}
	}},
	{"Drain lets the posted requests run to completion, then comes Down(ReasonDrained)", drained},
	{"Drain with nothing outstanding: Down(ReasonDrained)", func(r *rig) {
		a, b := r.pair()
		a.drain()
		r.also.Equal(hw.ReasonDrained, a.awaitDown())
		a.breakNow(true)
		r.also.Equal(hw.ReasonPeer, b.awaitDown())
	}},
	{"Drain waits for a send that waits", ifWaits(func(r *rig) {
		a, b := r.pair(notReady(hourLong))
		out := a.post(sendOf())
		a.drain()
		a.mustWait(out)
		b.recv()
		r.also.Equal(hw.ReasonDrained, a.awaitDown())
		r.also.Equal(hw.StatusSuccess, a.sent(out).Status)
		a.breakNow(true)
		r.also.Equal(hw.ReasonPeer, b.awaitDown())
	})},
	{"an orderly Break with a send that waits: the peer gets Down(ReasonPeer)", ifWaits(func(r *rig) {
		a, b := r.pair(notReady(hourLong))
		out := a.post(sendOf())
		a.mustWait(out)
		a.breakNow(true)
		r.also.Equal(hw.ReasonPeer, b.awaitDown())
		r.also.Equal(hw.StatusFlushed, a.sent(out).Status)
	})},
	{"a Drain that can't succeed ends with Down(ReasonBroken)", func(r *rig) {
		a, b := r.pair(notReady(shortWait))
		out := a.post(sendOf())
		a.drain()
		r.also.Contains(r.atTarget(hw.StatusReceiverNotReady), a.sent(out).Status)
		if r.cfg.Gaps&EarlyCompletion == 0 {
			r.broken(a, b)
		}
	}},
	{"Break cuts a Drain short", func(r *rig) {
		a, b := r.pair(notReady(hourLong))
		if r.a.attr.NotReadyWait {
			a.post(sendOf())
		}
		a.drain()
		a.over()
		b.awaitDown()
		b.over()
	}},
	{"both sides Drain at once", func(r *rig) {
		for range 10 {
			a, b := r.pair()
			a.recv()
			b.recv()
			a.post(sendOf())
			b.post(sendOf())
			a.drain()
			b.drain()
			// An end that gets Down(ReasonDrained) breaks at once: its peer may get Down
			// only then.
			together(func() { breakWhenDown(a) }, func() { breakWhenDown(b) })
			for _, e := range []*end{a, b} {
				r.also.Contains([]hw.Reason{hw.ReasonDrained, hw.ReasonPeer}, e.awaitDown())
				e.awaitEnd()
			}
		}
	}},
	{"Reset makes a queue pair as new, many times", lives},
	{"Reset and Close fail while a queue pair lives, and do nothing", func(r *rig) {
		a, b := r.pair()
		r.also.ErrorIs(a.qp.Reset(), hw.ErrInvalidState)
		r.also.ErrorIs(a.qp.Close(), hw.ErrInvalidState)
		roundTrip(r, a, b)
		b.over()
		a.awaitDown()
		r.also.ErrorIs(a.qp.Close(), hw.ErrInvalidState, "down, but not broken")
		a.over()
		a.close()
	}},
	{"a queue pair closes when it is new, when it is reset and when it has ended", func(r *rig) {
		r.a.newEnd().close()
		a, b := r.pair()
		a.over()
		a.reset()
		a.close()
		b.over()
		b.close()
	}},
	{"receives of a queue pair that closes without having connected do not complete", func(r *rig) {
		fresh := r.a.newEnd()
		again, b := r.pair()
		over(again, b)
		again.reset()
		for _, e := range []*end{fresh, again} {
			in := e.recv()
			e.close()
			r.also.False(waitFor(&e.cond, shortWait/4, func() bool { return e.books[recvQueue].entries[in].done }))
		}
		b.close()
	}},
	{"memory is the owner's again when its queues have ended", memoryAfterEnd},
}

// phase brings a new end into a phase of its life.
type phase struct {
	name  string
	enter func(r *rig, a, b *end)
}

var phaseTable = []phase{
	{"new", func(*rig, *end, *end) {}},
	{"connecting, unanswered", func(r *rig, a, _ *end) { r.b.request(a, nil) }},
	{"connecting, on its way", func(r *rig, a, _ *end) { a.connect(r.b.listen(hw.ListenConfig{}), nil) }},
	{"refused", func(r *rig, a, _ *end) {
		r.must.NoError(r.b.request(a, nil).Reject(nil))
		a.awaitRefused()
	}},
	{"accepted, not up yet", func(r *rig, a, b *end) { r.must.NoError(a.accept(r.a.request(b, nil), nil)) }},
	{"answered, not up yet", func(r *rig, a, b *end) { r.must.NoError(b.accept(r.b.request(a, nil), nil)) }},
	{"up", func(r *rig, a, b *end) { r.join(a, b) }},
	{"up, at work", func(r *rig, a, b *end) {
		r.join(a, b)
		for range 8 {
			b.recv()
			a.post(sendOf(), hw.SendWR{Op: hw.OpSend})
			b.recv()
		}
	}},
	{"draining", func(r *rig, a, b *end) { r.join(a, b); a.drain() }},
	{"drained", func(r *rig, a, b *end) { r.join(a, b); a.drain(); a.awaitDown() }},
	{"broken by the peer", func(r *rig, a, b *end) { r.join(a, b); b.over(); a.awaitDown() }},
	{"being broken by the peer", func(r *rig, a, b *end) { r.join(a, b); b.breakNow(true) }},
	{"broken by a failure", func(r *rig, a, b *end) {
		r.join(a, b)
		a.post(sendOf(hw.SGE{Addr: 1, Len: 1}))
		a.awaitDown()
	}},
	{"failing", func(r *rig, a, b *end) { r.join(a, b); a.post(sendOf(hw.SGE{Addr: 1, Len: 1})) }},
}

// phases breaks a queue pair in each phase, with receives posted where that is allowed.
// The books check the flushes and both OpEnds.
func phases(r *rig) {
	for _, p := range phaseTable {
		for _, orderly := range []bool{false, true} {
			a, b := r.a.newEnd(), r.b.newEnd()
			early := a.recv()
			p.enter(r, a, b)
			a.breakNow(orderly)
			r.within("the end when "+p.name, func() { a.wait(a.overLocked) })
			a.awaitEnd()
			r.also.Equal(hw.StatusFlushed, a.statuses(recvQueue)[early], p.name)
			b.over()
			r.reconnect(a, b)
			r.drop(a, b)
		}
	}
}

func breakTellsPeer(r *rig, orderly bool, want hw.Reason) {
	a, b := r.pair()
	roundTrip(r, a, b)
	a.breakNow(orderly)
	r.also.Equal(want, b.awaitDown(), "the active side broke")
	if !orderly && !r.cfg.Paired { // a pair may find out by itself
		r.also.Equal(hw.SidePeer, r.causes(b)[0].Found)
	}
	a.awaitEnd()
	c, d := r.pair()
	d.breakNow(orderly)
	r.also.Equal(want, c.awaitDown(), "the passive side broke")
	d.awaitEnd()
	a.mu.Lock()
	defer a.mu.Unlock()
	r.also.Equal(hw.ReasonNone, a.down, "the end that breaks gets no Down")
}

func bothBreak(r *rig) {
	for i := range 20 {
		a, b := r.pair()
		for range 4 {
			a.recv()
			b.recv()
			a.post(sendOf())
			b.post(sendOf())
		}
		together(func() { a.breakNow(i%2 == 0) }, func() { b.breakNow(i%3 == 0) })
		a.awaitEnd()
		b.awaitEnd()
	}
}

// breakWhenDown waits for Down and calls Break, as an owner does.
func breakWhenDown(e *end) {
	e.wait(func() bool { return e.down != hw.ReasonNone })
	e.breakNow(true)
}

// flushOrder leaves requests outstanding on all four queues. The books check the order
// of the flushes; the case checks only that the requests were flushed.
func flushOrder(r *rig) {
	a, b := r.pair(notReady(hourLong))
	for range 10 {
		a.recv()
	}
	var stuck []int
	if r.a.attr.NotReadyWait { // sends stay outstanding while the peer has no receive
		for range 10 {
			stuck = append(stuck, a.post(sendOf()), a.post(hw.SendWR{Op: hw.OpSend}))
		}
	} else {
		for range 10 {
			b.recv()
		}
	}
	a.breakNow(false)
	b.awaitDown()
	b.over()
	a.awaitEnd()
	for i, s := range a.statuses(recvQueue) {
		r.also.Equal(hw.StatusFlushed, s, "receive %d", i)
	}
	for _, i := range stuck {
		r.also.Equal(hw.StatusFlushed, a.statuses(sendQueue)[i], "send %d", i)
	}
	for i, s := range b.statuses(recvQueue) {
		r.also.Equal(hw.StatusFlushed, s, "the peer's receive %d", i)
	}
}

func drained(r *rig) {
	a, b := r.pair(depth(16, 16))
	near, far := r.a.mem(1<<16, hw.AllPrivileges), r.b.mem(1<<16, hw.AllPrivileges)
	fill(near.buf, 1)
	var wrs []hw.SendWR
	for _, p := range r.probes(true) {
		wrs = append(wrs, rdma(p.op, far, 0, near.all()))
	}
	for range 8 {
		b.recv()
		wrs = append(wrs, sendOf())
	}
	left := a.recv()
	a.post(wrs...)
	a.drain()
	r.also.Equal(hw.ReasonDrained, a.awaitDown())
	a.sent(len(wrs) - 1)
	for i, s := range a.statuses(sendQueue) {
		r.also.Equal(hw.StatusSuccess, s, "request %d", i)
	}
	r.also.Equal(hw.StatusSuccess, b.received(7).Status)
	late := a.recv() // the queue pair still takes receives, and flushes them
	a.breakNow(true)
	r.also.Equal(hw.ReasonPeer, b.awaitDown())
	a.awaitEnd()
	r.also.Equal(hw.StatusFlushed, a.statuses(recvQueue)[left])
	r.also.Equal(hw.StatusFlushed, a.statuses(recvQueue)[late])
}

// lives takes one queue pair through many lives, with different peers and different ways
// to end.
func lives(r *rig) {
	a := r.a.newEnd()
	for i := range 12 {
		b := r.b.newEnd()
		if i%2 == 0 {
			r.join(a, b)
		} else {
			r.join(b, a)
		}
		roundTrip(r, a, b)
		a.recv() // outstanding when the connection ends
		if i%3 == 0 {
			b.over()
			a.awaitDown()
			a.over()
		} else {
			over(a, b)
		}
		b.close()
		a.reset()
		a.mu.Lock()
		r.must.Empty(a.books[recvQueue].entries, fmt.Sprintf("life %d", i+1))
		a.mu.Unlock()
	}
}

// memoryAfterEnd breaks a connection during large transfers and writes to all buffers of
// the side that has ended. The device must not access them any more; the race detector
// reports an access.
func memoryAfterEnd(r *rig) {
	const n = 512 << 10
	for i := range 4 {
		a, b := r.pair()
		near, into := r.a.mem(n, hw.AllPrivileges), r.a.mem(n, hw.AllPrivileges)
		far, from := r.b.mem(n, hw.AllPrivileges), r.b.mem(n, hw.AllPrivileges)
		for range 4 {
			a.recv(into.all())
			b.recv()
			if r.has(hw.OpWrite) {
				a.post(writeTo(far, 0, near.all()))
			}
			b.post(sendOf(from.all()))
		}
		if i%2 == 0 {
			a.received(0)
		}
		a.over()
		fill(near.buf, 1)
		fill(into.buf, 2)
		b.over()
		r.also.Equal(pattern(n, 1), near.buf)
		r.also.Equal(pattern(n, 2), into.buf)
		r.closePair(a, b, near, into, far, from)
	}
}
