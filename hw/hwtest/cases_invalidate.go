package hwtest

import (
	"errors"

	"godat/hw"
)

// invalidateCases are about sends that invalidate a key of the peer.
var invalidateCases = []contractCase{
	{"a device without it refuses a send that invalidates", func(r *rig) {
		if r.a.attr.Ops.Has(hw.OpSendInvalidate) {
			return // the other cases test it
		}
		a, _ := r.pair()
		_, n, err := a.tryPost(hw.SendWR{Op: hw.OpSendInvalidate})
		r.also.Zero(n)
		r.also.ErrorIs(err, errors.ErrUnsupported)
	}},
	{"a send that invalidates a bad key breaks the connection", ifHas(hw.OpSendInvalidate, func(r *rig) {
		a, b := r.pair()
		in := b.recv()
		// InfiniBand acknowledges the message before it checks the key, so the send may
		// succeed.
		a.sent(a.post(hw.SendWR{Op: hw.OpSendInvalidate, Flags: hw.WRSignaled, Imm: 0x12345600}))
		r.broken(a, b)
		b.over()
		r.also.NotEqual(hw.StatusSuccess, b.statuses(recvQueue)[in])
	})},
	{"the key is dead when the receive completes, which says so", ifInvalidates(func(r *rig) {
		for _, n := range []int{0, 64, 1 << 20} {
			for _, flags := range []hw.WRFlags{hw.WRSignaled, hw.WRSignaled | hw.WRSolicited} {
				a, b := r.pair()
				target, key := r.exposed(b)
				src, dst := r.a.mem(max(n, 1), hw.LocalRead), r.b.mem(max(n, 1), hw.LocalWrite)
				fill(src.buf, 5)
				in := b.recv(dst.sge(0, n))
				out := a.post(hw.SendWR{Op: hw.OpSendInvalidate, Flags: flags, Imm: key, SGL: []hw.SGE{src.sge(0, n)}})
				wc := b.received(in)
				r.must.Equal(hw.StatusSuccess, wc.Status)
				r.also.Equal(hw.OpRecvInvalidate, wc.Op)
				r.also.NotZero(wc.Flags & hw.WCInvalidated)
				r.also.Zero(wc.Flags & hw.WCImm)
				r.also.Equal(flags&hw.WRSolicited != 0, wc.Flags&hw.WCSolicited != 0)
				r.also.Equal(key, wc.Imm)
				r.also.EqualValues(n, wc.Len)
				r.also.Equal(src.buf[:n], dst.buf[:n])
				r.also.Equal(hw.StatusSuccess, a.sent(out).Status)
				roundTrip(r, a, b)
				r.deadKey(key, target)
				r.also.NoError(target.free(), "nothing is bound to it")
			}
		}
	})},
	{"an invalidation of a bad key fails with RemoteAccess", ifInvalidates(func(r *rig) {
		far := r.b.memIn(r.b.newZone(), make([]byte, 64), hw.AllPrivileges)
		near := r.b.mem(64, hw.LocalRead|hw.LocalWrite)
		for name, key := range map[string]uint32{
			"a made-up key": far.mr.RKey() ^ 1<<20, "zero": 0, "another zone's": far.mr.RKey(), "a local one": near.mr.LKey(),
		} {
			a, b := r.pair()
			in := b.recv()
			out := a.post(hw.SendWR{Op: hw.OpSendInvalidate, Flags: hw.WRSignaled, Imm: key})
			r.also.Contains(r.atTarget(hw.StatusRemoteAccess), a.sent(out).Status, name)
			r.broken(a, b)
			b.over()
			r.also.NotEqual(hw.StatusSuccess, b.statuses(recvQueue)[in], name)
		}
		a, b := r.pair()
		in := b.recv(near.all())
		a.sent(a.post(sendOf()))
		r.also.Equal(hw.StatusSuccess, b.received(in).Status, "the local key is as good as it was")
	})},
	{"a region whose key was invalidated keeps its local rights", ifInvalidates(func(r *rig) {
		a, b := r.pair()
		g, src := r.b.mem(64, hw.AllPrivileges), r.a.mem(64, hw.LocalRead)
		fill(src.buf, 1)
		in := b.recv(g.all())
		a.sent(a.post(hw.SendWR{Op: hw.OpSendInvalidate, Flags: hw.WRSignaled, Imm: g.mr.RKey(), SGL: []hw.SGE{src.all()}}))
		r.must.Equal(hw.StatusSuccess, b.received(in).Status)
		r.also.Equal(src.buf, g.buf)
		r.deadKey(g.mr.RKey(), g)
		r.also.NoError(g.free())
	})},
	{"a window that was invalidated is bound again", ifInvalidates(ifBinds(func(r *rig) {
		a, b := r.pair()
		g := r.b.mem(64, localAll)
		for _, w := range []*win{r.b.newWindow(r.b.zone, nil), r.b.newWindow(r.b.zone, b)} {
			var key uint32
			for range 3 {
				key = b.bind(w, g, 0, 64, remoteAll)
				r.also.Equal(hw.StatusSuccess, r.access(a, hw.OpWrite, key, g.base, 64))
				in := b.recv()
				a.post(hw.SendWR{Op: hw.OpSendInvalidate, Imm: key})
				r.must.Equal(hw.StatusSuccess, b.received(in).Status)
			}
			r.deadKey(key, g)
		}
	}))},
	{"a send that waits for a receive has invalidated nothing", ifInvalidates(ifWaits(ifHas(hw.OpWrite, func(r *rig) {
		a, b := r.pair(notReady(hourLong))
		c, _ := r.pair()
		target, key := r.exposed(b)
		out := a.post(hw.SendWR{Op: hw.OpSendInvalidate, Flags: hw.WRSignaled, Imm: key})
		a.mustWait(out)
		r.also.Equal(hw.StatusSuccess, r.access(c, hw.OpWrite, key, target.base, 64))
		b.received(b.recv())
		r.also.Equal(hw.StatusSuccess, a.sent(out).Status)
		r.deadKey(key, target)
	})))},
}

// ifInvalidates runs a case on devices with sends that invalidate and receives that
// report it.
func ifInvalidates(run func(*rig)) func(*rig) {
	return ifHas(hw.OpSendInvalidate, ifHas(hw.OpRecvInvalidate, run))
}

// reported is the operation in the completion of op.
func reported(op hw.Op) hw.Op {
	switch op {
	case hw.OpSendInvalidate:
		return hw.OpSend
	case hw.OpReadToRMR:
		return hw.OpRead
	}
	return op
}

// exposed makes memory of b's host and a remote key to it: a window's key where the
// device has windows, otherwise the region's.
func (r *rig) exposed(b *end) (*region, uint32) {
	if !binds(r) {
		g := r.b.mem(64, hw.AllPrivileges)
		return g, g.mr.RKey()
	}
	g := r.b.mem(64, localAll)
	return g, b.bind(r.b.newWindow(r.b.zone, nil), g, 0, 64, remoteAll)
}
