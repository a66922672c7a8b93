package hwtest

import (
	"errors"
	"fmt"

	"godat/hw"
)

var sendCases = []contractCase{
	{"a message of any size arrives whole", func(r *rig) {
		a, b := r.pair()
		for i, n := range []int{0, 1, 2, 3, 7, 8, 63, 64, 65, 1023, 4096, 4097, 65536, 65537, 300001} {
			r.message(a, b, n, byte(i))
			r.message(b, a, n, byte(i+1))
		}
	}},
	{"a message that is shorter than its receive leaves the rest alone", func(r *rig) {
		a, b := r.pair()
		src, dst := r.a.mem(10, hw.LocalRead), r.b.mem(64, hw.LocalWrite)
		fill(src.buf, 1)
		fill(dst.buf, 2)
		in := b.recv(dst.all())
		a.post(sendOf(src.all()))
		r.also.Equal(uint32(10), b.received(in).Len)
		r.also.Equal(src.buf, dst.buf[:10])
		r.also.Equal(pattern(64, 2)[10:], dst.buf[10:])
	}},
	{"messages arrive in the order posted and fill receives in the order posted", ordered},
	{"a whole queue of requests is taken, in one batch and one by one", wholeQueue},
	{"requests complete as they were gathered, whatever the batches", batches},
	{"a refused request ends the batch: those before it run, the rest is untouched", partial},
	{"an operation missing from Attr.Ops is refused", missingOps},
	{"a message gathers from and scatters into any segments", scatter},
	{"the segments of a message are touched within their bounds only", canaries},
	{"a message without segments, or with empty ones, moves nothing and takes a receive", zeroLength},
	{"a request that is not signaled and succeeds completes in silence", unsignaled},
	{"a mark completes when all requests before it have, signaled or not", marks},
	{"a mark may be under way when the connection ends", marksAtTheEnd},
	{"a request that is not signaled and fails is reported", func(r *rig) {
		a, b := r.pair()
		for range 2 {
			b.recv()
		}
		a.post(hw.SendWR{Op: hw.OpSend}, hw.SendWR{Op: hw.OpSend})
		bad := a.post(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{{Addr: 1 << 20, Len: 8, LKey: 0}}})
		flushed := a.post(hw.SendWR{Op: hw.OpSend})
		r.also.Equal(hw.StatusLocalProtection, a.sent(bad).Status)
		r.broken(a, b)
		a.over()
		r.also.Equal(hw.StatusFlushed, a.statuses(sendQueue)[flushed])
	}},
	{"a solicited send marks the receive's completion, and no other", solicitedFlag},
	{"receives are posted before the connection exists", func(r *rig) {
		a, b := r.a.newEnd(), r.b.newEnd()
		src, dst := r.a.mem(8, hw.LocalRead), r.b.mem(16, hw.LocalWrite)
		fill(src.buf, 1)
		first, second := b.recv(dst.sge(0, 8)), b.recv(dst.sge(8, 8))
		back := a.recv()
		r.join(a, b)
		a.post(sendOf(src.all()), sendOf(src.all()))
		b.post(sendOf())
		b.received(first)
		b.received(second)
		a.received(back)
		r.also.Equal(append(pattern(8, 1), pattern(8, 1)...), dst.buf)
	}},
	{"a device connects to itself", func(r *rig) {
		a, b := r.a.newEnd(), r.a.newEnd()
		r.join(a, b)
		roundTrip(r, a, b)
	}},
	{"a completion waits for no later call of its owner", func(r *rig) {
		// Each side posts its next message only after the other's has arrived.
		a, b := r.pair()
		for range 200 {
			in, back := b.recv(), a.recv()
			a.post(sendOf())
			b.received(in)
			b.post(sendOf())
			a.received(back)
		}
	}},
}

// ordered streams numbered messages through queues of depth 8.
func ordered(r *rig) {
	const deep, count = 8, 300
	a, b := r.pair(depth(deep, deep))
	src, dst := r.a.mem(deep, hw.LocalRead), r.b.mem(deep, hw.LocalWrite)
	for i := range count {
		if i >= deep {
			r.must.Equal(hw.StatusSuccess, b.received(i-deep).Status)
			r.must.Equal(byte(i-deep), dst.buf[i%deep], "message %d", i-deep)
			a.sent(i - deep)
		}
		src.buf[i%deep] = byte(i)
		b.recv(dst.sge(i%deep, 1))
		a.post(sendOf(src.sge(i%deep, 1)))
	}
	b.received(count - 1)
	a.sent(count - 1)
}

