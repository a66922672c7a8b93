package hwtest

import (
	"fmt"

	"godat/hw"
)

var rdmaCases = []contractCase{
	{"a write of any size places its bytes and nothing else", ifHas(hw.OpWrite, func(r *rig) { anySize(r, hw.OpWrite) })},
	{"a read of any size fetches its bytes and nothing else", ifHas(hw.OpRead, func(r *rig) { anySize(r, hw.OpRead) })},
	{"a write gathers from any segments", ifHas(hw.OpWrite, func(r *rig) { anySegments(r, hw.OpWrite) })},
	{"a read scatters into any segments", ifHas(hw.OpRead, func(r *rig) { anySegments(r, hw.OpRead) })},
	{"writes and reads take no receive of the peer", func(r *rig) {
		a, b := r.pair()
		near, far := r.a.mem(8, hw.AllPrivileges), r.b.mem(8, hw.AllPrivileges)
		for _, p := range r.probes(true) {
			r.also.Equal(hw.StatusSuccess, a.sent(a.post(rdma(p.op, far, 0, near.all()))).Status, "with no receive posted")
		}
		in := b.recv()
		a.post(sendOf())
		r.also.Zero(b.received(in).Len)
	}},
	{"a write is visible when a later message has arrived", ifHas(hw.OpWrite, visibility)},
	{"writes to the same place land in the order posted", ifHas(hw.OpWrite, func(r *rig) {
		a, b := r.pair()
		near, far := r.a.mem(defaultDepth, hw.LocalRead), r.b.mem(1, hw.RemoteWrite)
		var wrs []hw.SendWR
		for i := range defaultDepth - 1 {
			near.buf[i] = byte(i + 1)
			wrs = append(wrs, writeTo(far, 0, near.sge(i, 1)))
		}
		in := b.recv()
		a.post(append(wrs, sendOf())...)
		b.received(in)
		r.also.Equal(byte(defaultDepth-1), far.buf[0])
	})},
	{"a read behind a write to the same place sees what was written", ifHas(hw.OpWrite, ifHas(hw.OpRead, func(r *rig) {
		a, _ := r.pair()
		near, far := r.a.mem(128, hw.AllPrivileges), r.b.mem(64, hw.AllPrivileges)
		for seed := range byte(20) {
			fill(near.buf[:64], seed)
			i := a.post(writeTo(far, 0, near.sge(0, 64)), readFrom(far, 0, near.sge(64, 64)))
			r.must.Equal(hw.StatusSuccess, a.sent(i+1).Status)
			r.must.Equal(near.buf[:64], near.buf[64:])
		}
	}))},
	{"a fence holds what is behind it until earlier reads are done", ifHas(hw.OpRead, fence)},
	{"a fence behind no read holds nothing", func(r *rig) {
		a, b := r.pair()
		for i := range 4 {
			b.recv()
			wr := sendOf()
			wr.Flags |= hw.WRFence
			r.also.Equal(hw.StatusSuccess, a.sent(a.post(wr)).Status)
			b.received(i)
		}
	}},
	{"reads beyond ReadsOut wait their turn", func(r *rig) {
		for out := 1; out <= min(3, r.a.attr.MaxReadsOut); out++ {
			r.credits(reads(out, out), reads(out, out), out)
		}
	}},
	{"reads beyond the peer's ReadsIn wait their turn", only(func(r *rig) bool { return !r.cfg.Paired },
		"two ends that pair agree on no number of reads", func(r *rig) {
			r.credits(reads(2, min(4, r.a.attr.MaxReadsOut)), reads(1, 1), 1)
		})},
	{"requests behind a read complete behind it", ifHas(hw.OpRead, func(r *rig) {
		a, b := r.pair()
		near, far := r.a.mem(4096, hw.AllPrivileges), r.b.mem(4096, hw.AllPrivileges)
		for range 5 {
			b.recv()
			i := a.post(readFrom(far, 0, near.all()), hw.SendWR{Op: hw.OpSend}, readFrom(far, 0, near.sge(0, 1)), sendOf())
			b.recv()
			a.sent(i + 3) // the books check the order
		}
	})},
	{"a write or read of nothing moves nothing and needs no key", func(r *rig) {
		a, b := r.pair()
		far := r.b.mem(8, hw.NoPrivileges)
		for _, p := range r.probes(true) {
			for _, sgl := range [][]hw.SGE{nil, {{Addr: 0xdead0000beef, LKey: 0xdeadbeef}}} {
				wr := hw.SendWR{Op: p.op, Flags: hw.WRSignaled, SGL: sgl, RKey: far.mr.LKey() ^ 0x5555, RemoteAddr: 12345}
				wc := a.sent(a.post(wr))
				r.also.Equal(hw.StatusSuccess, wc.Status, "%v", p.op)
				r.also.Zero(wc.Len)
			}
		}
		roundTrip(r, a, b)
	}},
}

