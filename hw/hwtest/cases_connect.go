package hwtest

import (
	"bytes"
	"time"

	"godat/hw"
)

var connectCases = []contractCase{
	{"private data of every size travels with the request, the accept and the reject", privateData},
	{"more private data than Attr.MaxPrivate is refused", tooMuchPrivate},
	{"private data is copied", func(r *rig) {
		l := r.b.listen(hw.ListenConfig{})
		a, b := r.a.newEnd(), r.b.newEnd()
		hello, welcome := []byte("hello"), []byte("welcome")
		a.connect(l, hello)
		clear(hello)
		req := l.next()
		got, _ := req.Private()
		r.also.Equal("hello", string(got))
		r.must.NoError(b.accept(req, welcome))
		clear(welcome)
		r.also.Equal("welcome", string(a.awaitUp().Private))
		clear(got) // the data is the acceptor's to keep and to change
		b.awaitUp()
	}},
	{"a request and a connection know their addresses and limits", describe},
	{"nobody listens: Refused(ReasonRejected)", func(r *rig) {
		l := r.b.listen(hw.ListenConfig{})
		qual := l.Qual()
		l.close()
		_ = r.refusedAs(hw.ConnectConfig{Addr: r.b.attr.Address, Qual: qual}, hw.ReasonRejected)
	}},
	{"an address that leads nowhere: Refused(ReasonUnreachable)", func(r *rig) {
		_ = r.refusedAs(hw.ConnectConfig{Addr: r.cfg.Unknown, Qual: 1}, hw.ReasonUnreachable)
	}},
	{"OnRequest says no: Refused(ReasonRejected)", func(r *rig) {
		l := r.b.listen(hw.ListenConfig{})
		l.refuse.Store(true)
		cause := r.refusedAs(hw.ConnectConfig{Addr: r.b.attr.Address, Qual: l.Qual()}, hw.ReasonRejected)
		r.also.Equal(hw.SidePeer, cause.Found)
		l.refuse.Store(false)
		a, b := r.a.newEnd(), r.b.newEnd()
		a.connect(l, nil)
		r.must.NoError(b.accept(l.next(), nil))
		a.awaitUp()
	}},
	{"the consumer rejects: Refused(ReasonPeerRejected)", func(r *rig) {
		a := r.a.newEnd()
		r.must.NoError(r.b.request(a, nil).Reject(nil))
		why, private := a.awaitRefused()
		r.also.Equal(hw.ReasonPeerRejected, why)
		r.also.Empty(private)
		cause := r.causes(a)[0]
		r.also.Equal(hw.SidePeer, cause.Found)
		r.also.NotNil(cause.Local, "this end had an address")
		r.also.NotNil(cause.Remote)
	}},
	{"the backlog bounds requests on their way, not those that wait for an answer", func(r *rig) {
		l := r.b.listen(hw.ListenConfig{Backlog: 1})
		for range 5 {
			r.a.newEnd().connect(l, nil)
			l.next()
		}
	}},
	{"a second answer fails with INVALID_HANDLE and changes nothing", secondAnswer},
	{"a request may be rejected beside the close of its device", rejectBesideClose},
	{"an Accept that fails makes the request dead and leaves the queue pair as it was", failedAccept},
	{"Connect on a queue pair that is not new fails, and no fact follows", func(r *rig) {
		l := r.b.listen(hw.ListenConfig{})
		a, b := r.pair()
		r.also.ErrorIs(a.tryConnect(hw.ConnectConfig{Addr: r.b.attr.Address, Qual: l.Qual()}), hw.ErrInvalidState)
		roundTrip(r, a, b)
		a.over()
		r.also.ErrorIs(a.tryConnect(hw.ConnectConfig{Addr: r.b.attr.Address, Qual: l.Qual()}), hw.ErrInvalidState)
	}},
	{"Accept when the initiator has gone: Refused", func(r *rig) {
		a, b := r.a.newEnd(), r.b.newEnd()
		in := b.recv()
		req := r.b.request(a, nil)
		a.over()
		r.must.NoError(b.accept(req, nil))
		why, _ := b.awaitRefused()
		r.also.NotEqual(hw.ReasonPeerRejected, why, "nobody rejected")
		b.over()
		r.also.Equal(hw.StatusFlushed, b.statuses(recvQueue)[in])
		r.reconnect(a, b)
	}},
	{"Reject when the initiator has gone is fine", func(r *rig) {
		a := r.a.newEnd()
		req := r.b.request(a, nil)
		a.over()
		r.also.NoError(req.Reject([]byte("too late")))
		r.also.ErrorIs(req.Reject(nil), hw.ErrInvalidHandle)
	}},
	{"a listener that is closed leaves the requests it handed out valid", func(r *rig) {
		l := r.b.listen(hw.ListenConfig{})
		a, b, c := r.a.newEnd(), r.b.newEnd(), r.a.newEnd()
		a.connect(l, []byte("a"))
		first := l.next()
		c.connect(l, []byte("c"))
		second := l.next()
		l.close()
		r.must.NoError(b.accept(first, nil))
		a.awaitUp()
		b.awaitUp()
		r.must.NoError(second.Reject(nil))
		c.awaitRefused()
		roundTrip(r, a, b)
	}},
	{"a qualifier has one listener at a time", qualifiers},
	{"a request that nobody answers runs out of time, or waits for Break", func(r *rig) {
		l := r.b.listen(hw.ListenConfig{})
		a, c := r.a.newEnd(), r.a.newEnd()
		before := time.Now()
		r.must.NoError(a.tryConnect(hw.ConnectConfig{
			Addr: r.b.attr.Address, Qual: l.Qual(), Timeout: shortWait, Private: []byte("first"),
		}))
		// The first request doesn't come if its attempt runs out of time before. The second
		// attempt has no timeout and outlives the first.
		c.connect(l, []byte("second"))
		req := l.nextOf("second")
		waitFor(&a.cond, 3*shortWait, func() bool { return a.refused != hw.ReasonNone })
		a.breakNow(false)
		a.awaitEnd()
		if a.refused != hw.ReasonNone {
			r.also.Equal(hw.ReasonTimeout, a.refused)
			r.also.GreaterOrEqual(time.Since(before), shortWait)
		}
		d := r.b.newEnd()
		r.must.NoError(d.accept(req, nil))
		c.awaitUp()
	}},
	{"the active side is up before anything completes on it", func(r *rig) {
		for range 20 {
			a, b := r.a.newEnd(), r.b.newEnd()
			in, back := a.recv(), b.recv()
			r.must.NoError(b.accept(r.b.request(a, nil), nil))
			b.awaitUp()
			b.post(sendOf())
			a.await("a completion or Established", func() bool { return a.info != nil || a.books[recvQueue].head > in })
			a.mu.Lock()
			r.also.NotNil(a.info, "a completion came before Established on the active side")
			a.mu.Unlock()
			a.received(in)
			a.post(sendOf())
			b.received(back)
		}
	}},
	{"many attempts at once each reach their own peer", crowd},
}

