package hwtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"godat/hw"
)

var trafficCases = []contractCase{
	{"both ends of several connections post at once, all operations mixed", func(r *rig) {
		const pairs, count = 3, 300
		var wg sync.WaitGroup
		fails := make(chan error, 2*pairs)
		for i := range pairs {
			a, b := r.pair(depth(trafficSends, trafficDepth))
			for _, t := range newTraffic(r, a, b, uint64(i), count) {
				wg.Go(func() { fails <- t.run() })
			}
		}
		wg.Wait()
		close(fails)
		for err := range fails {
			r.also.NoError(err)
		}
	}},
	{"queue pairs come and go beside each other", churn},
}

const (
	trafficDepth = 8
	trafficSends = 3 * trafficDepth // each message may have a write and a read before it
	trafficMost  = 3000             // bytes of a message
)

// traffic is one end that sends numbered messages and checks those that it receives.
// Message i uses slot i%trafficDepth, and so does the write that may precede it. The
// number of receives that the peer has posted tells when a slot is free again.
type traffic struct {
	rig   *rig
	me    *end
	peer  *traffic
	rng   *rand.Rand
	count int
	seed  byte

	src, dst, win, sink *region // of me: messages out, messages in, the peer's writes, own reads

	posted atomic.Int64 // number of receives posted so far
	last   []int        // index of each message's send
}

func newTraffic(r *rig, a, b *end, seed uint64, count int) (both [2]*traffic) {
	for i, e := range []*end{a, b} {
		t := &traffic{rig: r, me: e, rng: rand.New(rand.NewPCG(seed, uint64(i))), count: count, seed: byte(2*seed + uint64(i))}
		size := trafficDepth * trafficMost
		t.src, t.dst = e.host.mem(size, hw.AllPrivileges), e.host.mem(size, hw.AllPrivileges)
		t.win, t.sink = e.host.mem(size, hw.AllPrivileges), e.host.mem(size, hw.AllPrivileges)
		both[i] = t
	}
	both[0].peer, both[1].peer = both[1], both[0]
	return both
}

// run sends and receives until both are done. It runs on a goroutine of its own, so it
// returns an error instead of failing the test.
func (t *traffic) run() error {
	for range trafficDepth {
		if err := t.postRecv(); err != nil {
			return err
		}
	}
	for sent, got := 0, 0; sent < t.count || got < t.count; {
		if !t.me.wait(func() bool { return t.me.down != hw.ReasonNone || t.received(got) || t.maySend(sent) }) {
			return fmt.Errorf("%s: stuck after %d sent, %d received", t.me.name(), sent, got)
		}
		t.me.mu.Lock()
		arrived, free := t.received(got), t.maySend(sent)
		t.me.mu.Unlock()
		switch {
		case arrived:
			if err := t.check(got); err != nil {
				return err
			}
			got++
			if err := t.postRecv(); err != nil {
				return err
			}
		case free:
			if err := t.send(sent); err != nil {
				return err
			}
			sent++
		default:
			return fmt.Errorf("%s: the connection broke: %v", t.me.name(), t.me.down)
		}
	}
	return nil
}

// received reports whether message i has arrived, with me locked.
func (t *traffic) received(i int) bool {
	return i < t.count && t.me.books[recvQueue].entries[i].done
}

// maySend reports whether the peer has a receive for message i, and whether the slots of
// the message in the send queue and in src are free again, with me locked.
func (t *traffic) maySend(i int) bool {
	if i >= t.count || int64(i) >= t.peer.posted.Load() {
		return false
	}
	if i < trafficDepth {
		return true
	}
	return t.me.books[sendQueue].entries[t.last[i-trafficDepth]].done
}

func (t *traffic) postRecv() error {
	slot := int(t.posted.Load()) % trafficDepth
	if _, _, err := t.me.tryRecv([]hw.SGE{t.dst.sge(slot*trafficMost, trafficMost)}); err != nil {
		return err
	}
	t.posted.Add(1)
	t.peer.me.mu.Lock() // the peer's wait reads posted under this lock
	defer t.peer.me.mu.Unlock()
	t.peer.me.cond.Broadcast()
	return nil
}

