package hwtest

import (
	"fmt"

	"godat/hw"
)

var deregisterCases = []contractCase{
	{"a posted receive whose memory is gone fails with LocalProtection, and Deregister did not wait for it", func(r *rig) {
		a, b := r.pair()
		src, dst := r.a.mem(64, hw.LocalRead), r.b.mem(64, hw.LocalWrite)
		in := b.recv(dst.all())
		r.within("Deregister", func() { r.also.NoError(dst.free()) })
		out := a.post(sendOf(src.all()))
		r.also.Equal(hw.StatusLocalProtection, b.received(in).Status)
		r.also.Contains(r.atTarget(hw.StatusRemoteResponder), a.sent(out).Status)
		r.broken(a, b)
	}},
	{"a send that waits fails with LocalProtection when its memory is gone, and Deregister did not wait for it", ifWaits(func(r *rig) {
		a, b := r.pair(notReady(hourLong))
		src, dst := r.a.mem(64, hw.LocalRead), r.b.mem(64, hw.LocalWrite)
		out := a.post(sendOf(src.all()))
		a.mustWait(out)
		r.within("Deregister", func() { r.also.NoError(src.free()) })
		b.recv(dst.all())
		r.also.Equal(hw.StatusLocalProtection, a.sent(out).Status)
		r.broken(a, b)
		r.also.Equal(make([]byte, 64), dst.buf)
	})},
	{"after Deregister of a write's target not a byte changes", freedUnder(hw.OpWrite, hw.StatusRemoteAccess, false)},
	{"after Deregister of a write's source not a byte is read", freedUnder(hw.OpWrite, hw.StatusLocalProtection, true)},
	{"after Deregister of a read's target not a byte is read", freedUnder(hw.OpRead, hw.StatusRemoteAccess, false)},
	{"after Deregister of a read's sink not a byte changes", freedUnder(hw.OpRead, hw.StatusLocalProtection, true)},
	{"after Deregister of a send's source not a byte is read", freedUnder(hw.OpSend, hw.StatusLocalProtection, true)},
	{"after Deregister of a receive's buffer not a byte changes", freedUnder(hw.OpSend, hw.StatusRemoteResponder, false)},
	{"Deregister returns while its region is being used without end", ifHas(hw.OpRead, deregisterUnderLoad)},
}

const (
	freeRounds = 4
	freeSize   = 256 << 10
	freeDepth  = 8
)

// freedUnder is a case that streams large requests, frees the region on one side during
// the stream, and writes to the memory at once. The race detector reports any later access
// by the provider; without it, the case sees bytes that change.
func freedUnder(op hw.Op, want hw.Status, local bool) func(*rig) {
	return ifHas(op, func(r *rig) { freeUnder(r, op, want, local) })
}

func freeUnder(r *rig, op hw.Op, want hw.Status, local bool) {
	for round := range freeRounds {
		a, b := r.pair(depth(freeDepth, freeDepth))
		near, far := r.a.mem(freeSize, hw.AllPrivileges), r.b.mem(freeSize, hw.AllPrivileges)
		for range freeDepth {
			b.recv(far.all())
		}
		wr := sendOf(near.all())
		if op != hw.OpSend {
			wr = rdma(op, far, 0, near.all())
		}
		for range freeDepth {
			a.post(wr)
		}
		if round > 0 {
			a.sent(round - 1) // the stream is running
		}
		victim := far
		if local {
			victim = near
		}
		r.within("Deregister", func() { r.also.NoError(victim.free()) })
		fill(victim.buf, byte(round))
		r.endOfStream(a, b, op, want)
		over(a, b)
		r.also.Equal(pattern(freeSize, byte(round)), victim.buf, "round %d", round)
		r.closePair(a, b, near, far)
	}
}

// endOfStream checks how the requests ended: some succeeded, then at most one failed
// since the region was gone, and the rest were flushed.
func (r *rig) endOfStream(a, b *end, op hw.Op, want hw.Status) {
	last := a.sent(freeDepth - 1).Status
	if last == hw.StatusSuccess {
		return // the stream ended before Deregister, or the device completes early
	}
	r.broken(a, b)
	r.named(a, a.statuses(sendQueue))
	r.named(b, b.statuses(recvQueue))
	failed := false
	for i, s := range a.statuses(sendQueue) {
		switch {
		case s == hw.StatusSuccess:
			continue
		case !failed:
			r.also.Contains(append(r.early(op), want), s, "request %d", i)
			failed = true
		default:
			r.also.Equal(hw.StatusFlushed, s, "request %d", i)
		}
	}
}

// early lists the further statuses that are allowed for a request when an earlier one,
// which had completed early, fails at the target.
func (r *rig) early(op hw.Op) []hw.Status {
	if r.cfg.Gaps&EarlyCompletion != 0 && op != hw.OpRead {
		return []hw.Status{hw.StatusFlushed}
	}
	return nil
}

// closePair closes two queue pairs that have ended, and frees the regions that are not
// freed yet.
func (r *rig) closePair(a, b *end, gs ...*region) {
	a.close()
	b.close()
	r.free(gs...)
}

// deregisterUnderLoad frees a region while two connections read it.
func deregisterUnderLoad(r *rig) {
	far := r.b.mem(64<<10, hw.AllPrivileges)
	var readers []*end
	for i := range 2 {
		a, _ := r.pair()
		near := r.a.mem(64<<10, hw.AllPrivileges)
		readers = append(readers, a)
		for j := range defaultDepth {
			r.must.Equal(j, a.post(readFrom(far, 0, near.all())), fmt.Sprintf("reader %d", i))
		}
	}
	r.within("Deregister", func() { r.also.NoError(far.free()) })
	fill(far.buf, 1)
	for _, a := range readers {
		a.sent(defaultDepth - 1)
		for _, s := range a.statuses(sendQueue) {
			r.also.Contains([]hw.Status{hw.StatusSuccess, hw.StatusRemoteAccess, hw.StatusFlushed}, s)
		}
	}
	r.also.Equal(pattern(64<<10, 1), far.buf)
}