// refusedAs connects and checks that the attempt is refused with the reason want, and
// returns the cause. It also checks that the queue pair ends, and works after Reset.
func (r *rig) refusedAs(cfg hw.ConnectConfig, want hw.Reason) *hw.Cause {
	a := r.a.newEnd()
	in := a.recv()
	r.must.NoError(a.tryConnect(cfg))
	why, private := a.awaitRefused()
	r.also.Equal(want, why)
	r.also.Empty(private)
	cause := r.causes(a)[0]
	a.over()
	r.also.Equal(hw.StatusFlushed, a.statuses(recvQueue)[in])
	a.reset()
	b := r.b.newEnd()
	r.join(a, b)
	roundTrip(r, a, b)
	return cause
}

func privateData(r *rig) {
	most := r.a.attr.MaxPrivate
	for _, n := range []int{0, 1, 2, most / 2, most - 1, most} {
		if n < 0 || n > most {
			continue
		}
		hello, answer := pattern(n, 1), pattern(n, 2)
		for _, accept := range []bool{true, false} {
			a, b := r.a.newEnd(), r.b.newEnd()
			req := r.b.request(a, hello)
			got, truncated := req.Private()
			r.also.True(bytes.Equal(hello, got), "%d bytes in the request", n)
			r.also.False(truncated)
			r.also.Equal(n == 0, got == nil, "nil is no private data in the request, of %d", n)
			if accept {
				r.must.NoError(b.accept(req, answer))
				got = a.awaitUp().Private
				r.also.True(bytes.Equal(answer, got), "%d bytes in the accept", n)
				r.also.Equal(n == 0, got == nil, "nil is no private data in the accept, of %d", n)
				r.also.Nil(b.awaitUp().Private, "the passive side's is in the request")
				continue
			}
			r.must.NoError(req.Reject(answer))
			why, got := a.awaitRefused()
			r.also.Equal(hw.ReasonPeerRejected, why)
			r.also.True(bytes.Equal(answer, got), "%d bytes in the reject", n)
			r.also.Equal(n == 0, got == nil, "nil is no private data in the reject, of %d", n)
		}
	}
}

