package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// takeEvents is what a consumer takes off a dispatcher of any mode.
func (r *rig) takeEvents(d *evd.Dispatcher, n int) (evs []event.Event) {
	for len(evs) < n {
		switch d.Mode() {
		case evd.ModeChannel:
			evs = append(evs, <-d.C())
		case evd.ModeBatch:
			b := <-d.Batches()
			evs = append(evs, b.Events()...)
			b.Release()
		default:
			evs = append(evs, r.next(d))
		}
	}
	return evs
}

// A run's completions are kept and delivered together, but for those that are not plain. A
// suppressed send has none, and a solicited receive says more than its length.
func TestTheEventsOfABatchComeInOrderWithTheirLengths(t *testing.T) {
	for _, mode := range []evd.Mode{evd.ModeQueue, evd.ModeChannel, evd.ModeBatch} {
		r := newRig(t)
		d := r.dispatcher(mode, 256)
		a := r.endpointOf(Config{PZ: r.pz, Request: r.dto, Conn: r.conn, Attr: &Attr{MaxRequestDTOs: 32}})
		b := r.endpointOf(Config{PZ: r.pz, Recv: d, Conn: r.conn, Attr: &Attr{MaxRecvDTOs: 32}})
		r.connect(a, b)
		const n = 24 // more than deliverEvents has at a time
		recvs, sends := make([]DTO, n), make([]DTO, n)
		for i := range n {
			recvs[i] = DTO{Cookie: uint64(i), Segment: r.lmr.Segment(4096+64*i, 64)}
			sends[i] = DTO{Op: hw.OpSend, Cookie: uint64(i), Segment: r.lmr.Segment(64*i, i+1)}
		}
		sends[3].Flags, sends[7].Flags, sends[20].Flags = hw.SolicitedWait, hw.Suppress, hw.SolicitedWait
		for range 20 {
			_, err := b.PostRecvBatch(recvs)
			require.NoError(t, err)
			_, err = a.PostBatch(sends)
			require.NoError(t, err)
			for i, ev := range r.takeEvents(d, n) {
				require.EqualValues(t, i, ev.Cookie, mode)
				require.EqualValues(t, i+1, ev.Length, mode)
				require.Equal(t, b, ev.Source)
				require.Equal(t, hw.OpRecv, ev.Op)
				require.Equal(t, i == 3 || i == 20, ev.Flags&event.Solicited != 0)
			}
			for i := range n {
				if i != 7 {
					ev := r.next(r.dto)
					require.EqualValues(t, i, ev.Cookie)
					require.EqualValues(t, i+1, ev.Length)
				}
			}
			r.none(r.dto)
		}
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		require.NoError(t, d.Close())
	}
}

// spy is a queue pair whose test sees each request of a run, and may complete it in place of
// the device.
type spy struct {
	hw.Runner
	run func(execute func() bool, id uint64, n uint32) bool
}

func (s *spy) PostRun(op hw.Op, flags hw.WRFlags, id uint64, sge *hw.SGE, stride uintptr, n int, rkey uint32, addr uint64) int {
	posted, executed := n, false
	execute := func() bool {
		posted, executed = s.Runner.PostRun(op, flags, id, sge, stride, n, rkey, addr), true
		return posted == n
	}
	s.run(execute, id, sge.Len)
	if !executed {
		s.Runner.PostRun(op, flags, id, sge, stride, 0, rkey, addr)
	}
	return posted
}

func TestTheEventsOfALongBatchDoNotWaitForItsEnd(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(nil)
	size := line.MaxKept / 3
	var seen []int
	r.useQP(a, &spy{runner(a), func(execute func() bool, _ uint64, _ uint32) bool {
		ok := execute()
		var buf [16]event.Event
		n, err := r.dto.Dequeue(buf[:])
		require.NoError(t, err)
		seen = append(seen, n)
		return ok
	}})
	write := DTO{Op: hw.OpWrite, Segment: r.lmr.Segment(0, size), Remote: r.lmr.Remote(0, size)}
	_, err := a.PostBatch([]DTO{write, write, write, write, write})
	require.NoError(t, err)
	assert.Equal(t, []int{0, 0, 0, 4, 1}, seen, "the last call ends the run")
}

// A provider may end a run with a completion that it does not keep back, alone or in an
// array.
func TestACompletionComesAfterThoseThatAreKept(t *testing.T) {
	for name, complete := range map[string]func(q *line.Queue, id uint64, n uint32){
		"one":   func(q *line.Queue, id uint64, n uint32) { q.CompleteOne(id, hw.OpWrite, n, 0) },
		"array": func(q *line.Queue, id uint64, n uint32) { q.Complete([]hw.WC{{ID: id, Op: hw.OpWrite, Len: n}}) },
		"error": func(q *line.Queue, id uint64, _ uint32) { q.Complete([]hw.WC{{ID: id, Status: hw.StatusLocalLength}}) },
	} {
		r := newRig(t)
		a, _ := r.pair(nil)
		calls := 0
		r.useQP(a, &spy{runner(a), func(execute func() bool, id uint64, n uint32) bool {
			if calls++; calls < 3 {
				return execute()
			}
			complete(&a.box.Requests, id, n)
			return true
		}})
		var writes [3]DTO
		for i := range writes {
			writes[i] = DTO{Op: hw.OpWrite, Cookie: uint64(i), Segment: r.lmr.Segment(0, i+1), Remote: r.lmr.Remote(0, 8)}
		}
		_, err := a.PostBatch(writes[:])
		require.NoError(t, err)
		for i := range writes {
			ev := r.next(r.dto)
			assert.EqualValues(t, i, ev.Cookie, name)
			if name != "error" || i < 2 {
				assert.EqualValues(t, i+1, ev.Length, name)
			}
		}
		r.none(r.dto)
	}
}

