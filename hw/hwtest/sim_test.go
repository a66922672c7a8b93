package hwtest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestSimKeepsTheContract(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    SimConfig
		groups []string // those that the setting bears on; nil means all
	}{
		"as it comes":               {SimConfig{Seed: 1}, nil},
		"without delay":             {SimConfig{Seed: 2, MaxDelay: -1}, nil},
		"very late, in tiny chunks": {SimConfig{Seed: 3, MaxDelay: 40, Chunk: 4 << 10}, nil},
		"as iWARP does":             {SimConfig{Seed: 4, NoNotReadyWait: true, Gaps: EarlyCompletion}, nil},
		"without waiting":           {SimConfig{Seed: 5, NoNotReadyWait: true}, []string{"deregister", "failure", "end"}},
		"as verbs does":             {SimConfig{Seed: 6, Gaps: ImpliedLocalRead | ImpliedLocalWrite}, []string{"memory", "gap"}},
		"sends alone":               {SimConfig{Seed: 7, Ops: hw.Ops(hw.OpSend)}, []string{"device", "send", "rdma", "end"}},
	} {
		t.Run(name, func(t *testing.T) {
			watched := &watchedSim{Sim: NewSim(c.cfg)}
			testGroups(t, Config{Provider: watched, Devices: [2]string{"one", "two"}, Gaps: c.cfg.Gaps}, c.groups...)
			watched.check(t)
		})
	}
}

// watchedSim remembers its devices: whoever drives them, the suite or the
// wrapper, keeps to the contract too.
type watchedSim struct {
	*Sim
	mu   sync.Mutex
	devs []*SimDevice
}

func (w *watchedSim) Open(cfg hw.OpenConfig) (hw.Device, error) {
	dev, err := w.Sim.Open(cfg)
	if err == nil {
		w.mu.Lock()
		w.devs = append(w.devs, dev.(*SimDevice))
		w.mu.Unlock()
	}
	return dev, err
}

func (w *watchedSim) check(t *testing.T) {
	t.Helper()
	require.NotEmpty(t, w.devs)
	for _, d := range w.devs {
		assert.Empty(t, d.Violations())
		assert.Zero(t, d.Overruns())
	}
}

// stepped is a rig on devices whose engines the test turns by hand.
type stepped struct {
	*rig
	da, db *SimDevice
}

func newStepped(t *testing.T, cfg SimConfig) *stepped {
	cfg.Manual = true
	s := &stepped{rig: &rig{tb: t, must: require.New(t), also: assert.New(t), cfg: Config{
		Provider: NewSim(cfg), Devices: [2]string{"one", "two"},
	}.withDefaults()}}
	s.a, s.b = s.openStill(0), s.openStill(1)
	s.da, s.db = s.a.dev.(*SimDevice), s.b.dev.(*SimDevice)
	t.Cleanup(func() {
		for _, h := range s.hosts {
			for _, e := range h.ends {
				if !e.closed && !e.broken {
					e.breakNow(false)
				}
			}
		}
		s.settle()
		s.close()
	})
	return s
}

// settle turns both engines, and polls, until nothing is left to do.
func (s *stepped) settle() {
	for busy := true; busy; {
		busy = s.turn()
	}
}

// turn makes one step on each side and polls.
func (s *stepped) turn() bool {
	a, b := s.da.Step(), s.db.Step()
	n := s.a.pollOnce() + s.b.pollOnce()
	return a || b || n > 0
}

func (s *stepped) join(opts ...option) (a, b *end) {
	a, b = s.a.newEnd(opts...), s.b.newEnd(opts...)
	l := s.b.listen(hw.ListenConfig{})
	a.connect(l, nil)
	s.settle()
	s.must.NoError(b.accept(l.next(), nil))
	s.settle()
	a.awaitUp()
	b.awaitUp()
	return a, b
}