func wholeQueue(r *rig) {
	for _, deep := range []int{1, 2, 7, 64} {
		a, b := r.pair(depth(deep, deep))
		for round := range 3 {
			var sends []hw.SendWR
			var recvs [][]hw.SGE
			for range deep {
				sends, recvs = append(sends, sendOf()), append(recvs, nil)
			}
			_, n, err := b.tryRecv(recvs...)
			r.must.NoError(err)
			r.must.Equal(deep, n)
			if round%2 == 0 {
				a.post(sends...)
			} else {
				for _, wr := range sends {
					a.post(wr)
				}
			}
			last := (round+1)*deep - 1
			r.must.Equal(hw.StatusSuccess, b.received(last).Status)
			r.must.Equal(hw.StatusSuccess, a.sent(last).Status)
		}
	}
}

func batches(r *rig) {
	a, b := r.pair()
	src, dst := r.a.mem(defaultDepth, hw.LocalRead), r.b.mem(defaultDepth, hw.LocalWrite)
	fill(src.buf, 3)
	at := 0
	for size := 1; at+size <= defaultDepth; size++ {
		var sends []hw.SendWR
		var recvs [][]hw.SGE
		for i := at; i < at+size; i++ {
			sends = append(sends, sendOf(src.sge(i, 1)))
			recvs = append(recvs, []hw.SGE{dst.sge(i, 1)})
		}
		_, _, err := b.tryRecv(recvs...)
		r.must.NoError(err)
		a.post(sends...)
		at += size
	}
	_, n, err := a.tryPost()
	r.also.NoError(err, "a batch of nothing")
	r.also.Zero(n)
	b.received(at - 1)
	a.sent(at - 1)
	r.also.Equal(src.buf[:at], dst.buf[:at])
}

// noOp is an operation that no device has.
const noOp = hw.OpInvalidate

func partial(r *rig) {
	a, b := r.pair()
	for range 3 {
		b.recv()
	}
	_, n, err := a.tryPost(sendOf(), sendOf(), hw.SendWR{Op: noOp, Flags: hw.WRSignaled}, sendOf())
	r.also.Equal(2, n)
	r.must.Error(err)
	r.also.ErrorIs(err, errors.ErrUnsupported)
	r.also.Equal(hw.StatusSuccess, a.sent(1).Status)
	r.also.Equal(hw.StatusSuccess, b.received(1).Status)
	r.also.Equal(hw.StatusSuccess, a.sent(a.post(sendOf())).Status, "the connection is as it was")
	r.also.Equal(hw.StatusSuccess, b.received(2).Status)
}

func missingOps(r *rig) {
	a, b := r.pair()
	g := r.a.mem(8, hw.AllPrivileges)
	for op := range hw.Op(40) {
		postable := op != hw.OpRecv && op != hw.OpRecvInvalidate && op != hw.OpRecvImm && op != hw.OpEnd
		if postable && r.a.attr.Ops.Has(op) {
			continue
		}
		_, n, err := a.tryPost(hw.SendWR{Op: op, Flags: hw.WRSignaled, SGL: []hw.SGE{g.all()}})
		r.also.Zero(n, "%v", op)
		r.must.Error(err, "%v", op)
		r.also.ErrorIs(err, errors.ErrUnsupported, "%v", op)
	}
	roundTrip(r, a, b)
}

// cut makes segments of the given lengths, in order, with canary bytes before and between
// them.
func cut(g *region, lens ...int) (sgl []hw.SGE) {
	off := canary
	for _, n := range lens {
		s := g.sge(off, n)
		if n == 0 {
			s = hw.SGE{Addr: 0xdead0000beef, LKey: 0xdeadbeef} // an empty segment's address and key have no meaning
		}
		sgl = append(sgl, s)
		off += n + canary
	}
	return sgl
}

// canary is the number of bytes between segments, which must not change.
const canary = 5

// joined concatenates the bytes of segments made by cut.
func joined(g *region, lens ...int) (data []byte) {
	off := canary
	for _, n := range lens {
		data = append(data, g.buf[off:off+n]...)
		off += n + canary
	}
	return data
}

func room(lens []int) int {
	n := canary
	for _, l := range lens {
		n += l + canary
	}
	return n
}

var segmentLists = [][]int{
	{1}, {64}, {1, 1}, {3, 0, 5}, {0, 7}, {7, 0}, {1, 2, 3, 4}, {4, 3, 2, 1}, {100, 1, 0, 33}, {0, 0, 0, 134}, {5000, 5000},
}

