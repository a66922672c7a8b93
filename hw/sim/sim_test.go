package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

var succeeded = result{done: true, status: hw.StatusSuccess}

func TestSimDoesNothingInsideACall(t *testing.T) {
	r := newRig(t, Config{Seed: 1})
	a, b := r.pair()
	b.recv()
	a.post(send())
	assert.Zero(t, r.a.poll()+r.b.poll())
	r.settle()
	assert.Equal(t, succeeded, a.sends[0])
	a.breakNow(true)
	assert.Zero(t, r.a.poll()+r.b.poll())
	assert.Equal(t, hw.ReasonNone, b.down)
	r.settle()
	assert.Equal(t, hw.ReasonPeer, b.down)
	assert.Equal(t, 2, a.ended)
}

// A message that arrived shows the acceptor's owner that the connection is up before
// the device tells Established.
func TestSimTakesAnswersToMessagesThatCameBeforeEstablished(t *testing.T) {
	for _, drained := range []bool{false, true} {
		r := newRig(t, Config{Seed: 1, MaxDelay: -1})
		a, b := r.a.newEnd(), r.b.newEnd()
		q := r.request(a)
		a.recv()
		b.recv()
		require.NoError(t, q.Accept(b.qp, nil))
		for r.a.dev.stepOnce() { // b's engine makes no step
		}
		require.True(t, a.up)
		a.post(send())
		for r.a.dev.stepOnce() {
		}
		r.b.poll()
		require.Equal(t, succeeded, b.recvs[0])
		require.False(t, b.up)
		b.post(send())
		if drained {
			b.qp.Drain()
		}
		r.settle()
		assert.True(t, b.up)
		assert.Equal(t, succeeded, b.sends[0])
		assert.Equal(t, succeeded, a.recvs[0])
		if drained {
			assert.Equal(t, hw.ReasonDrained, b.down)
		}
	}
}

func TestSimHoldsTheSendQueueWhenAReadHasNoCredit(t *testing.T) {
	r := newRig(t, Config{Seed: 1, MaxDelay: 20})
	a, b := r.pair(reads(2))
	_, near := r.a.register(8)
	far, _ := r.b.register(8)
	b.recv()
	for range 6 {
		a.post(remote(hw.OpRead, far, near))
	}
	a.post(send())
	most := 0
	for r.turn() {
		most = max(most, a.qp.sq.reads)
		if a.qp.sq.reads > 0 && !a.qp.sq.at(6).begun {
			assert.False(t, b.recvs[0].done, "the send went before a read had its credit")
		}
	}
	assert.Equal(t, 2, most, "both credits were in use, and no more")
	assert.Equal(t, succeeded, a.sends[6])
}

func TestSimLetsASendOvertakeAReadUnlessItIsFenced(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		overtook := 0
		for seed := range uint64(20) {
			r := newRig(t, Config{Seed: seed, MaxDelay: 10})
			a, b := r.pair()
			_, near := r.a.register(8)
			far, _ := r.b.register(8)
			b.recv()
			wr := send()
			if fenced {
				wr.Flags |= hw.WRFence
			}
			a.post(remote(hw.OpRead, far, near), wr)
			for r.turn() {
				if a.qp.sq.reads > 0 && b.recvs[0].done {
					overtook++
					break
				}
			}
			r.settle()
		}
		assert.Equal(t, fenced, overtook == 0, "fenced %v: %d times", fenced, overtook)
	}
}

func TestSimPollGivesEachQueueItsShare(t *testing.T) {
	r := newRig(t, Config{Seed: 1})
	for range 3 {
		a, b := r.a.newEnd(receivesTo(r.a.newCQ(64))), r.b.newEnd()
		require.NoError(t, r.request(a).Accept(b.qp, nil))
	}
	r.settle()
	for i := range 6 * 3 {
		r.a.ends[i%3].recv()
		r.b.ends[i%3].post(send())
	}
	r.work()
	var wcs [6]hw.WC
	require.Equal(t, 6, r.a.dev.Poll(wcs[:]))
	seen := map[uint32]int{}
	for _, wc := range wcs {
		seen[wc.CQ]++
		r.a.take(wc)
	}
	assert.Equal(t, map[uint32]int{1: 2, 2: 2, 3: 2}, seen)
}

func TestSimWithoutDelaysDoesAllItsWorkBeforeOthersRun(t *testing.T) {
	for delay, at := range map[int]int{-1: 6, 1: 1} {
		r := newRig(t, Config{Seed: 1, MaxDelay: delay})
		a, b := r.a.newEnd(), r.b.newEnd()
		require.NoError(t, r.request(a).Accept(b.qp, nil))
		r.settle()
		for range 6 {
			a.recv()
			b.post(send())
		}
		r.p.mu.Lock()
		r.b.dev.turn()
		r.p.mu.Unlock()
		assert.Equal(t, at, r.a.poll(), "up to %d steps late", delay)
	}
}

