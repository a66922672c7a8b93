package loop

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/token"
)

// shared makes n connections whose receives come from one queue.
func shared(t *testing.T, n int, cfg hw.SRQConfig, change func(*hw.QPConfig)) (owner *side, srq *sharedQueue, xs, ys []*side) {
	dev, far := open(t, uniqueName()), open(t, uniqueName())
	owner = newSide(t, dev, nil) // closed last: its zone is the others' too
	cfg.Zone = owner.zone
	q, err := dev.(*device).NewSRQ(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	for i := range n {
		xs = append(xs, newSide(t, far, change))
		ys = append(ys, newSide(t, dev, func(c *hw.QPConfig) { c.Zone, c.SRQ, c.Number = owner.zone, q, uint32(100+i) }))
		connect(t, xs[i], ys[i])
	}
	return owner, q.(*sharedQueue), xs, ys
}

func (q *sharedQueue) post(t testing.TB, ids ...uint64) {
	t.Helper()
	wrs := make([]hw.RecvWR, len(ids))
	for i, id := range ids {
		wrs[i].ID = id
	}
	n, err := q.PostRecv(wrs)
	require.NoError(t, err)
	require.Len(t, wrs, n)
}

func taken(ys ...*side) (ids []uint64) {
	for _, y := range ys {
		for _, wc := range y.recvs.all() {
			ids = append(ids, wc.ID)
		}
	}
	return ids
}

func TestASharedReceiveNamesTheQueuePairThatTookIt(t *testing.T) {
	owner, q, xs, ys := shared(t, 2, hw.SRQConfig{Depth: 8, Segments: 2}, nil)
	n, err := q.PostRecv([]hw.RecvWR{{ID: 1, SGL: []hw.SGE{owner.sge(0, 8)}}, {ID: 2}, {ID: 3}})
	require.NoError(t, err)
	require.Equal(t, 3, n)
	xs[1].post(send(1, xs[1].sge(0, 5)))
	xs[0].post(hw.SendWR{Op: hw.OpWriteImm, Imm: 7})
	xs[1].post(send(2, xs[1].sge(0, 1)))
	assert.Equal(t, []hw.WC{
		{ID: 1, QP: 101, Len: 5, Op: hw.OpRecv},
		{ID: 3, QP: 101, Status: hw.StatusLocalLength, Op: hw.OpRecv},
	}, ys[1].recvs.all())
	assert.Equal(t, []hw.WC{{ID: 2, QP: 100, Imm: 7, Op: hw.OpRecvImm, Flags: hw.WCImm}}, ys[0].recvs.all())
}

// hold takes a pipe, which is free, as a poster does.
func hold(t *testing.T, s *side) *pipe {
	p := s.qp.(*queuePair).out.Load()
	_, ok := p.token.TryTake()
	require.True(t, ok)
	p.enter()
	p.grant()
	return p
}

// A target that was called has a claim: no other target takes its receive before it
// runs.
func TestAReceiveIsKeptForTheTargetThatWasCalled(t *testing.T) {
	_, q, xs, ys := shared(t, 2, hw.SRQConfig{Depth: 8}, nil)
	xs[0].post(send(1))
	p := hold(t, xs[0])
	q.post(t, 1)
	xs[1].post(send(1))
	assert.Empty(t, taken(ys...))
	p.run()
	assert.Equal(t, []uint64{1}, taken(ys[0]))
	assert.Empty(t, taken(ys[1]))
	q.post(t, 2)
	assert.Equal(t, []uint64{2}, taken(ys[1]))
}

// A target that needs a receive while others are being called takes its place behind
// them.
func TestATargetThatComesDuringACallIsServedLast(t *testing.T) {
	_, q, xs, ys := shared(t, 3, hw.SRQConfig{Depth: 8}, nil)
	xs[0].post(send(1))
	xs[1].post(send(1))
	ys[0].recvs.hook = func([]hw.WC) { xs[2].post(send(1)) }
	q.post(t, 1, 2)
	ys[0].recvs.hook = nil
	assert.Equal(t, []uint64{1}, taken(ys[0]))
	assert.Equal(t, []uint64{2}, taken(ys[1]))
	assert.Empty(t, taken(ys[2]))
	q.post(t, 3)
	assert.Equal(t, []uint64{3}, taken(ys[2]))
}

// A target whose connection breaks after it was called gives its claim to the next.
func TestAnUnusedClaimPassesToTheNextTarget(t *testing.T) {
	_, q, xs, ys := shared(t, 2, hw.SRQConfig{Depth: 8}, nil)
	xs[0].post(send(1))
	xs[1].post(send(1))
	p := hold(t, xs[0])
	q.post(t, 1)
	assert.Empty(t, taken(ys...))
	ys[0].qp.Break(false)
	p.run()
	assert.Equal(t, []uint64{recvEnd}, taken(ys[0]), "nothing was taken")
	assert.Equal(t, []uint64{1}, taken(ys[1]))
	assert.Zero(t, q.claims)
	xs[1].post(send(2))
	q.post(t, 2)
	assert.Equal(t, []uint64{1, 2}, taken(ys[1]), "and the queue is as it was")
}

// A target whose connection breaks while it waits leaves the line.
func TestATargetThatBreaksLeavesTheLine(t *testing.T) {
	_, q, xs, ys := shared(t, 3, hw.SRQConfig{Depth: 8}, nil)
	for _, x := range xs {
		x.post(send(1))
	}
	xs[1].qp.Break(false)
	q.post(t, 1, 2, 3)
	assert.Equal(t, []uint64{1, 2}, taken(ys[0], ys[2]))
	assert.EqualValues(t, 1, q.Left(), "the third is still there")
	assert.Zero(t, q.claims)
}

// A send that finds no receive, and no room in the send queue, does not stay in line.
func TestARefusedSendDoesNotStayInLine(t *testing.T) {
	_, q, xs, ys := shared(t, 2, hw.SRQConfig{Depth: 8}, func(c *hw.QPConfig) { c.SendDepth = 0 })
	n, err := xs[0].qp.PostSend([]hw.SendWR{send(1)})
	assert.Zero(t, n)
	require.ErrorIs(t, err, hw.ErrInsufficientResources)
	q.post(t, 1)
	xs[1].post(send(1)) // done at once
	assert.Equal(t, []uint64{1}, taken(ys[1]))
	assert.Zero(t, q.claims)
}

// If the connection breaks before a worker moves a message, the receive taken for that
// message is flushed, and no other.
func TestBreakFlushesTheReceiveThatWasTaken(t *testing.T) {
	owner, q, xs, ys := shared(t, 1, hw.SRQConfig{Depth: 8, Segments: 1}, nil)
	room := hw.RecvWR{SGL: []hw.SGE{owner.sge(0, memLen)}}
	one, two := room, room
	one.ID, two.ID = 1, 2
	_, err := q.PostRecv([]hw.RecvWR{one, two})
	require.NoError(t, err)
	workers := xs[0].dev.(*device).workers
	workers.Lock() // no worker takes the pipe up, which the poster puts in their list below
	done := make(chan struct{})
	go func() {
		defer close(done)
		xs[0].post(send(1, xs[0].sge(0, handover+1)))
	}()
	p := xs[0].qp.(*queuePair).out.Load()
	spinUntil(t, func() bool { return p.token.Load()&token.Parked != 0 })
	p.attention.Or(broken | lost)
	workers.Unlock()
	<-done
	wcs := ys[0].recvs.wait(1)
	assert.Equal(t, []hw.WC{{ID: 1, QP: 100, Status: hw.StatusFlushed, Op: hw.OpRecv}}, wcs)
	assert.EqualValues(t, 1, q.Left())
}

func TestArmAboveTheCountReportsAtOnce(t *testing.T) {
	lows := 0
	_, q, xs, _ := shared(t, 1, hw.SRQConfig{Depth: 8, OnLow: func() { lows++ }}, nil)
	q.post(t, 1, 2)
	require.NoError(t, q.Arm(3))
	assert.Equal(t, 1, lows)
	xs[0].post(send(1))
	assert.Equal(t, 1, lows, "once")
	require.NoError(t, q.Arm(1))
	assert.Equal(t, 1, lows)
	require.ErrorIs(t, q.Arm(9), hw.ErrInvalidParameter)
	require.ErrorIs(t, q.Arm(-1), hw.ErrInvalidParameter)
	xs[0].post(send(2))
	assert.Equal(t, 2, lows)
}

func TestNewSRQChecksItsArguments(t *testing.T) {
	dev, other := open(t, uniqueName()), open(t, uniqueName())
	a, b := newSide(t, dev, nil), newSide(t, dev, nil)
	far := newSide(t, other, nil)
	d := dev.(*device)
	for _, cfg := range []hw.SRQConfig{
		{Zone: a.zone},
		{Zone: a.zone, Depth: -1},
		{Zone: a.zone, Depth: d.Attr().MaxSRQDepth + 1},
		{Zone: a.zone, Depth: 1, Segments: -1},
		{Zone: a.zone, Depth: 1, Segments: maxSegments + 1},
	} {
		_, err := d.NewSRQ(cfg)
		require.ErrorIs(t, err, hw.ErrInvalidParameter, "%+v", cfg)
	}
	_, err := d.NewSRQ(hw.SRQConfig{Zone: far.zone, Depth: 1})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	q, err := d.NewSRQ(hw.SRQConfig{Zone: a.zone, Depth: 1})
	require.NoError(t, err)
	cfg := hw.QPConfig{Zone: b.zone, SRQ: q, SendSink: discard{}, RecvSink: discard{}, Facts: &b.facts}
	_, err = dev.NewQP(cfg)
	require.ErrorIs(t, err, hw.ErrProtection, "another zone's")
	cfg.Zone = far.zone
	_, err = other.NewQP(cfg)
	require.ErrorIs(t, err, hw.ErrInvalidHandle, "another device's")
	n, err := q.PostRecv(make([]hw.RecvWR, 2))
	require.ErrorIs(t, err, hw.ErrInsufficientResources)
	assert.Equal(t, 1, n)
	require.NoError(t, q.Close(), "with a receive in it")
	require.ErrorIs(t, q.Close(), hw.ErrInvalidHandle)
	require.ErrorIs(t, q.Arm(1), hw.ErrInvalidHandle)
	require.ErrorIs(t, q.Resize(1), hw.ErrInvalidHandle)
	cfg.Zone = a.zone
	_, err = dev.NewQP(cfg)
	require.ErrorIs(t, err, hw.ErrInvalidHandle, "closed")
}

// Several senders and a poster of receives race as closely as they can: each round has
// as many receives as sends. A lost kick leaves a sender waiting for ever, so each round
// has a limit, and not all of them together: goroutines that spin on more threads than
// there are processors give way only when the system's time slices end, which on a busy
// machine makes a round last tens of milliseconds. Then there are fewer rounds.
func TestSendsMeetLateSharedReceives(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		if t.Failed() {
			return
		}
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			const senders = 3
			rounds := short(300)
			if procs > runtime.NumCPU() {
				rounds = max(rounds/3, 1)
			}
			var done atomic.Uint64
			_, q, xs, ys := shared(t, senders, hw.SRQConfig{Depth: senders}, func(c *hw.QPConfig) { c.SendSink = countSink{&done} })
			for _, y := range ys {
				y.recvs.hook = func([]hw.WC) {}
			}
			var round atomic.Uint64
			const limit = 30 * time.Second
			stop := time.AfterFunc(limit, func() { round.Store(2 * rounds); done.Store(senders * 2 * rounds) })
			defer stop.Stop()
			var wg sync.WaitGroup
			each := func(f func(i uint64)) {
				wg.Go(func() {
					for i := uint64(1); i <= rounds; i++ {
						for round.Load() < i {
							runtime.Gosched()
						}
						f(i)
					}
				})
			}
			for _, x := range xs {
				each(func(i uint64) { x.post(send(i)) })
			}
			each(func(i uint64) {
				for range senders {
					_, err := q.PostRecv([]hw.RecvWR{{ID: i}})
					assert.NoError(t, err)
				}
			})
			for i := uint64(1); i <= rounds; i++ {
				if !stop.Reset(limit) {
					stop.Stop() // a round before this one took too long
				}
				round.Store(max(i, round.Load()))
				for done.Load() < senders*i {
					runtime.Gosched()
				}
			}
			wg.Wait()
			assert.EqualValues(t, senders*rounds, done.Load(), "a send and its receive did not find each other")
		})
	}
}