func TestSimDoesNothingInsideACall(t *testing.T) {
	s := newStepped(t, SimConfig{Seed: 1})
	a, b := s.join()
	b.recv()
	a.post(sendOf())
	assert.Zero(t, s.a.pollOnce()+s.b.pollOnce())
	s.settle()
	assert.True(t, a.books[sendQueue].entries[0].done)
	a.breakNow(true)
	assert.Zero(t, s.a.pollOnce()+s.b.pollOnce())
	assert.Equal(t, hw.ReasonNone, b.down)
	s.settle()
	assert.Equal(t, hw.ReasonPeer, b.down)
	assert.True(t, a.overLocked())
}

// A message that arrived says that the connection is up, whoever has yet to say so.
func TestSimTakesAnswersToWhatCameBeforeEstablished(t *testing.T) {
	for _, drained := range []bool{false, true} {
		s := newStepped(t, SimConfig{Seed: 1, MaxDelay: -1})
		a, b := s.a.newEnd(), s.b.newEnd()
		l := s.b.listen(hw.ListenConfig{})
		a.connect(l, nil)
		s.settle()
		a.recv()
		b.recv()
		require.NoError(t, b.accept(l.next(), nil))
		for s.da.Step() { // and the other engine rests
		}
		require.NotNil(t, a.info)
		a.post(sendOf())
		for s.da.Step() {
		}
		s.b.pollOnce()
		require.True(t, b.books[recvQueue].entries[0].done)
		require.Nil(t, b.info)
		b.post(sendOf())
		if drained {
			b.drain()
		}
		s.settle()
		assert.NotNil(t, b.info)
		assert.True(t, b.books[sendQueue].entries[0].done)
		assert.True(t, a.books[recvQueue].entries[0].done)
		if drained {
			assert.Equal(t, hw.ReasonDrained, b.down)
		}
	}
}

func TestSimHoldsTheHeadOfTheQueueWhenReadCreditsAreOut(t *testing.T) {
	s := newStepped(t, SimConfig{Seed: 1, MaxDelay: 20})
	a, b := s.join(reads(2, 2))
	near, far := s.a.mem(8, hw.AllPrivileges), s.b.mem(8, hw.AllPrivileges)
	b.recv()
	var wrs []hw.SendWR
	for range 6 {
		wrs = append(wrs, readFrom(far, 0, near.all()))
	}
	a.post(append(wrs, sendOf())...)
	q := a.qp.(*simQP)
	most := 0
	for s.turn() {
		most = max(most, q.sq.reads)
		if q.sq.reads > 0 && !q.sq.at(6).begun {
			assert.False(t, b.books[recvQueue].entries[0].done, "the send went before a read had its credit")
		}
	}
	assert.Equal(t, 2, most, "both credits were in use, and no more")
	assert.True(t, a.books[sendQueue].entries[6].done)
}

func TestSimLetsASendOvertakeAReadButForAFence(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		overtook := 0
		for seed := range uint64(20) {
			s := newStepped(t, SimConfig{Seed: seed, MaxDelay: 10})
			a, b := s.join()
			near, far := s.a.mem(8, hw.AllPrivileges), s.b.mem(8, hw.AllPrivileges)
			b.recv()
			wr := sendOf()
			if fenced {
				wr.Flags |= hw.WRFence
			}
			a.post(readFrom(far, 0, near.all()), wr)
			q := a.qp.(*simQP)
			for s.turn() {
				if q.sq.reads > 0 && b.books[recvQueue].entries[0].done {
					overtook++
					break
				}
			}
			s.settle()
		}
		assert.Equal(t, fenced, overtook == 0, "fenced %v: %d times", fenced, overtook)
	}
}