func scatter(r *rig) {
	most := min(r.a.attr.MaxSendSegments, r.b.attr.MaxRecvSegments)
	lists := segmentLists
	full := make([]int, most)
	for i := range full {
		full[i] = i + 1
	}
	lists = append(lists, full)
	a, b := r.pair(segments(most))
	for _, from := range lists {
		for _, to := range lists {
			if len(from) > most || len(to) > most || sum(from) > sum(to) {
				continue
			}
			src, dst := r.a.mem(room(from), hw.LocalRead), r.b.mem(room(to), hw.LocalWrite)
			fill(src.buf, 1)
			in := b.recv(cut(dst, to...)...)
			out := a.post(sendOf(cut(src, from...)...))
			r.must.Equal(hw.StatusSuccess, b.received(in).Status, "%v into %v", from, to)
			a.sent(out)
			r.also.Equal(joined(src, from...), joined(dst, to...)[:sum(from)], "%v into %v", from, to)
			r.free(src, dst)
		}
	}
}

func sum(lens []int) (n int) {
	for _, l := range lens {
		n += l
	}
	return n
}

func canaries(r *rig) {
	a, b := r.pair()
	for _, lens := range segmentLists {
		if len(lens) > min(a.cfg.SendSegments, b.cfg.RecvSegments) {
			continue
		}
		src, dst := r.a.mem(room(lens), hw.LocalRead), r.b.mem(room(lens), hw.LocalWrite)
		fill(src.buf, 1)
		fill(dst.buf, 2)
		in := b.recv(cut(dst, lens...)...)
		a.sent(a.post(sendOf(cut(src, lens...)...)))
		b.received(in)
		want, off := pattern(room(lens), 2), canary
		for _, n := range lens {
			copy(want[off:], src.buf[off:off+n])
			off += n + canary
		}
		r.also.Equal(want, dst.buf, "%v", lens)
		r.also.Equal(pattern(room(lens), 1), src.buf, "%v", lens)
	}
}

func zeroLength(r *rig) {
	a, b := r.pair()
	g := r.b.mem(16, hw.LocalWrite)
	fill(g.buf, 1)
	nothing := hw.SGE{Addr: 0xdead0000beef, LKey: 0xdeadbeef}
	for i, c := range []struct{ out, in []hw.SGE }{
		{nil, nil},
		{nil, []hw.SGE{g.all()}},
		{[]hw.SGE{nothing}, []hw.SGE{g.all()}},
		{[]hw.SGE{nothing, nothing}, []hw.SGE{nothing}},
	} {
		in := b.recv(c.in...)
		wc := a.sent(a.post(sendOf(c.out...)))
		r.also.Equal(hw.StatusSuccess, wc.Status, "case %d", i)
		wc = b.received(in)
		r.also.Equal(hw.StatusSuccess, wc.Status, "case %d", i)
		r.also.Zero(wc.Len)
	}
	r.also.Equal(pattern(16, 1), g.buf)
}

// unsignaled mixes signaled and unsignaled sends in every pattern of four. The books
// check that a successful unsignaled send has no completion.
func unsignaled(r *rig) {
	a, b := r.pair()
	next := 0
	for mask := range 16 {
		var recvs [][]hw.SGE
		var sends []hw.SendWR
		for bit := range 4 {
			wr := hw.SendWR{Op: hw.OpSend}
			if mask>>bit&1 != 0 {
				wr.Flags = hw.WRSignaled
			}
			sends, recvs = append(sends, wr), append(recvs, nil)
		}
		_, _, err := b.tryRecv(append(recvs, nil)...)
		r.must.NoError(err)
		a.post(append(sends, sendOf())...)
		next += 5
		a.sent(next - 1)
		b.received(next - 1)
	}
	// The queue also ends behind an unsignaled send that succeeded.
	in := b.recv()
	a.post(hw.SendWR{Op: hw.OpSend})
	r.also.Equal(hw.StatusSuccess, b.received(in).Status)
}

func solicitedFlag(r *rig) {
	a, b := r.pair()
	for i := range 6 {
		wr := sendOf()
		if i%3 == 0 {
			wr.Flags |= hw.WRSolicited
		}
		b.recv()
		a.post(wr)
		wc := b.received(i)
		r.also.Equal(i%3 == 0, wc.Flags&hw.WCSolicited != 0, fmt.Sprintf("message %d", i))
		r.also.Zero(wc.Flags&^hw.WCSolicited, "message %d", i)
		a.sent(i)
	}
}
