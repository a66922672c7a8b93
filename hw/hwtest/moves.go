package hwtest

import (
	"math/rand/v2"
	"time"

	"godat/hw"
)

// hourLong is a NotReady longer than any case runs.
const hourLong = time.Hour

// fill writes a pseudo-random pattern that depends on the seed.
func fill(buf []byte, seed byte) {
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(buf)
}

func pattern(n int, seed byte) []byte {
	buf := make([]byte, n)
	fill(buf, seed)
	return buf
}

// total is the length of a segment list in bytes.
func total(sgl []hw.SGE) (n uint64) {
	for _, s := range sgl {
		n += uint64(s.Len)
	}
	return n
}

// sendOf is a signaled send.
func sendOf(sgl ...hw.SGE) hw.SendWR {
	return hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled, SGL: sgl}
}

// rdma is a signaled RDMA write into g, or read from g, at off.
func rdma(op hw.Op, g *region, off int, sgl ...hw.SGE) hw.SendWR {
	return hw.SendWR{Op: op, Flags: hw.WRSignaled, SGL: sgl, RKey: g.mr.RKey(), RemoteAddr: g.base + uint64(off)}
}

func writeTo(g *region, off int, sgl ...hw.SGE) hw.SendWR { return rdma(hw.OpWrite, g, off, sgl...) }

func readFrom(g *region, off int, sgl ...hw.SGE) hw.SendWR { return rdma(hw.OpRead, g, off, sgl...) }

// message sends n bytes and checks that they arrive.
func (r *rig) message(from, to *end, n int, seed byte) {
	src, dst := from.host.mem(max(n, 1), hw.LocalRead), to.host.mem(max(n, 1), hw.LocalWrite)
	fill(src.buf, seed)
	in := to.recv(dst.sge(0, n))
	out := from.post(sendOf(src.sge(0, n)))
	wc := to.received(in)
	r.must.Equal(hw.StatusSuccess, wc.Status)
	r.also.Equal(uint32(n), wc.Len)
	r.also.Equal(hw.OpRecv, wc.Op)
	r.also.Equal(hw.StatusSuccess, from.sent(out).Status)
	r.also.Equal(src.buf[:n], dst.buf[:n])
	r.free(src, dst)
}

// has reports whether both devices have the operation. A case that needs it returns when
// it is missing; another case tests that the device refuses a missing operation.
func (r *rig) has(op hw.Op) bool {
	if r.a.attr.Ops.Has(op) && r.b.attr.Ops.Has(op) {
		return true
	}
	r.tb.Logf("the device has no %v, and refuses it: see send/an operation missing from Attr.Ops is refused", op)
	return false
}

// ifHas runs a case on devices that have the operation.
func ifHas(op hw.Op, run func(*rig)) func(*rig) {
	return func(r *rig) {
		if r.has(op) {
			run(r)
		}
	}
}

// only runs a case on devices that have something, and logs why not on others.
func only(has func(*rig) bool, why string, run func(*rig)) func(*rig) {
	return func(r *rig) {
		if has(r) {
			run(r)
		} else {
			r.tb.Log(why)
		}
	}
}

// ifWaits runs a case on devices where a send waits for a receive as long as NotReady
// says.
func ifWaits(run func(*rig)) func(*rig) {
	return only(func(r *rig) bool { return r.a.attr.NotReadyWait },
		"without Attr.NotReadyWait nothing waits, as failure/a send waits for a receive as long as NotReady says shows", run)
}

// atTarget lists the statuses that are allowed for a send or write which the target
// refuses with want: with EarlyCompletion it may also have succeeded. With Overtakes one
// whose receive failed may have been flushed. With EndsUnderSends it may have failed at home.
func (r *rig) atTarget(want hw.Status) []hw.Status {
	may := []hw.Status{want}
	if r.cfg.Gaps&EarlyCompletion != 0 {
		may = append(may, hw.StatusSuccess)
	}
	if r.cfg.EndsUnderSends {
		may = append(may, hw.StatusLocalEP)
	}
	if r.cfg.Overtakes && want == hw.StatusRemoteResponder {
		may = append(may, hw.StatusFlushed)
	}
	return may
}

// broken checks that each end gets Down(ReasonBroken).
func (r *rig) broken(ends ...*end) {
	for _, e := range ends {
		r.also.Equal(hw.ReasonBroken, e.awaitDown(), e.name())
	}
}

// within fails the test when f does not return in time.
func (r *rig) within(what string, f func()) {
	done := make(chan struct{})
	go closeAfter(done, f)
	receive(r, done, "the return of "+what)
}

// receive waits for a value of a channel, or for its close.
func receive[T any](r *rig, from <-chan T, what string) (v T) {
	select {
	case v = <-from:
	case <-time.After(r.cfg.Patience):
		r.must.Failf("waited in vain", "for %s", what)
	}
	return v
}

// together calls two functions at the same time, and returns when both have returned.
func together(f, g func()) {
	done := make(chan struct{})
	go closeAfter(done, f)
	g()
	<-done
}

func closeAfter(done chan struct{}, f func()) {
	defer close(done)
	f()
}