func tooMuchPrivate(r *rig) {
	l := r.b.listen(hw.ListenConfig{})
	data := make([]byte, r.a.attr.MaxPrivate+1)
	a, b := r.a.newEnd(), r.b.newEnd()
	err := a.tryConnect(hw.ConnectConfig{Addr: r.b.attr.Address, Qual: l.Qual(), Private: data})
	r.also.ErrorIs(err, hw.ErrInvalidParameter)

	// The attempt did not start, so the same queue pair can connect.
	req := r.b.request(a, nil)
	r.also.ErrorIs(b.accept(req, data), hw.ErrInvalidParameter)
	why, _ := a.awaitRefused()
	r.also.Equal(hw.ReasonRejected, why, "a dead request is refused, and not by the consumer")
	r.also.ErrorIs(b.accept(req, nil), hw.ErrInvalidHandle, "the request is dead")
	a.over()
	a.reset()

	req = r.b.request(a, nil)
	r.also.ErrorIs(req.Reject(data), hw.ErrInvalidParameter)
	a.over()
	a.reset()
	r.join(a, b)
	roundTrip(r, a, b)
}

func describe(r *rig) {
	l := r.b.listen(hw.ListenConfig{})
	r.also.NotNil(l.Addr())
	r.also.NotZero(l.Qual())
	a, b := r.a.newEnd(), r.b.newEnd()
	a.connect(l, nil)
	req := l.next()
	r.also.Equal(l.Qual(), req.Qual())
	r.also.NotNil(req.Local())
	r.also.NotNil(req.Remote())
	r.must.NoError(b.accept(req, nil))
	up, down := a.awaitUp(), b.awaitUp()
	for _, info := range []hw.ConnInfo{up, down} {
		r.also.NotNil(info.Local)
		r.also.NotNil(info.Remote)
		r.also.NotEmpty(info.Local.String())
		r.also.NotEmpty(info.Remote.Network())
	}
	r.also.Equal(req.Remote().String(), down.Remote.String())
	for _, s := range []struct {
		name string
		out  hw.ConnInfo
		in   hw.ConnInfo
		from *end
		to   *end
	}{{"active", up, down, a, b}, {"passive", down, up, b, a}} {
		r.also.LessOrEqual(s.out.ReadsOut, min(s.from.cfg.ReadsOut, s.to.cfg.ReadsIn), "%s side: no more than either asked for", s.name)
		r.also.LessOrEqual(s.out.ReadsOut, s.in.ReadsIn, "%s side: no more than the peer takes", s.name)
		if r.a.attr.Ops.Has(hw.OpRead) && r.b.attr.Ops.Has(hw.OpRead) {
			r.also.Positive(s.out.ReadsOut, "%s side", s.name)
		}
	}
}

