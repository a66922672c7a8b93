package hwtest

import "godat/hw"

// What an owner may do while the provider tells it something: call the queue pair, or make
// one, before the provider's call returns.
var answerCases = []contractCase{
	{"an owner breaks its queue pair before Down returns", func(r *rig) {
		for _, orderly := range []bool{true, false} {
			a, b := r.pair()
			in := b.recv()
			whenDown(b, orderly)
			a.breakNow(orderly)
			b.awaitDown()
			a.awaitEnd()
			b.awaitEnd()
			r.also.Equal(hw.StatusFlushed, b.statuses(recvQueue)[in])
			r.reconnect(a, b)
		}
	}},
	{"both owners break their queue pairs before Down returns", func(r *rig) {
		a, b := r.pair()
		whenDown(a, false)
		whenDown(b, false)
		out := a.post(sendOf(hw.SGE{Addr: 1, Len: 1}))
		r.also.Equal(hw.StatusLocalProtection, a.sent(out).Status)
		for _, e := range []*end{a, b} {
			e.awaitDown()
			e.answerNow()
			e.awaitEnd()
		}
	}},
	{"an owner breaks its queue pair before Refused returns", func(r *rig) {
		a := r.a.newEnd()
		a.whenHears(func() bool { return a.refused != hw.ReasonNone }, func() { a.breakNow(false) })
		r.must.NoError(r.b.request(a, nil).Reject(nil))
		a.awaitRefused()
		a.awaitEnd()
	}},
	{"an owner answers a message before its sink returns", func(r *rig) {
		a, b := r.pair()
		for range 10 {
			in, back := b.recv(), a.recv()
			b.whenHears(func() bool { return b.books[recvQueue].entries[in].done }, func() { b.post(sendOf()) })
			a.post(sendOf())
			r.also.Equal(hw.StatusSuccess, a.received(back).Status)
		}
	}},
	{"a listener's owner makes a queue pair before OnRequest returns", func(r *rig) {
		l := r.b.listen(hw.ListenConfig{})
		a := r.a.newEnd()
		var b *end
		makeEnd := func() { b = r.b.newEnd() }
		l.before.Store(&makeEnd)
		a.connect(l, nil)
		r.must.NoError(b.accept(l.next(), nil))
		a.awaitUp()
		roundTrip(r, a, b)
	}},
}

// whenDown has the owner break the queue pair when it hears that the connection is over.
func whenDown(e *end, orderly bool) {
	e.whenHears(func() bool { return e.down != hw.ReasonNone }, func() { e.breakNow(orderly) })
}
