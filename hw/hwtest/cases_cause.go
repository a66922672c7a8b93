package hwtest

import (
	"errors"

	"godat/hw"
)

// causeCases test that every end of a connection, and of an attempt to connect, has a
// cause on both sides. The causes' texts differ between transports.
var causeCases = []contractCase{
	{"nobody listens: the cause has words, and the error of the other end", func(r *rig) {
		l := r.b.listen(hw.ListenConfig{})
		qual := l.Qual()
		l.close()
		r.refusedAs(hw.ConnectConfig{Addr: r.b.attr.Address, Qual: qual}, hw.ReasonRejected)
	}},
	{"a reject is found by the peer", func(r *rig) {
		a := r.a.newEnd()
		r.must.NoError(r.b.request(a, nil).Reject([]byte("no")))
		a.awaitRefused()
		r.also.Equal(hw.SidePeer, r.causes(a)[0].Found)
	}},
	{"OnRequest says no: the peer found it", func(r *rig) {
		l := r.b.listen(hw.ListenConfig{})
		l.refuse.Store(true)
		a := r.a.newEnd()
		a.connect(l, nil)
		a.awaitRefused()
		r.also.Equal(hw.SidePeer, r.causes(a)[0].Found)
	}},
	{"a send that finds no receive: both sides know why", func(r *rig) {
		a, b := r.pair()
		a.post(sendOf())
		r.brokenBecause(a, b, hw.StatusReceiverNotReady)
	}},
	{"a message too long for its receive: the receiver found it", func(r *rig) {
		a, b := r.pair()
		src, dst := r.a.mem(64, hw.LocalRead), r.b.mem(8, hw.LocalWrite)
		b.recv(dst.all())
		a.post(sendOf(src.all()))
		r.brokenBecause(a, b, hw.StatusLocalLength, hw.StatusRemoteResponder)
		r.also.Equal(hw.SideLocal, b.cause.Found, "%v", b.cause)
	}},
	{"a write with a wrong key, or without the privilege: the target found it", ifHas(hw.OpWrite, func(r *rig) {
		for _, wrong := range []uint32{1 << 8, 0} {
			a, b := r.pair()
			near, far := r.a.mem(8, hw.LocalRead), r.b.mem(8, hw.LocalWrite|hw.RemoteRead)
			wr := writeTo(far, 0, near.all())
			wr.RKey ^= wrong
			a.post(wr)
			r.brokenBecause(a, b, hw.StatusRemoteAccess)
			r.also.Equal(hw.SidePeer, a.cause.Found, "%v", a.cause)
		}
	})},
	{"a send from memory of no region: this side found it, and the peer is told so", func(r *rig) {
		a, b := r.pair()
		b.recv()
		a.post(sendOf(hw.SGE{Addr: 1, Len: 1}))
		r.brokenBecause(a, b, hw.StatusLocalProtection)
		r.also.Equal(hw.SideLocal, a.cause.Found, "%v", a.cause)
		r.also.Equal(hw.SidePeer, b.cause.Found, "%v", b.cause)
	}},
	{"a Break that is not orderly: the peer found it", func(r *rig) {
		a, b := r.pair()
		a.breakNow(false)
		r.broken(b)
		r.also.Equal(hw.SidePeer, r.causes(b)[0].Found)
	}},
}

// brokenBecause checks that a connection broke, and that both ends got a cause. A cause that
// holds a completion status must hold one of may.
func (r *rig) brokenBecause(a, b *end, may ...hw.Status) {
	r.tb.Helper()
	r.broken(a, b)
	for _, c := range r.causes(a, b) {
		var status hw.StatusError
		if errors.As(c, &status) {
			r.also.Contains(may, hw.Status(status), "%v", c)
		}
	}
}

// badCause reports whether a cause says too little: it must have a text or an error, and
// a known layer and side.
func badCause(c *hw.Cause) bool {
	return c == nil || c.Text == "" && c.Err == nil || c.Layer > hw.LayerVerbs || c.Found > hw.SidePeer
}

// causes lists the ends' causes; each must have one.
func (r *rig) causes(ends ...*end) (all []*hw.Cause) {
	r.tb.Helper()
	for _, e := range ends {
		e.mu.Lock()
		c := e.cause
		e.mu.Unlock()
		r.must.NotNil(c, e.name())
		all = append(all, c)
	}
	return all
}