func secondAnswer(r *rig) {
	a, b, spare := r.a.newEnd(), r.b.newEnd(), r.b.newEnd()
	req := r.b.request(a, nil)
	r.must.NoError(b.accept(req, nil))
	r.also.ErrorIs(spare.accept(req, nil), hw.ErrInvalidHandle)
	r.also.ErrorIs(req.Reject(nil), hw.ErrInvalidHandle)
	a.awaitUp()
	b.awaitUp()
	r.also.ErrorIs(spare.accept(req, nil), hw.ErrInvalidHandle)
	roundTrip(r, a, b)

	c := r.a.newEnd()
	req = r.b.request(c, nil)
	r.must.NoError(req.Reject(nil))
	r.also.ErrorIs(req.Reject(nil), hw.ErrInvalidHandle)
	r.also.ErrorIs(spare.accept(req, nil), hw.ErrInvalidHandle)
	c.awaitRefused()
	r.join(r.a.newEnd(), spare)
}

func rejectBesideClose(r *rig) {
	a := r.a.newEnd()
	for range 4 {
		h := r.open(1)
		r.must.NoError(h.zone.Close())
		h.zone = nil
		l := h.listen(hw.ListenConfig{})
		a.connect(l, nil)
		req := l.next()
		l.close()
		rejected := make(chan error)
		go func() { rejected <- req.Reject(nil) }()
		h.close()
		if err := <-rejected; err != nil {
			r.also.ErrorIs(err, hw.ErrInvalidHandle, "the device has answered")
		}
		r.also.ErrorIs(req.Reject(nil), hw.ErrInvalidHandle)
		a.awaitRefused()
		a.over()
		a.reset()
	}
}

func failedAccept(r *rig) {
	a, b := r.pair()
	c := r.a.newEnd()
	req := r.b.request(c, nil)
	r.also.ErrorIs(b.accept(req, nil), hw.ErrInvalidState, "the queue pair is connected")
	why, _ := c.awaitRefused()
	r.also.Equal(hw.ReasonRejected, why)
	r.also.ErrorIs(r.b.newEnd().accept(req, nil), hw.ErrInvalidHandle, "the request is dead")
	roundTrip(r, a, b)
}

func qualifiers(r *rig) {
	one, two := r.b.listen(hw.ListenConfig{}), r.b.listen(hw.ListenConfig{})
	r.also.NotEqual(one.Qual(), two.Qual(), "the provider chooses free ones")
	_, err := r.b.dev.Listen(hw.ListenConfig{Qual: one.Qual(), OnRequest: one.onRequest})
	r.also.ErrorIs(err, hw.ErrConnQualInUse)
	a, b := r.a.newEnd(), r.b.newEnd()
	a.connect(one, nil)
	r.must.NoError(b.accept(one.next(), nil))
	a.awaitUp()
	qual := one.Qual()
	one.close()
	again := r.b.listen(hw.ListenConfig{Qual: qual})
	r.also.Equal(qual, again.Qual(), "a qualifier is free again at once")
	c, d := r.a.newEnd(), r.b.newEnd()
	c.connect(again, nil)
	r.must.NoError(d.accept(again.next(), nil))
	c.awaitUp()
	roundTrip(r, a, b)
}

// crowd connects many queue pairs at once through one listener. Private data identifies
// each.
func crowd(r *rig) {
	const n = 16
	l := r.b.listen(hw.ListenConfig{Backlog: n})
	var as, bs [n]*end
	for i := range as {
		as[i] = r.a.newEnd()
		as[i].connect(l, []byte{byte(i)})
	}
	for range n {
		req := l.next()
		who, _ := req.Private()
		b := r.b.newEnd()
		bs[who[0]] = b
		r.must.NoError(b.accept(req, []byte{who[0] + 100}))
	}
	for i := range as {
		r.also.Equal([]byte{byte(i) + 100}, as[i].awaitUp().Private)
		bs[i].awaitUp()
	}
	for i := range as {
		r.message(as[i], bs[i], 10, byte(i))
		r.message(bs[i], as[i], 10, byte(i))
	}
}
