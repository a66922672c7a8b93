package hwtest

import (
	"encoding/binary"
	"errors"
	"sync"

	"godat/hw"
)

// srqCases are about shared receive queues.
var srqCases = []contractCase{
	{"a device without shared receive queues refuses a queue pair with one", func(r *rig) {
		if sharesReceives(r) {
			return // the other cases test it
		}
		e := r.b.newEnd()
		cfg := e.cfg
		cfg.SRQ = noSRQ{}
		_, err := r.b.dev.NewQP(cfg)
		r.also.ErrorIs(err, errors.ErrUnsupported)
	}},
	{"messages take receives in order, which complete on their queue pair with its number", ifShared(sharedOrder)},
	{"PostRecv on a queue pair with a shared queue is refused", ifShared(func(r *rig) {
		p := r.b.newPool(r.b.zone, 4, 1)
		a, b := r.pooledPair(p)
		_, n, err := b.tryRecv(nil)
		r.also.Zero(n)
		r.also.ErrorIs(err, hw.ErrInvalidState)
		in := p.post()
		a.post(sendOf())
		wc, _ := p.received(in)
		r.also.Equal(hw.StatusSuccess, wc.Status)
	})},
	{"sends that wait are each woken by a post to the shared queue", ifShared(ifWaits(sharedWake))},
	{"a send that waits too long leaves the next receive to others", ifShared(sharedTimeout)},
	{"Break leaves the receives that were not taken, and ends the receive queue", ifShared(sharedBreak)},
	{"a receive that was taken and fails names its queue pair", ifShared(sharedFailure)},
	{"OnLow is called once after each Arm", ifShared(sharedLow)},
	{"Resize keeps the outstanding receives, and fails when they are more", ifShared(sharedResize)},
	{"a request with too many segments is refused", ifShared(func(r *rig) {
		p := r.b.newPool(r.b.zone, 4, 1)
		_, n, err := p.tryPost(nil, make([]hw.SGE, r.b.attr.MaxSRQSegments+1))
		r.also.Equal(1, n)
		r.also.Error(err)
	})},
	{"a depth or number of segments beyond the limits is refused", ifShared(func(r *rig) {
		attr := r.b.attr
		r.also.Positive(attr.MaxSRQDepth)
		r.also.Positive(attr.MaxSRQSegments)
		for _, cfg := range []hw.SRQConfig{
			{Zone: r.b.zone, Depth: attr.MaxSRQDepth + 1, Segments: 1},
			{Zone: r.b.zone, Depth: 1, Segments: attr.MaxSRQSegments + 1},
			{Depth: 1, Segments: 1},
		} {
			_, err := r.b.dev.(hw.SharedReceiver).NewSRQ(cfg)
			r.also.Error(err)
		}
		p := r.b.newPool(r.b.zone, 1, 1)
		r.also.Error(p.srq.Resize(attr.MaxSRQDepth + 1))
	})},
	{"a shared queue does not close under a queue pair, nor a zone under it", ifShared(func(r *rig) {
		var p *pool
		r.b.holdsZone(func(zone hw.Zone) func() {
			p = r.b.newPool(zone, 4, 1)
			e := r.b.newEnd(p.from(), func(c *hw.QPConfig) { c.Zone = zone })
			r.also.ErrorIs(p.srq.Close(), &hw.Error{Type: hw.InvalidState, Sub: hw.StateSRQInUse})
			p.post() // the queue still works
			e.close()
			return p.close
		})
		_, err := p.srq.PostRecv(make([]hw.RecvWR, 1))
		r.also.ErrorIs(err, hw.ErrInvalidHandle)
		r.also.ErrorIs(p.srq.Arm(1), hw.ErrInvalidHandle)
		r.also.ErrorIs(p.srq.Resize(2), hw.ErrInvalidHandle)
		r.also.ErrorIs(p.srq.Close(), hw.ErrInvalidHandle)
	})},
	{"many post and many send at once: each message arrives once and in its order", ifShared(sharedTraffic)},
}

type noSRQ struct{ hw.SRQ }

func sharesReceives(r *rig) bool {
	_, ok := r.b.dev.(hw.SharedReceiver)
	return ok
}

// ifShared runs a case on devices with shared receive queues.
func ifShared(run func(*rig)) func(*rig) {
	return only(sharesReceives, "the device has no shared receive queues: the first case shows what it says", run)
}

