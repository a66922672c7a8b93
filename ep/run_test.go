package ep

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/door"
)

// batchOf describes n sends of 8 bytes with cookies from 0 on.
func (r *rig) batchOf(n int) []DTO {
	dtos := make([]DTO, n)
	for i := range dtos {
		dtos[i] = DTO{Op: hw.OpSend, Cookie: uint64(i), Segment: r.lmr.Segment(8*i, 8)}
	}
	return dtos
}

// callbacks makes a dispatcher that sends its events to a channel.
func (r *rig) callbacks() (*evd.Dispatcher, <-chan event.Event) {
	events := make(chan event.Event, 64)
	d, err := evd.New(evd.Config{QLen: 64, Mode: evd.ModeCallback, Callback: func(evs []event.Event) {
		for _, ev := range evs {
			events <- ev
		}
	}})
	require.NoError(r.t, err)
	return d, events
}

func (r *rig) nextOf(events <-chan event.Event) event.Event {
	select {
	case ev := <-events:
		return ev
	case <-time.After(time.Minute):
		require.Fail(r.t, "no event")
		return event.Event{}
	}
}

// The completions of a batch are not flushed one by one. Nothing runs a callback before
// the flush that ends the batch.
func TestABatchRunsTheCallbacksOfBothEnds(t *testing.T) {
	r := newRig(t)
	atA, eventsA := r.callbacks()
	atB, eventsB := r.callbacks()
	defer func() { require.NoError(t, atB.Close()) }()
	defer func() { require.NoError(t, atA.Close()) }()
	a := r.endpointOf(Config{PZ: r.pz, Request: atA, Conn: r.conn})
	b := r.endpointOf(Config{PZ: r.pz, Recv: atB, Conn: r.conn})
	defer func() { require.NoError(t, b.Close()) }()
	defer func() { require.NoError(t, a.Close()) }()
	r.connect(a, b)
	for range 3 {
		n, err := b.PostRecvBatch(r.batchOf(5))
		require.NoError(t, err)
		require.Equal(t, 5, n)
		n, err = a.PostBatch(r.batchOf(5))
		require.NoError(t, err)
		require.Equal(t, 5, n)
		for i := range 5 {
			assert.EqualValues(t, i, r.nextOf(eventsA).Cookie)
			assert.EqualValues(t, i, r.nextOf(eventsB).Cookie)
		}
	}
}

func TestABatchOfOneRunsACallback(t *testing.T) {
	r := newRig(t)
	d, events := r.callbacks()
	defer func() { require.NoError(t, d.Close()) }()
	a := r.endpointOf(Config{PZ: r.pz, Request: d, Conn: r.conn})
	b := r.endpointOf(Config{PZ: r.pz, Conn: r.conn})
	defer func() { require.NoError(t, b.Close()) }()
	defer func() { require.NoError(t, a.Close()) }()
	r.connect(a, b)
	write := DTO{Op: hw.OpWrite, Cookie: 7, Segment: r.lmr.Segment(0, 8), Remote: r.lmr.Remote(8, 8)}
	_, err := a.PostBatch([]DTO{write})
	require.NoError(t, err)
	assert.EqualValues(t, 7, r.nextOf(events).Cookie)
}

// Receives that were posted before Modify may complete to another dispatcher than the
// later ones.
func TestABatchFlushesEveryDispatcherThatItCompletesTo(t *testing.T) {
	r := newRig(t)
	one, events := r.callbacks()
	defer func() { require.NoError(t, one.Close()) }()
	a, b := r.pair(nil)
	_, err := b.PostRecvBatch(r.batchOf(4))
	require.NoError(t, err)
	require.True(t, wiring(one).Main().Reserve(2))
	for _, ticket := range []uint32{0, 2} {
		b.box.Inside().Redirect(&b.box.Recvs, ticket, wiring(one).Main())
	}
	_, err = a.PostBatch(r.batchOf(4))
	require.NoError(t, err)
	for _, cookie := range []uint64{0, 2} {
		assert.Equal(t, cookie, r.nextOf(events).Cookie)
	}
	for range 6 {
		require.NoError(t, r.next(r.dto).Err())
	}
}