// The completer reads the slots of completions that it keeps, frees the slots, and then
// publishes the events.
func TestAConsumerThatHasTheEventsOfABatchMayPostAgain(t *testing.T) {
	for _, mode := range []evd.Mode{evd.ModeQueue, evd.ModeChannel} {
		const rounds = 2000
		r := newRig(t)
		d := r.dispatcher(mode, 64)
		attr := &Attr{MaxRequestDTOs: 2, MaxRecvDTOs: 2}
		a := r.endpointOf(Config{PZ: r.pz, Recv: r.dto, Request: r.dto, Conn: r.conn, Attr: attr})
		b := r.endpointOf(Config{PZ: r.pz, Recv: d, Request: r.dto, Conn: r.conn, Attr: attr})
		r.connect(a, b)
		_, err := b.PostRecvBatch(r.batchOf(2))
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 2 * rounds {
				assert.EqualValues(t, i%2, r.takeEvents(d, 1)[0].Cookie)
				if !assert.NoError(t, b.PostRecv(uint64(i%2), 0, r.lmr.Segment(0, 8)), "a receive has just completed") {
					return
				}
			}
		}()
		for range rounds {
			_, err := a.PostBatch(r.batchOf(2))
			require.NoError(t, err)
			for range 2 {
				require.NoError(t, r.next(r.dto).Err())
			}
		}
		<-done
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		require.NoError(t, d.Close())
	}
}

// A receiver that waits for solicited messages hears of no other one in a batch.
func TestABatchWakesNoReceiverThatWaitsForSolicitedMessages(t *testing.T) {
	r := newRig(t)
	cno, err := evd.NewCNO(evd.CNOConfig{})
	require.NoError(t, err)
	d := r.dispatcher(evd.ModeQueue, 64)
	require.NoError(t, d.ModifyCNO(cno))
	a := r.endpoint(nil)
	b := r.endpointOf(Config{PZ: r.pz, Recv: d, Conn: r.conn, Attr: &Attr{RecvFlags: hw.SolicitedWait}})
	r.connect(a, b)
	_, err = b.PostRecvBatch(r.batchOf(6))
	require.NoError(t, err)
	sends := r.batchOf(3)
	_, err = a.PostBatch(sends)
	require.NoError(t, err)
	_, err = cno.Trigger()
	require.ErrorIs(t, err, &hw.Error{Type: hw.QueueEmpty}, "no message was solicited")
	sends[1].Flags = hw.SolicitedWait
	_, err = a.PostBatch(sends)
	require.NoError(t, err)
	_, err = cno.Trigger()
	require.NoError(t, err)
	assert.Len(t, r.takeEvents(d, 6), 6)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	require.NoError(t, d.Close())
	require.NoError(t, cno.Close())
}

// completeEarly posts writes that no device gets, and completes some of them as a device does before ESTABLISHED
// is announced. announce delivers what waited for that.
func (r *rig) completeEarly(e *Endpoint, posts, completed uint64) (announce func()) {
	box, q := &e.box, &e.box.Requests
	qp := box.QP()
	box.SetQP(mute{qp.(hw.Runner)})
	for i := range posts {
		require.NoError(r.t, e.PostRDMAWrite(i, 0, r.lmr.Remote(0, 8), r.lmr.Segment(0, 8)))
	}
	box.BeginDetour()
	for i := range completed {
		q.CompleteOne(box.Inside().ID(q, uint32(i)), hw.OpWrite, 8, hw.WCMore)
	}
	q.Flush()
	return func() {
		require.True(r.t, box.Token.TakeOrKick())
		box.EndDetour()
		box.SetQP(qp)
		box.Inside().Run()
	}
}

// Completions that come before ESTABLISHED is announced wait for it, also those of a series.
func TestASeriesThatComesBeforeEstablishedWaitsForIt(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(nil)
	announce := r.completeEarly(a, 3, 3)
	r.none(r.dto)
	announce()
	for i := range uint64(3) {
		assert.Equal(t, i, r.next(r.dto).Cookie)
	}
}

// The consumer posts at both ends as soon as it has an event, while the poster is still in
// the call that completes both.
func TestAConsumerThatHasBothEventsMayPostAgainAtBothEnds(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(&Attr{MaxRequestDTOs: 1, MaxRecvDTOs: 1})
	seg := r.lmr.Segment(0, 8)
	require.NoError(t, b.PostRecv(0, 0, seg))
	const rounds = 2000
	next, done := make(chan bool), make(chan struct{})
	answer := func() (ok bool) {
		ok = assert.Equal(t, hw.OpRecv, r.next(r.dto).Op) &&
			assert.NoError(t, b.PostRecv(0, 0, seg), "the only receive has just completed")
		return assert.Equal(t, hw.OpSend, r.next(r.dto).Op) && ok
	}
	go func() {
		defer close(done)
		defer close(next)
		for range rounds {
			if !answer() || !assert.NoError(t, a.PostSend(0, 0, seg), "the only send has just completed") || !answer() {
				return
			}
			next <- true
		}
	}()
	for ok := true; ok; ok = <-next {
		require.NoError(t, a.PostSend(0, 0, seg))
	}
	<-done
}