// pooledPair connects a queue pair of r.a to one of r.b that takes receives from p.
func (r *rig) pooledPair(p *pool, opts ...option) (a, b *end) {
	a, b = r.a.newEnd(opts...), r.b.newEnd(append(opts, p.from())...)
	r.join(a, b)
	return a, b
}

// sharedOrder posts receives before the connection, and checks that messages take them in
// order.
func sharedOrder(r *rig) {
	const n = 12
	p := r.b.newPool(r.b.zone, n, 2)
	dst, src := r.b.mem(8*n, hw.LocalWrite), r.a.mem(8, hw.LocalRead)
	for i := range n {
		p.post(dst.sge(8*i, 4), dst.sge(8*i+4, 4))
	}
	var from, to [3]*end
	for i := range from {
		from[i], to[i] = r.pooledPair(p)
	}
	for i := range n {
		k := i * i % 3
		fill(src.buf, byte(i))
		r.must.Equal(hw.StatusSuccess, from[k].sent(from[k].post(sendOf(src.sge(0, i%9)))).Status)
		wc, by := p.received(i)
		r.must.Same(to[k], by, "receive %d", i)
		r.also.Equal(hw.StatusSuccess, wc.Status)
		r.also.Equal(hw.OpRecv, wc.Op)
		r.also.EqualValues(i%9, wc.Len)
		r.also.Equal(src.buf[:i%9], dst.buf[8*i:8*i+i%9])
	}
}

// sharedWake makes more senders wait than there are receives, several times.
func sharedWake(r *rig) {
	const pairs, rounds = 4, 3
	p := r.b.newPool(r.b.zone, pairs*rounds, 1)
	var from [pairs]*end
	for i := range from {
		from[i], _ = r.pooledPair(p, notReady(hourLong))
		for range rounds {
			from[i].post(sendOf())
		}
	}
	from[0].mustWait(0)
	for i := range pairs * rounds {
		_, by := p.received(p.post())
		r.also.NotNil(by)
		r.also.Equal(i+1, p.taken(), "one receive takes one message")
	}
	for _, e := range from {
		for i := range rounds {
			r.also.Equal(hw.StatusSuccess, e.sent(i).Status)
		}
	}
}

func sharedTimeout(r *rig) {
	p := r.b.newPool(r.b.zone, 4, 1)
	a, b := r.pooledPair(p, notReady(shortWait))
	r.also.Contains(r.atTarget(hw.StatusReceiverNotReady), a.sent(a.post(sendOf())).Status)
	r.broken(a, b)
	in := p.post()
	over(a, b)
	r.also.Zero(p.taken(), "no queue pair took it")
	c, d := r.pooledPair(p)
	c.post(sendOf())
	wc, by := p.received(in)
	r.also.Equal(hw.StatusSuccess, wc.Status)
	r.also.Same(d, by)
}

func sharedBreak(r *rig) {
	p := r.b.newPool(r.b.zone, 8, 1)
	a, b := r.pooledPair(p)
	never := r.b.newEnd(p.from()) // never connected
	for range 6 {
		p.post()
	}
	a.post(sendOf())
	p.received(0)
	b.breakNow(true)
	b.awaitEnd()
	a.awaitDown()
	over(a, never)
	r.also.Equal(1, p.taken(), "the rest is there for others")
	b.reset()
	c := r.a.newEnd()
	r.join(c, b)
	for i := 1; i < 6; i++ {
		c.post(sendOf())
		wc, by := p.received(i)
		r.also.Equal(hw.StatusSuccess, wc.Status)
		r.also.Same(b, by, "in its next life")
	}
}

func sharedFailure(r *rig) {
	p := r.b.newPool(r.b.zone, 8, 1)
	src, dst := r.a.mem(64, hw.LocalRead), r.b.mem(8, hw.LocalWrite)
	for _, c := range []struct {
		n          int
		room       hw.SGE
		sent, want hw.Status
	}{
		{9, dst.all(), hw.StatusRemoteResponder, hw.StatusLocalLength},
		{8, hw.SGE{Addr: dst.base, Len: 8, LKey: dst.mr.LKey() ^ 1}, hw.StatusRemoteResponder, hw.StatusLocalProtection},
	} {
		a, b := r.pooledPair(p)
		in := p.post(c.room)
		out := a.post(sendOf(src.sge(0, c.n)))
		wc, by := p.received(in)
		r.also.Equal(c.want, wc.Status)
		r.also.Same(b, by)
		r.also.Contains(r.atTarget(c.sent), a.sent(out).Status)
		r.broken(a, b)
	}
}