func TestSimTellsOfALostPeerWithinABound(t *testing.T) {
	const bound = 50
	s := newStepped(t, SimConfig{Seed: 3, LossSteps: bound})
	a, b := s.join(notReady(hourLong))
	a.recv()
	b.recv()
	out := a.post(sendOf(), sendOf(), sendOf())
	s.settle() // the first arrives, the second waits for a receive
	require.NoError(t, s.da.LosePeer(a.qp))
	b.post(sendOf())
	before := s.da.Steps()
	for a.down == hw.ReasonNone && s.turn() {
	}
	assert.Equal(t, hw.ReasonBroken, a.down)
	assert.Less(t, s.da.Steps()-before, uint64(20*bound))
	s.settle()
	assert.Equal(t, hw.ReasonBroken, b.down, "the other end notices too")
	assert.Equal(t, []hw.Status{hw.StatusSuccess, hw.StatusTransport, hw.StatusFlushed}, a.statuses(sendQueue)[out:])
	assert.Equal(t, []hw.Status{hw.StatusFlushed}, a.statuses(recvQueue))
	assert.Equal(t, []hw.Status{hw.StatusTransport}, b.statuses(sendQueue))
	assert.ErrorIs(t, s.da.LosePeer(a.qp), hw.ErrInvalidState, "there is nothing more to lose")
	assert.ErrorIs(t, s.db.LosePeer(a.qp), hw.ErrInvalidHandle, "another device's")
}

func TestSimPollGivesEachQueueItsShare(t *testing.T) {
	s := newStepped(t, SimConfig{Seed: 1})
	var peers []*end
	for range 3 {
		a, _ := s.join()
		peers = append(peers, a)
	}
	for _, a := range peers {
		for range 6 {
			a.recv()
			s.b.ends[a.index].post(sendOf())
		}
	}
	for s.da.Step() || s.db.Step() {
	}
	var wcs [6]hw.WC
	require.Equal(t, 6, s.da.Poll(wcs[:]))
	seen := map[int]int{}
	for _, wc := range wcs {
		seen[endOf(wc.ID)]++
		s.a.route(wc)
	}
	for _, e := range peers {
		assert.Equal(t, 2, seen[e.index])
	}
}

func TestSimReportsACompletionQueueThatOverran(t *testing.T) {
	s := newStepped(t, SimConfig{Seed: 1})
	small, err := s.a.polled.NewCQ(hw.CQConfig{Depth: 3})
	require.NoError(t, err)
	large := s.a.newCQ(nil, 64, tag{end: anyEnd})
	e := s.a.newEnd(func(c *hw.QPConfig) { c.SendCQ, c.RecvCQ = large, small })
	b := s.b.newEnd()
	l := s.b.listen(hw.ListenConfig{})
	e.connect(l, nil)
	s.settle()
	require.NoError(t, b.accept(l.next(), nil))
	s.settle()
	for range 5 {
		e.recv()
		b.post(sendOf())
	}
	for s.da.Step() || s.db.Step() { // and nobody polls
	}
	assert.Equal(t, 2, s.da.Overruns())
	require.Len(t, s.a.asyncs, 1, "told once")
	assert.Equal(t, hw.AsyncCQOverrun, s.a.asyncs[0].Kind)
	assert.Same(t, small, s.a.asyncs[0].CQ)

	// The case has seen what it came for: the books would call it a breach.
	s.a.asyncs = nil
	e.books[recvQueue].entries = e.books[recvQueue].entries[:3]
	e.breakNow(false)
	s.settle()
	e.close()
	require.NoError(t, small.Close())
}

func TestSimNotesWhatItsUserDoesWrong(t *testing.T) {
	for name, wrong := range map[string]func(s *stepped, a, b *end){
		"a second Break":       func(_ *stepped, a, _ *end) { a.breakNow(false); a.qp.Break(false) },
		"a post after Break":   func(_ *stepped, a, _ *end) { a.breakNow(false); _, _, _ = a.tryPost(sendOf()) },
		"a post after Drain":   func(_ *stepped, a, _ *end) { a.drain(); _, _, _ = a.tryPost(sendOf()) },
		"more than the depth":  func(_ *stepped, a, _ *end) { _, _, _ = a.tryPost(make([]hw.SendWR, defaultDepth+1)...) },
		"more receives":        func(_ *stepped, a, _ *end) { _, _, _ = a.tryRecv(make([][]hw.SGE, defaultDepth+1)...) },
		"a Drain of a new one": func(s *stepped, _, _ *end) { s.a.newEnd().drain() },
		"two calls at once":    func(_ *stepped, a, _ *end) { a.qp.(*simQP).calls.Add(1); a.drain(); a.qp.(*simQP).calls.Add(-1) },
		"two pollers":          func(s *stepped, _, _ *end) { s.da.queues.polling.Store(true); _ = s.da.Arm() },
		"two that wait": func(s *stepped, _, _ *end) {
			s.da.queues.waiting.Store(true)
			s.da.Wake()
			_ = s.da.Wait()
		},
		"arming what waits": func(s *stepped, _, _ *end) { s.da.queues.waiting.Store(true); _ = s.da.Arm() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStepped(t, SimConfig{Seed: 1})
			a, b := s.join()
			require.Empty(t, s.da.Violations())
			wrong(s, a, b)
			assert.Len(t, s.da.Violations(), 1)
			assert.Empty(t, s.db.Violations())
		})
	}
}

