package hwtest

import (
	"errors"

	"godat/hw"
)

var pairCases = []contractCase{
	{"a queue pair's values have a text, and last for a life", ifPairs(func(r *rig) {
		a := r.a.newEnd()
		one := a.values()
		text, err := one.MarshalText()
		r.must.NoError(err)
		var read hw.PairAddr
		r.must.NoError(read.UnmarshalText(text))
		r.also.Equal(one, read)
		r.also.Equal(one, a.values(), "asked again")
		other := r.a.newEnd()
		r.also.NotEqual(one.QPN, other.values().QPN, "another queue pair of the device")
		a.over()
		a.reset()
		r.also.NotEqual(one, a.values(), "the next life")
	})},
	{"both ends pair, are told the values, and send both ways", ifPairs(func(r *rig) {
		a, b := r.a.newEnd(), r.b.newEnd()
		r.pairUp(a, b)
		r.also.Equal(a.values().QPN, a.info.Local.(hw.PairAddr).QPN)
		r.also.Equal(b.values(), a.info.Remote)
		r.also.Equal([2]int{a.cfg.ReadsIn, a.cfg.ReadsOut}, [2]int{a.info.ReadsIn, a.info.ReadsOut}, "nobody agrees on fewer")
		roundTrip(r, a, b)
	})},
	{"all operations go both ways", ifPairs(func(r *rig) {
		a, b := r.a.newEnd(depth(trafficSends, trafficDepth)), r.b.newEnd(depth(trafficSends, trafficDepth))
		r.pairUp(a, b)
		both := newTraffic(r, a, b, 1, 100)
		together(func() { r.also.NoError(both[0].run()) }, func() { r.also.NoError(both[1].run()) })
	})},
	{"Established comes at once, and what is sent waits for the peer to pair", ifPairs(func(r *rig) {
		a, b := r.a.newEnd(), r.b.newEnd()
		src, dst := r.a.mem(8, hw.LocalRead), r.b.mem(8, hw.LocalWrite)
		fill(src.buf, 1)
		there := b.values()
		r.must.NoError(a.tryPair(there))
		a.awaitUp()
		out := a.post(sendOf(src.all()))
		in := b.recv(dst.all())
		r.must.NoError(b.tryPair(a.values()))
		r.also.Equal(hw.StatusSuccess, b.received(in).Status)
		r.also.Equal(hw.StatusSuccess, a.sent(out).Status)
		r.also.Equal(src.buf, dst.buf)
		r.message(b, a, 100, 2)
	})},
	{"a value out of its range is refused, and the queue pair stays as it was", ifPairs(func(r *rig) {
		a, b := r.a.newEnd(), r.b.newEnd()
		for _, change := range []func(*hw.PairAddr){
			func(v *hw.PairAddr) { v.QPN = hw.MaxQPN + 1 },
			func(v *hw.PairAddr) { v.PSN = hw.MaxPSN + 1 },
			func(v *hw.PairAddr) { v.MTU = 1000 },
			func(v *hw.PairAddr) { v.QPN = 0 },
			func(v *hw.PairAddr) { v.QPN = 1 },
			func(v *hw.PairAddr) { v.QPN = hw.MaxQPN },
			func(v *hw.PairAddr) { v.GID = [16]byte{0xff, 0x0e} },
		} {
			bad := b.values()
			change(&bad)
			r.also.ErrorIs(a.tryPair(bad), hw.ErrInvalidParameter)
		}
		r.pairUp(a, b)
		roundTrip(r, a, b)
	})},
	{"a wrong number or GID is refused, or the first request fails", ifPairs(func(r *rig) {
		for _, change := range []func(*hw.PairAddr){
			func(v *hw.PairAddr) { v.QPN ^= 0x5a5a5a },
			func(v *hw.PairAddr) { v.GID[15] ^= 0x5a },
		} {
			a, b := r.a.newEnd(), r.b.newEnd()
			bad := b.values()
			change(&bad)
			b.recv() // what is sent would find it
			err := a.tryPair(bad)
			if err == nil {
				r.unheard(a)
				continue
			}
			r.also.ErrorIs(err, hw.ErrInvalidParameter)
			r.pairUp(a, b)
			r.message(b, a, 100, 1)
		}
	})},
	{"a wrong PSN is refused, or the peer's first request fails", ifPairs(func(r *rig) {
		a, b := r.a.newEnd(), r.b.newEnd()
		bad := a.values()
		bad.PSN = (bad.PSN - 1000) & hw.MaxPSN // the peer's packets then come from the future
		b.recv()
		err := b.tryPair(bad)
		r.must.NoError(a.tryPair(b.values()))
		if err == nil {
			r.unheard(a)
			return
		}
		r.also.ErrorIs(err, hw.ErrInvalidParameter)
		r.must.NoError(b.tryPair(a.values()))
		r.message(b, a, 100, 1)
	})},
	{"Pair on a queue pair that is not new fails, and no fact follows", ifPairs(func(r *rig) {
		a, b := r.a.newEnd(), r.b.newEnd()
		r.pairUp(a, b)
		r.also.ErrorIs(a.tryPair(b.values()), hw.ErrInvalidState)
		roundTrip(r, a, b)
		over(a, b)
		r.also.ErrorIs(a.tryPair(r.b.newEnd().values()), hw.ErrInvalidState)
	})},
	{"the end of a peer shows in a request at the latest, and Reset makes a pair as new", ifPairs(func(r *rig) {
		a, b := r.a.newEnd(), r.b.newEnd()
		for range 2 {
			r.pairUp(a, b)
			roundTrip(r, a, b)
			in := a.recv()
			b.over()
			r.unheard(a)
			r.also.Equal(hw.StatusFlushed, a.statuses(recvQueue)[in])
			a.reset()
			b.reset()
		}
	})},
	{"a peer that ends in order, and one that breaks, are told apart without a request", ifPairs(func(r *rig) {
		a, b := r.a.newEnd(), r.b.newEnd()
		for _, how := range []struct {
			end func()
			why hw.Reason
		}{
			{func() { b.breakNow(true) }, hw.ReasonPeer},
			{func() { b.drain(); b.awaitDown(); b.breakNow(true) }, hw.ReasonPeer},
			{func() { b.breakNow(false) }, hw.ReasonBroken},
		} {
			r.pairUp(a, b)
			how.end()
			r.also.Equal(how.why, a.awaitDown())
			over(a, b)
			a.reset()
			b.reset()
		}
	})},
	{"the end of a peer shows in the request that is outstanding", ifPairs(ifWaits(func(r *rig) {
		a, b := r.a.newEnd(notReady(hourLong)), r.b.newEnd()
		r.pairUp(a, b)
		out := a.post(sendOf())
		a.mustWait(out)
		b.over()
		r.also.NotEqual(hw.StatusSuccess, a.sent(out).Status)
		r.goneFor(a)
	}))},
	{"the end of a peer that has not paired shows, too", ifPairs(func(r *rig) {
		a, b := r.a.newEnd(), r.b.newEnd()
		r.must.NoError(a.tryPair(b.values()))
		a.awaitUp()
		b.over()
		r.unheard(a)
		a.reset()
		b.reset()
		r.must.NoError(a.tryPair(b.values()))
		b.close()
		r.unheard(a)
	})},
	{"Drain and Break work while the peer has not paired", ifPairs(func(r *rig) {
		a, b := r.a.newEnd(), r.b.newEnd()
		r.must.NoError(a.tryPair(b.values()))
		a.awaitUp()
		a.drain()
		r.also.Equal(hw.ReasonDrained, a.awaitDown())
		a.over()
		a.reset()
		r.must.NoError(a.tryPair(b.values()))
		a.awaitUp()
		in, out := a.recv(), a.post(sendOf(), hw.SendWR{Op: hw.OpSend})
		a.over()
		r.also.Equal(hw.StatusFlushed, a.statuses(recvQueue)[in])
		r.also.Equal([]hw.Status{hw.StatusFlushed, hw.StatusFlushed}, a.statuses(sendQueue)[out:])
		a.reset()
		r.pairUp(a, b)
		roundTrip(r, a, b)
	})},
	{"Drain waits for what is sent to a peer that pairs later", ifPairs(func(r *rig) {
		a, b := r.a.newEnd(), r.b.newEnd()
		r.must.NoError(a.tryPair(b.values()))
		a.awaitUp()
		out := a.post(sendOf())
		a.drain()
		in := b.recv()
		r.must.NoError(b.tryPair(a.values()))
		r.also.Equal(hw.StatusSuccess, b.received(in).Status)
		r.also.Equal(hw.ReasonDrained, a.awaitDown())
		r.also.Equal(hw.StatusSuccess, a.sent(out).Status)
	})},
	{"two ends that pair at the same time meet, many times", ifPairs(func(r *rig) {
		a, b := r.a.newEnd(), r.b.newEnd()
		for range 20 {
			x, y := a.values(), b.values()
			in, back := a.recv(), b.recv()
			pairAndSend := func(e *end, peer hw.PairAddr) {
				r.also.NoError(e.tryPair(peer))
				e.post(sendOf())
			}
			together(func() { pairAndSend(a, y) }, func() { pairAndSend(b, x) })
			r.also.Equal(hw.StatusSuccess, a.received(in).Status)
			r.also.Equal(hw.StatusSuccess, b.received(back).Status)
			together(a.over, b.over)
			a.reset()
			b.reset()
		}
	})},
	{"Local and Pair of what is no queue pair of the device fail", ifPairs(func(r *rig) {
		a, b := r.a.newEnd(), r.b.newEnd()
		_, err := r.a.pairer().Local(b.qp)
		r.also.Error(err)
		r.also.Error(r.a.pairer().Pair(b.qp, a.values()))
		r.also.Error(r.a.pairer().Pair(nil, b.values()))
		r.pairUp(a, b)
		roundTrip(r, a, b)
	})},
}