func sharedLow(r *rig) {
	p := r.b.newPool(r.b.zone, 8, 1)
	a, _ := r.pooledPair(p)
	for range 8 {
		p.post()
	}
	next := 0
	take := func() {
		a.sent(a.post(sendOf()))
		p.received(next)
		next++
	}
	r.must.NoError(p.srq.Arm(6))
	take()
	take()
	r.also.Zero(p.low(), "six are left")
	take()
	p.wait("OnLow", func() bool { return p.lows == 1 })
	take()
	r.also.Equal(1, p.low(), "once")
	r.must.NoError(p.srq.Arm(4))
	r.must.NoError(p.srq.Arm(0))
	take()
	r.also.Equal(1, p.low(), "disarmed")
	r.must.NoError(p.srq.Arm(3))
	take()
	p.wait("OnLow", func() bool { return p.lows == 2 })
	r.must.NoError(p.srq.Arm(3))
	p.wait("OnLow at once", func() bool { return p.lows == 3 })
	take()
	r.also.Equal(3, p.low(), "once")
}

func sharedResize(r *rig) {
	p := r.b.newPool(r.b.zone, 4, 1)
	dst, src := r.b.mem(64, hw.LocalWrite), r.a.mem(1, hw.LocalRead)
	a, _ := r.pooledPair(p)
	next := 0
	take := func() {
		src.buf[0] = byte(next + 1)
		a.sent(a.post(sendOf(src.all())))
		wc, _ := p.received(next)
		r.also.Equal(hw.StatusSuccess, wc.Status)
		r.also.Equal(byte(next+1), dst.buf[next])
		next++
	}
	posted := 0
	post := func() { p.post(dst.sge(posted, 1)); posted++ }
	for range 3 {
		post()
	}
	take()
	for range 2 {
		post()
	}
	r.also.ErrorIs(p.srq.Resize(3), hw.ErrInvalidState, "four are outstanding")
	r.must.NoError(p.srq.Resize(9))
	for range 5 {
		post()
	}
	for range 7 {
		take()
	}
	r.must.NoError(p.srq.Resize(2))
	take()
	post()
	take()
	take()
}

// sharedTraffic sends on several pairs while several goroutines post the receives.
func sharedTraffic(r *rig) {
	const pairs, posters, each = 4, 3, 60
	const messages = posters * each
	p := r.b.newPool(r.b.zone, messages, 1)
	p.anyOrder = true
	dst := r.b.mem(8*messages, hw.LocalWrite)
	src := r.a.mem(8*messages, hw.LocalRead)
	var from [pairs]*end
	for i := range from {
		from[i], _ = r.pooledPair(p, notReady(r.cfg.Patience), depth(messages, messages))
	}
	var at [messages]int // slot in dst, by the index of the receive
	var posted, sent sync.WaitGroup
	for k := range posters {
		posted.Go(func() {
			for i := k; i < messages; i += posters {
				first, _, err := p.tryPost([]hw.SGE{dst.sge(8*i, 8)})
				at[first] = i
				r.also.NoError(err)
			}
		})
	}
	if !r.a.attr.NotReadyWait {
		posted.Wait()
	}
	for k, e := range from {
		sent.Go(func() {
			for m := k; m < messages; m += pairs {
				binary.BigEndian.PutUint64(src.buf[8*m:], uint64(m))
				_, _, err := e.tryPost(sendOf(src.sge(8*m, 8)))
				r.also.NoError(err)
			}
		})
	}
	sent.Wait()
	posted.Wait()
	for k, e := range from {
		for i := k; i < messages; i += pairs {
			r.must.Equal(hw.StatusSuccess, e.sent(i/pairs).Status)
		}
	}
	p.wait("all messages", func() bool { return p.turns == messages })
	var turns [messages]int
	for i, e := range p.entries {
		turns[e.turn] = i
	}
	next := make(map[*end]uint64)
	for _, i := range turns {
		e := p.entries[i]
		r.must.Equal(hw.StatusSuccess, e.wc.Status)
		m := binary.BigEndian.Uint64(dst.buf[8*at[i]:])
		if want, known := next[e.by]; known {
			r.must.Equal(want, m, e.by.name())
		}
		next[e.by] = m + pairs
	}
	r.also.Len(next, pairs)
}