// anySize writes or reads blocks of many sizes in the middle of the peer's memory.
func anySize(r *rig, op hw.Op) {
	a, b := r.pair()
	for i, n := range []int{1, 2, 7, 8, 9, 64, 1000, 4096, 65536, 300001, 1 << 20} {
		near, far := r.a.mem(n+2*canary, hw.AllPrivileges), r.b.mem(n+2*canary, hw.AllPrivileges)
		fill(near.buf, byte(i))
		fill(far.buf, byte(i+100))
		wc := a.sent(a.post(rdma(op, far, canary, near.sge(canary, n))))
		r.must.Equal(hw.StatusSuccess, wc.Status)
		r.must.Equal(uint32(n), wc.Len)
		roundTrip(r, a, b)
		from, to, seed := near, far, byte(i+100)
		if op == hw.OpRead {
			from, to, seed = far, near, byte(i)
		}
		want := pattern(n+2*canary, seed)
		copy(want[canary:], from.buf[canary:canary+n])
		r.must.Equal(want, to.buf, "%d bytes", n)
		r.free(near, far)
	}
}

// anySegments moves lists of segments to or from one remote range.
func anySegments(r *rig, op hw.Op) {
	most := r.a.attr.MaxSendSegments
	if op == hw.OpRead {
		most = min(most, r.a.attr.MaxReadSegments)
	}
	a, b := r.pair(segments(r.a.attr.MaxSendSegments))
	for _, lens := range segmentLists {
		if len(lens) > most {
			continue
		}
		near, far := r.a.mem(room(lens), hw.AllPrivileges), r.b.mem(sum(lens), hw.AllPrivileges)
		fill(near.buf, 1)
		fill(far.buf, 2)
		before := pattern(room(lens), 1)
		wc := a.sent(a.post(rdma(op, far, 0, cut(near, lens...)...)))
		r.must.Equal(hw.StatusSuccess, wc.Status, "%v", lens)
		r.also.Equal(uint32(sum(lens)), wc.Len)
		roundTrip(r, a, b)
		r.also.Equal(far.buf, joined(near, lens...), "%v", lens)
		off := canary
		for _, n := range lens {
			copy(before[off:], near.buf[off:off+n])
			off += n + canary
		}
		r.also.Equal(before, near.buf, "%v: what lies between the segments", lens)
	}
}

// visibility writes to the peer's memory, and the peer reads that memory when the message
// behind the write has arrived. The race detector reports a missing ordering.
func visibility(r *rig) {
	a, b := r.pair()
	for i := range 50 {
		n := 1 + i*97
		near, far := r.a.mem(n, hw.LocalRead), r.b.mem(n, hw.RemoteWrite)
		fill(near.buf, byte(i))
		in := b.recv()
		a.post(hw.SendWR{Op: hw.OpWrite, SGL: []hw.SGE{near.all()}, RKey: far.mr.RKey(), RemoteAddr: far.base}, sendOf())
		r.must.Equal(hw.StatusSuccess, b.received(in).Status)
		r.must.Equal(pattern(n, byte(i)), far.buf)
		a.sent(2*i + 1)
		r.free(near, far)
	}
}

// fence reads memory that the peer changes as soon as the fenced message behind the read
// has arrived: the read must return the old bytes.
func fence(r *rig) {
	a, b := r.pair()
	const n = 32 << 10
	near, far := r.a.mem(n, hw.AllPrivileges), r.b.mem(n, hw.AllPrivileges)
	for i := range 30 {
		fill(far.buf, byte(i))
		in := b.recv()
		fenced := sendOf()
		fenced.Flags |= hw.WRFence
		at := a.post(readFrom(far, 0, near.all()), fenced)
		b.received(in)
		fill(far.buf, byte(i+128))
		r.must.Equal(hw.StatusSuccess, a.sent(at+1).Status)
		r.must.Equal(pattern(n, byte(i)), near.buf, "round %d", i)
	}
}

// credits posts far more reads than may be outstanding at a time; agreed is the most that
// both sides can do.
func (r *rig) credits(mine, theirs option, agreed int) {
	if !r.has(hw.OpRead) {
		return
	}
	a, b := r.a.newEnd(mine), r.b.newEnd(theirs)
	r.join(a, b)
	r.also.LessOrEqual(a.info.ReadsOut, agreed)
	near, far := r.a.mem(defaultDepth*64, hw.LocalWrite), r.b.mem(defaultDepth*64, hw.RemoteRead)
	fill(far.buf, byte(agreed))
	var wrs []hw.SendWR
	for i := range defaultDepth {
		wrs = append(wrs, readFrom(far, i*64, near.sge(i*64, 64)))
	}
	a.post(wrs...)
	r.also.Equal(hw.StatusSuccess, a.sent(defaultDepth-1).Status)
	r.also.Equal(far.buf, near.buf, fmt.Sprintf("%d reads at a time", agreed))
	roundTrip(r, a, b)
}