// send sends message i: its number, a flag for a write before it, and a pattern.
func (t *traffic) send(i int) error {
	at := i % trafficDepth * trafficMost
	n := 5 + t.rng.IntN(trafficMost-5)
	buf := t.src.buf[at : at+n]
	fill(buf, t.seed+byte(i))
	binary.BigEndian.PutUint32(buf, uint32(i))
	buf[4] = 0
	var wrs []hw.SendWR
	if t.rng.IntN(3) == 0 && t.rig.a.attr.Ops.Has(hw.OpWrite) {
		buf[4] = 1
		wr := writeTo(t.peer.win, at, t.src.sge(at, n))
		wr.Flags = 0
		wrs = append(wrs, wr)
	}
	if t.rng.IntN(3) == 0 && t.rig.a.attr.Ops.Has(hw.OpRead) {
		wr := readFrom(t.peer.src, 0)
		wr.Flags = 0
		wrs = append(wrs, wr)
	}
	half := t.rng.IntN(n)
	wrs = append(wrs, sendOf(t.src.sge(at, half), t.src.sge(at+half, n-half)))
	first, _, err := t.me.tryPost(wrs...)
	t.last = append(t.last, first+len(wrs)-1)
	return err
}

// check compares message i with what its sender must have sent.
func (t *traffic) check(i int) error {
	t.me.mu.Lock()
	wc := t.me.books[recvQueue].entries[i].wc
	t.me.mu.Unlock()
	at := i % trafficDepth * trafficMost
	n := int(wc.Len)
	if wc.Status != hw.StatusSuccess || n < 5 || n > trafficMost {
		return fmt.Errorf("%s: message %d: %v, %d bytes", t.me.name(), i, wc.Status, n)
	}
	got := t.dst.buf[at : at+n]
	want := pattern(n, t.peer.seed+byte(i))
	binary.BigEndian.PutUint32(want, uint32(i))
	want[4] = got[4]
	if !bytes.Equal(want, got) {
		return fmt.Errorf("%s: message %d of %d bytes is not what was sent", t.me.name(), i, n)
	}
	if got[4] == 1 && !bytes.Equal(want, t.win.buf[at:at+n]) {
		return fmt.Errorf("%s: the write before message %d is not visible", t.me.name(), i)
	}
	return nil
}

// churn makes, uses, breaks and closes connections from several goroutines.
func churn(r *rig) {
	const workers, rounds = 4, 8
	l := r.b.listen(hw.ListenConfig{})
	fails := make(chan error, workers)
	var wg sync.WaitGroup
	var serve sync.WaitGroup
	serve.Go(func() {
		for range workers * rounds {
			req := l.next()
			b := r.b.newEnd()
			b.recv()
			if err := b.accept(req, nil); err != nil {
				r.tb.Error(err)
			}
		}
	})
	for w := range workers {
		wg.Go(func() { fails <- churnOne(r.a, l, w, rounds) })
	}
	wg.Wait()
	serve.Wait()
	close(fails)
	for err := range fails {
		r.also.NoError(err)
	}
}

// churnOne takes one queue pair through many short lives.
func churnOne(h *host, l *listener, worker, rounds int) error {
	a := h.newEnd()
	for i := range rounds {
		if err := a.tryConnect(hw.ConnectConfig{Addr: l.host.attr.Address, Qual: l.Qual()}); err != nil {
			return err
		}
		if !a.wait(func() bool { return a.info != nil || a.refused != hw.ReasonNone }) || a.refused != hw.ReasonNone {
			return fmt.Errorf("worker %d, life %d: not connected: %v", worker, i, a.refused)
		}
		at, _, err := a.tryPost(sendOf())
		if err != nil {
			return err
		}
		if !a.wait(func() bool { return a.books[sendQueue].entries[at].done }) {
			return fmt.Errorf("worker %d, life %d: no completion", worker, i)
		}
		a.breakNow(i%2 == 0)
		if !a.wait(a.overLocked) {
			return fmt.Errorf("worker %d, life %d: no end", worker, i)
		}
		if i < rounds-1 {
			if err := a.qp.Reset(); err != nil {
				return err
			}
			a.begin()
		}
	}
	return nil
}