func TestSimDeregisterWaitsForTheCopyUnderWay(t *testing.T) {
	s := newStepped(t, SimConfig{Seed: 1})
	g := s.a.mem(8, hw.AllPrivileges)
	mr := g.mr.(*simMR)
	mu := &s.da.sim.mu
	mu.Lock()
	mr.busy++
	mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- g.free() }()
	assert.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return mr.dead }, 5*time.Second, time.Millisecond)
	assert.Empty(t, done)
	mu.Lock()
	mr.idle()
	mu.Unlock()
	assert.NoError(t, <-done)
}

func TestSimIsTheSameForTheSameSeed(t *testing.T) {
	story := func(seed uint64) (ids []uint64, steps uint64) {
		s := newStepped(t, SimConfig{Seed: seed, Tap: func(wc hw.WC) { ids = append(ids, wc.ID, uint64(wc.Status), uint64(wc.Len)) }})
		a, b := s.join(notReady(hourLong))
		for range 5 {
			a.recv()
			b.recv()
			a.post(sendOf(), sendOf())
			b.post(sendOf())
			s.turn()
		}
		s.settle()
		a.breakNow(true)
		b.breakNow(false)
		s.settle()
		return ids, s.da.Steps()
	}
	ids, steps := story(1)
	again, stepsAgain := story(1)
	assert.Equal(t, ids, again)
	assert.Equal(t, steps, stepsAgain)
	other, _ := story(2)
	assert.NotEqual(t, ids, other)
}

func TestSimKeepsWorkRequestsApart(t *testing.T) {
	const every, count = 2 * time.Millisecond, 8
	var at []time.Time
	cfg := Config{Provider: NewSim(SimConfig{Seed: 1, Every: every, Tap: func(wc hw.WC) {
		if wc.Op == hw.OpRecv && wc.Status == hw.StatusSuccess {
			at = append(at, time.Now())
		}
	}}), Devices: [2]string{"one", "two"}}.withDefaults()
	r := newRig(t, cfg)
	a, b := r.pair()
	for range count {
		b.recv()
		a.post(hw.SendWR{Op: hw.OpSend})
	}
	b.received(count - 1)
	require.Len(t, at, count)
	for i := range at[1:] {
		assert.GreaterOrEqual(t, at[i+1].Sub(at[i]), every)
	}
}

func TestSimDataPathAllocatesNothing(t *testing.T) {
	s := newStepped(t, SimConfig{Seed: 1})
	a, b := s.join()
	near, far := s.a.mem(64, hw.AllPrivileges), s.b.mem(64, hw.AllPrivileges)
	sends := []hw.SendWR{writeTo(far, 0, near.all()), readFrom(far, 0, near.all()), sendOf(near.all())}
	recvs := []hw.RecvWR{{SGL: []hw.SGE{far.all()}}}
	var wcs [8]hw.WC
	got := 0
	allocs := testing.AllocsPerRun(100, func() {
		_, _ = b.qp.PostRecv(recvs)
		_, _ = a.qp.PostSend(sends)
		for s.da.Step() || s.db.Step() {
		}
		got += s.da.Poll(wcs[:]) + s.db.Poll(wcs[:])
	})
	assert.Zero(t, allocs)
	assert.Equal(t, 4*101, got)
}