func TestABatchThatRunsOutOfReceivesGoesOnWhenTheyCome(t *testing.T) {
	for i := range 12 {
		receives, flags := i%6, hw.Flags(i/6)*hw.SolicitedWait
		t.Run(fmt.Sprintf("%d/%v", receives, flags), func(t *testing.T) {
			r := newRig(t)
			sent, received := r.dispatcher(evd.ModeQueue, 64), r.dispatcher(evd.ModeQueue, 64)
			defer func() { require.NoError(t, received.Close()) }()
			defer func() { require.NoError(t, sent.Close()) }()
			a := r.endpointOf(Config{PZ: r.pz, Request: sent, Conn: r.conn})
			b := r.endpointOf(Config{PZ: r.pz, Recv: received, Conn: r.conn})
			defer func() { require.NoError(t, b.Close()) }()
			defer func() { require.NoError(t, a.Close()) }()
			r.connect(a, b)
			recvs := r.batchOf(5)
			if receives > 0 {
				_, err := b.PostRecvBatch(recvs[:receives%5])
				require.NoError(t, err)
			}
			sends := r.batchOf(5)
			for i := range sends {
				sends[i].Flags = flags
			}
			n, err := a.PostBatch(sends)
			require.NoError(t, err)
			require.Equal(t, 5, n)
			_, err = b.PostRecvBatch(recvs[receives%5:])
			require.NoError(t, err)
			for i := range uint64(5) {
				assert.Equal(t, i, r.next(sent).Cookie)
				assert.Equal(t, i, r.next(received).Cookie)
			}
		})
	}
}

// One of the operations can't go the short way, and all are posted in order.
func TestABatchThatIsNotPlainIsPostedInOrder(t *testing.T) {
	for name, change := range map[string]func(*rig, *DTO){
		"two segments":    func(r *rig, d *DTO) { d.Segments = append(d.Segments, r.lmr.Segment(0, 4), r.lmr.Segment(64, 4)) },
		"no segment":      func(_ *rig, d *DTO) { d.Segment.Len = 0 },
		"a longer target": func(r *rig, d *DTO) { d.Op, d.Remote = hw.OpWrite, r.lmr.Remote(128, 64) },
		"a shorter read":  func(r *rig, d *DTO) { d.Op, d.Remote = hw.OpRead, r.lmr.Remote(128, 4) },
		"solicited":       func(_ *rig, d *DTO) { d.Flags = hw.SolicitedWait },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			sent := r.dispatcher(evd.ModeQueue, 64)
			defer func() { require.NoError(t, sent.Close()) }()
			a, b := r.endpointOf(Config{PZ: r.pz, Request: sent, Conn: r.conn}), r.endpointOf(Config{PZ: r.pz, Recv: r.dto, Conn: r.conn})
			defer func() { require.NoError(t, a.Close()) }()
			r.connect(a, b)
			_, err := b.PostRecvBatch(r.batchOf(4))
			require.NoError(t, err)
			dtos := r.batchOf(4)
			change(r, &dtos[2])
			n, err := a.PostBatch(dtos)
			require.NoError(t, err)
			require.Equal(t, 4, n)
			for i := range uint64(4) {
				ev := r.next(sent)
				require.NoError(t, ev.Err())
				assert.Equal(t, i, ev.Cookie)
				if name == "a shorter read" && i == 2 {
					assert.EqualValues(t, 4, ev.Length)
				}
			}
		})
	}
}

// The batch stops at the operation that is wrong, with the error that a post of it gets.
func TestABatchStopsAtAWrongOperation(t *testing.T) {
	for name, change := range map[string]func(*rig, *DTO){
		"a receive":             func(_ *rig, d *DTO) { d.Op = hw.OpRecv },
		"a freed region":        func(_ *rig, d *DTO) { d.Segment.Context ^= 1 << 20 },
		"a flag":                func(_ *rig, d *DTO) { d.Flags = hw.Unsignalled },
		"a short target":        func(r *rig, d *DTO) { d.Op, d.Remote = hw.OpWrite, r.lmr.Remote(0, 4) },
		"a remote out of range": func(r *rig, d *DTO) { d.Op, d.Remote = hw.OpWrite, r.lmr.Remote(0, 1<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a, b := r.pair(nil)
			_, err := b.PostRecvBatch(r.batchOf(4))
			require.NoError(t, err)
			dtos := r.batchOf(4)
			change(r, &dtos[2])
			n, err := a.PostBatch(dtos)
			assert.Error(t, err)
			assert.Equal(t, 2, n)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, _, err = r.dto.Wait(ctx, 4)
			require.NoError(t, err)
		})
	}
}