func TestSimReportsACompletionQueueThatOverran(t *testing.T) {
	r := newRig(t, Config{Seed: 1})
	small := r.a.newCQ(3)
	a, b := r.a.newEnd(receivesTo(small)), r.b.newEnd()
	require.NoError(t, r.request(a).Accept(b.qp, nil))
	r.settle()
	for range 5 {
		a.recv()
		b.post(send())
	}
	r.work() // without a poll
	assert.Len(t, r.p.Violations(), 2)
	require.Len(t, r.a.asyncs, 1, "told once")
	assert.Equal(t, hw.AsyncCQOverrun, r.a.asyncs[0].Kind)
	assert.Same(t, small, r.a.asyncs[0].CQ)

	a.recvs = a.recvs[:3] // the completions of the other two were lost
	a.breakNow(false)
	r.settle()
}

func TestSimRecordsTheViolationsOfItsUser(t *testing.T) {
	for name, wrong := range map[string]func(r *rig, a *end){
		"a second Break":     func(_ *rig, a *end) { a.breakNow(false); a.qp.Break(false) },
		"a post after Break": func(_ *rig, a *end) { a.breakNow(false); _, _ = a.qp.PostSend([]hw.SendWR{send()}) },
		"a post after Drain": func(_ *rig, a *end) { a.qp.Drain(); _, _ = a.qp.PostSend([]hw.SendWR{send()}) },
		"more than the depth": func(_ *rig, a *end) {
			a.post(make([]hw.SendWR, testDepth)...)
			_, _ = a.qp.PostSend([]hw.SendWR{send()})
		},
		"more receives": func(_ *rig, a *end) {
			for range testDepth {
				a.recv()
			}
			_, _ = a.qp.PostRecv(make([]hw.RecvWR, 1))
		},
		"a Drain of a new one": func(r *rig, _ *end) { r.a.newEnd().qp.Drain() },
		"two calls at once":    func(_ *rig, a *end) { a.qp.calls.Add(1); a.qp.Drain(); a.qp.calls.Add(-1) },
		"two pollers":          func(r *rig, _ *end) { r.a.dev.queues.polling.Store(true); _ = r.a.dev.Arm() },
		"two that wait": func(r *rig, _ *end) {
			r.a.dev.queues.waiting.Store(true)
			r.a.dev.Wake()
			_ = r.a.dev.Wait()
		},
		"arming what waits": func(r *rig, _ *end) { r.a.dev.queues.waiting.Store(true); _ = r.a.dev.Arm() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{Seed: 1})
			a, _ := r.pair()
			require.Empty(t, r.p.Violations())
			wrong(r, a)
			require.Len(t, r.p.Violations(), 1)
			assert.Contains(t, r.p.Violations()[0], "one: ")
		})
	}
}

func TestSimDeregisterWaitsForTheCopyUnderWay(t *testing.T) {
	r := newRig(t, Config{Seed: 1})
	g, _ := r.a.register(8)
	r.a.mem = nil
	mu := &r.p.mu
	mu.Lock()
	g.busy++
	mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- g.Deregister() }()
	assert.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return g.dead }, time.Minute, time.Millisecond)
	assert.Empty(t, done)
	mu.Lock()
	g.idle()
	mu.Unlock()
	assert.NoError(t, <-done)
}

func TestSimDoesTheSameForTheSameSeed(t *testing.T) {
	story := func(seed uint64) (ids []uint64, steps uint64) {
		r := newRig(t, Config{Seed: seed})
		a, b := r.pair(patient)
		for range 5 {
			a.recv()
			b.recv()
			a.post(send(), send())
			b.post(send())
			r.turn()
		}
		r.settle()
		a.breakNow(true)
		b.breakNow(false)
		r.settle()
		for _, wc := range append(r.a.polled, r.b.polled...) {
			ids = append(ids, wc.ID, uint64(wc.Status), uint64(wc.Len))
		}
		return ids, r.a.dev.steps
	}
	ids, steps := story(1)
	again, stepsAgain := story(1)
	assert.Equal(t, ids, again)
	assert.Equal(t, steps, stepsAgain)
	other, _ := story(2)
	assert.NotEqual(t, ids, other)
}

func TestSimDataPathAllocatesNothing(t *testing.T) {
	r := newRig(t, Config{Seed: 1})
	a, b := r.pair()
	_, near := r.a.register(64)
	far, sink := r.b.register(64)
	sends := []hw.SendWR{remote(hw.OpWrite, far, near), remote(hw.OpRead, far, near), send(near)}
	for i := range sends {
		sends[i].Flags |= hw.WRSignaled
	}
	recvs := []hw.RecvWR{{SGL: []hw.SGE{sink}}}
	var wcs [8]hw.WC
	got := 0
	allocs := testing.AllocsPerRun(100, func() {
		_, _ = b.qp.PostRecv(recvs)
		_, _ = a.qp.PostSend(sends)
		r.work()
		got += r.a.dev.Poll(wcs[:]) + r.b.dev.Poll(wcs[:])
	})
	assert.Zero(t, allocs)
	assert.Equal(t, 4*101, got)
}