// ifPairs runs a case on devices that pair.
func ifPairs(run func(*rig)) func(*rig) {
	return only(func(r *rig) bool {
		p, ok := r.a.dev.(hw.Pairer)
		if !ok {
			return false
		}
		_, err := p.Local(r.a.newEnd().qp)
		return !errors.Is(err, errors.ErrUnsupported)
	}, "the device can't pair queue pairs", run)
}

func (h *host) pairer() hw.Pairer { return h.dev.(hw.Pairer) }

// values are the end's values, for its peer.
func (e *end) values() hw.PairAddr {
	e.calls.Lock()
	defer e.calls.Unlock()
	v, err := e.host.pairer().Local(e.qp)
	e.host.rig.must.NoError(err)
	return v
}

func (e *end) tryPair(peer hw.PairAddr) error {
	e.calls.Lock()
	defer e.calls.Unlock()
	return e.host.pairer().Pair(e.qp, peer)
}

// pairUp connects two ends by their values.
func (r *rig) pairUp(a, b *end) {
	x, y := a.values(), b.values()
	r.must.NoError(a.tryPair(y))
	a.awaitUp()
	r.must.NoError(b.tryPair(x))
	b.awaitUp()
}

// unheard checks that no request of an end reaches its peer, and that the end hears so.
func (r *rig) unheard(e *end) {
	out := e.post(sendOf())
	r.goneFor(e)
	r.also.NotEqual(hw.StatusSuccess, e.sent(out).Status)
}

// goneFor checks that an end hears Down, because its peer is gone.
func (r *rig) goneFor(e *end) {
	r.also.Contains([]hw.Reason{hw.ReasonPeer, hw.ReasonBroken}, e.awaitDown())
	r.causes(e)
	e.over()
}