// A batch takes places for those of its completions alone that do not go to a sink.
func TestABatchMayCompleteToASinkInPart(t *testing.T) {
	for name, sunk := range map[string]func(cookie uint64) bool{
		"some": func(cookie uint64) bool { return cookie%2 != 0 },
		"all":  func(uint64) bool { return true },
		"none": func(uint64) bool { return false },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			d := r.dispatcher(evd.ModeQueue, 6)
			defer func() { require.NoError(t, d.Close()) }()
			var refused, want []uint64
			wiring(d).FuncRoute(1<<63, 1<<63, func(_ any, status hw.Status, cookie uint64) {
				assert.Equal(t, hw.StatusSuccess, status)
				refused = append(refused, cookie&^(1<<63))
			})
			a := r.endpointOf(Config{PZ: r.pz, Request: d, Conn: r.conn})
			b := r.endpointOf(Config{PZ: r.pz, Conn: r.conn})
			defer func() { require.NoError(t, b.Close()) }()
			defer func() { require.NoError(t, a.Close()) }()
			r.connect(a, b)
			for round := range 5 { // a place that is kept is missing later
				dtos := make([]DTO, 6)
				var wantRefused []uint64
				want, refused = nil, nil
				for i := range dtos {
					cookie := uint64(6*round + i)
					dtos[i] = DTO{Op: hw.OpWrite, Cookie: cookie, Segment: r.lmr.Segment(0, 8), Remote: r.lmr.Remote(8, 8)}
					if sunk(cookie) {
						dtos[i].Cookie |= 1 << 63
						wantRefused = append(wantRefused, cookie)
					} else {
						want = append(want, cookie)
					}
				}
				n, err := a.PostBatch(dtos)
				require.NoError(t, err)
				require.Equal(t, len(dtos), n)
				for _, cookie := range want {
					assert.Equal(t, cookie, r.next(d).Cookie)
				}
				assert.Equal(t, wantRefused, refused)
				r.none(d)
			}
		})
	}
}

// grudging is a queue pair that takes at most so many posts of a run together.
type grudging struct {
	hw.Runner
	most         int
	sends, recvs int // calls
}

func (g *grudging) PostRun(op hw.Op, flags hw.WRFlags, id uint64, sge *hw.SGE, stride uintptr, n int, rkey uint32, addr uint64) int {
	g.sends++
	if n > g.most {
		flags &^= hw.WRMore
	}
	return g.Runner.PostRun(op, flags, id, sge, stride, min(n, g.most), rkey, addr)
}

func (g *grudging) RecvRun(id uint64, sge *hw.SGE, stride uintptr, n int) int {
	g.recvs++
	return g.Runner.RecvRun(id, sge, stride, min(n, g.most))
}

// watched is a queue pair that takes at most so many sends of a run together, and notes which
// of all sends were signaled.
type watched struct {
	grudging
	signaled []bool
}

func (w *watched) note(flags hw.WRFlags, n int) {
	for range n {
		w.signaled = append(w.signaled, flags&hw.WRSignaled != 0)
	}
}

func (w *watched) PostRun(op hw.Op, flags hw.WRFlags, id uint64, sge *hw.SGE, stride uintptr, n int, rkey uint32, addr uint64) int {
	done := w.grudging.PostRun(op, flags, id, sge, stride, n, rkey, addr)
	w.note(flags, done)
	return done
}

func (w *watched) PostSend(wrs []hw.SendWR) (int, error) {
	done, err := w.Runner.PostSend(wrs)
	for i := range wrs[:done] {
		w.note(wrs[i].Flags, 1)
	}
	return done, err
}

// Of suppressed sends each fourth is signaled here, however many the device takes together.
// What it leaves of a run is counted once.
func TestASeriesOfSuppressedSendsIsSignaledNowAndThen(t *testing.T) {
	const rounds, length = 12, 5
	for most := range length + 1 {
		r := newRig(t)
		received := r.dispatcher(evd.ModeQueue, 64)
		attr := &Attr{MaxRecvDTOs: 8, MaxRequestDTOs: 8}
		a := r.endpointOf(Config{PZ: r.pz, Request: r.dto, Conn: r.conn, Attr: attr})
		b := r.endpointOf(Config{PZ: r.pz, Recv: received, Conn: r.conn, Attr: attr})
		r.connect(a, b)
		require.Equal(t, 4, a.box.Inside().Signals())
		w := &watched{grudging: grudging{Runner: runner(a), most: most}}
		a.box.SetQP(w)
		sends := r.batchOf(length)
		for i := range sends {
			sends[i].Flags = hw.Suppress
		}
		for round := range rounds {
			_, err := b.PostRecvBatch(r.batchOf(length))
			require.NoError(t, err)
			together := 1 + round%2*(length-1)
			for i := 0; i < length; i += together {
				n, err := a.PostBatch(sends[i : i+together])
				require.NoError(t, err)
				require.Equal(t, together, n)
			}
			for i := range uint64(length) {
				require.Equal(t, i, r.next(received).Cookie)
			}
		}
		want := make([]bool, rounds*length)
		for i := 3; i < len(want); i += 4 {
			want[i] = true
		}
		assert.Equal(t, want, w.signaled, "at most %d together", most)
		r.none(r.dto)
		a.box.SetQP(w.Runner)
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		require.NoError(t, received.Close())
	}
}