// Connections come and go while several goroutines post to the queue that all of them
// take from: each receive completes once or is still in the queue, and in the end every
// remaining send gets one.
func TestBreaksLoseNoSharedReceive(t *testing.T) {
	const senders, posters, lives, perLife = 4, 2, 30, 10
	_, q, xs, ys := shared(t, senders, hw.SRQConfig{Depth: 4}, func(c *hw.QPConfig) { c.SendDepth = perLife })
	var posted atomic.Uint64
	var quit atomic.Bool
	var post, work sync.WaitGroup
	for range posters {
		post.Go(func() {
			for !quit.Load() {
				id := posted.Add(1)
				for !quit.Load() {
					if n, _ := q.PostRecv([]hw.RecvWR{{ID: id}}); n == 1 {
						break
					}
					runtime.Gosched()
				}
			}
		})
	}
	var mu sync.Mutex
	seen := make(map[uint64]bool)
	for i, x := range xs {
		y := ys[i]
		work.Go(func() {
			for life := range lives {
				for k := range perLife {
					x.post(send(uint64(k + 1)))
				}
				orderly := life%3 == 0
				if orderly { // every send completes: none waits for ever
					x.sends.wait(perLife)
				}
				for _, s := range []*side{y, x} {
					s.qp.Break(orderly)
				}
				for _, s := range []*side{y, x} {
					spinUntil(t, s.ended)
				}
				mu.Lock()
				for _, wc := range y.recvs.all() {
					if wc.Op == hw.OpEnd {
						continue
					}
					assert.False(t, seen[wc.ID], "receive %d completes twice", wc.ID)
					assert.EqualValues(t, 100+i, wc.QP)
					seen[wc.ID] = true
				}
				mu.Unlock()
				x.reset()
				y.reset()
				require.NoError(t, x.qp.(*queuePair).conn.Attempt("test"))
				require.NoError(t, y.qp.(*queuePair).conn.Attempt("test"))
				require.True(t, join(x.qp.(*queuePair).conn, y.qp.(*queuePair).conn, nil))
			}
		})
	}
	work.Wait()
	quit.Store(true)
	post.Wait()
	assert.Zero(t, q.claims)
	assert.Nil(t, q.first)
	for q.Left() > 0 {
		var wr hw.RecvWR
		q.Pop(&wr)
		assert.False(t, seen[wr.ID], "receive %d completed and is still there", wr.ID)
		seen[wr.ID] = true
	}
	assert.InDelta(t, posted.Load(), len(seen), posters, "but for those that were not taken at the end")
}