// The device gets the posts of a batch in as many calls as their slots have stretches. What
// it does not take then it gets in arrays.
func TestABatchGoesToTheDeviceWhateverItTakesTogether(t *testing.T) {
	for most := range 6 {
		r := newRig(t)
		sent, received := r.dispatcher(evd.ModeQueue, 64), r.dispatcher(evd.ModeQueue, 64)
		attr := &Attr{MaxRecvDTOs: 8, MaxRequestDTOs: 8}
		a := r.endpointOf(Config{PZ: r.pz, Request: sent, Conn: r.conn, Attr: attr})
		b := r.endpointOf(Config{PZ: r.pz, Recv: received, Conn: r.conn, Attr: attr})
		r.connect(a, b)
		fromA, toB := &grudging{Runner: runner(a), most: most}, &grudging{Runner: runner(b), most: most}
		a.box.SetQP(fromA)
		b.box.SetQP(toB)
		const rounds = 8
		for range rounds {
			_, err := b.PostRecvBatch(r.batchOf(5))
			require.NoError(t, err)
			n, err := a.PostBatch(r.batchOf(5))
			require.NoError(t, err)
			require.Equal(t, 5, n)
			for i := range uint64(5) {
				for _, d := range []*evd.Dispatcher{sent, received} {
					ev := r.next(d)
					require.NoError(t, ev.Err())
					require.Equal(t, i, ev.Cookie)
					require.EqualValues(t, 8, ev.Length)
				}
			}
		}
		if most == 5 {
			assert.Equal(t, rounds+4, fromA.sends, "4 batches lie at both ends of the ring of 8 slots")
			assert.Equal(t, rounds+4, toB.recvs)
		} else {
			assert.Positive(t, fromA.sends)
		}
		for i := range uint64(5) { // one by one
			require.NoError(t, b.PostRecv(i, 0, r.lmr.Segment(64, 8)))
			require.NoError(t, a.PostSend(i, 0, r.lmr.Segment(0, 8)))
			for _, d := range []*evd.Dispatcher{sent, received} {
				ev := r.next(d)
				require.NoError(t, ev.Err())
				require.Equal(t, i, ev.Cookie)
			}
		}
		a.box.SetQP(fromA.Runner)
		b.box.SetQP(toB.Runner)
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		require.NoError(t, sent.Close())
		require.NoError(t, received.Close())
	}
}

// The connection keeps the cookies whose highest bit is set.
func TestABatchEndsBeforeACookieThatIsNotTheProgramsOwn(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	a.Own(door.Key{}).Reserve()
	b.Own(door.Key{}).Reserve()
	for _, post := range []func([]DTO) (int, error){b.PostRecvBatch, a.PostBatch} {
		dtos := r.batchOf(3)
		dtos[2].Cookie = 1 << 63
		n, err := post(dtos)
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		require.Equal(t, 2, n)
		n, err = post(dtos[2:])
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		require.Zero(t, n)
	}
	for range 4 {
		require.NoError(t, r.next(r.dto).Err())
	}
}

// As the post of one does: every 2^20 tickets.
func TestABatchNotesThatTheProviderHasItsReceives(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	q := &b.box.Recvs
	const first = 2*line.HandedEvery - 1
	b.box.Inside().Age(q, first)
	_, err := b.PostRecvBatch(r.batchOf(3))
	require.NoError(t, err)
	assert.EqualValues(t, first+2, b.box.Inside().Handed(q))
	_, err = a.PostBatch(r.batchOf(3))
	require.NoError(t, err)
	for range 6 {
		require.NoError(t, r.next(r.dto).Err())
	}
}
