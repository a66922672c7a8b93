package ep

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/token"
)

// meddler is a queue pair that calls the test while a request is posted to it. At
// that point the holder has the endpoint's token, and has looked for receives
// already.
type meddler struct {
	hw.QP
	peer   *Endpoint
	meddle func()
}

func (m *meddler) PostSend(wrs []hw.SendWR) (int, error) {
	n, err := m.QP.PostSend(wrs)
	if m.meddle != nil {
		meddle := m.meddle
		m.meddle = nil
		meddle()
	}
	return n, err
}

// meddled makes a connected endpoint all of whose events go to one dispatcher, and
// its meddler.
func meddled(r *rig) (a *Endpoint, all *evd.Dispatcher, m *meddler) {
	all = r.dispatcher(evd.ModeQueue, 256)
	a, b := r.endpointOf(Config{PZ: r.pz, Recv: all, Request: all, Conn: all}), r.endpoint(nil)
	require.NoError(r.t, a.Connect(ConnectConfig{Qual: r.psp.Qual()}))
	require.NoError(r.t, RequestOf(r.next(r.cr)).Accept(b, nil))
	require.Equal(r.t, event.Established, r.next(all).Number)
	m = &meddler{QP: a.box.QP(), peer: b}
	a.box.SetQP(m)
	return a, all, m
}

// disconnect begins to disconnect, and returns when the endpoint has been told.
func (r *rig) disconnect(e *Endpoint, how CloseFlags) <-chan error {
	done := make(chan error, 1)
	go func() { done <- e.Disconnect(how) }()
	r.await(func() bool { return e.box.Inside().Told(line.TellControl) })
	return done
}

// write posts a request that goes through the step.
func (r *rig) write(e *Endpoint, cookie uint64) {
	n, err := e.PostBatch([]DTO{{Op: hw.OpWrite, Cookie: cookie}})
	require.NoError(r.t, err)
	require.Equal(r.t, 1, n)
}

// finish closes the endpoint and the dispatcher, and checks that no event is left.
func (r *rig) finish(e *Endpoint, all *evd.Dispatcher) {
	require.NoError(r.t, e.Close())
	r.none(all)
	require.NoError(r.t, all.Close())
}

func TestTheEndFollowsWhatWasPostedBeforeIt(t *testing.T) {
	r := newRig(t)
	a, all, m := meddled(r)
	var done <-chan error
	m.meddle = func() {
		require.NoError(t, a.PostRecv(2, 0, r.lmr.Segment(0, 8)))
		done = r.disconnect(a, Abrupt)
	}
	r.write(a, 1)
	require.NoError(t, <-done)
	assert.Equal(t, uint64(1), r.next(all).Cookie)
	assert.Equal(t, uint64(2), r.next(all).Cookie, "the receive's post had returned when Disconnect was called")
	assert.Equal(t, event.Disconnected, r.next(all).Number)
	r.finish(a, all)
}

// slow is a post that has its ticket and whose slot is still being filled.
type slow struct {
	e      *Endpoint
	q      *line.Queue
	ticket uint32
}

// begin begins to post to q, and posts 3 behind it. Another holder has the token.
func (r *rig) begin(e *Endpoint, q *line.Queue) *slow {
	ticket, ok, mine := e.box.Inside().Claim(q)
	require.True(r.t, ok)
	require.False(r.t, mine)
	if q == &e.box.Recvs {
		require.NoError(r.t, e.PostRecv(3, 0, r.lmr.Segment(0, 8)))
	} else {
		r.write(e, 3)
	}
	return &slow{e, q, ticket}
}

// end ends the post, as number 2.
func (s *slow) end(r *rig) {
	op, to := hw.OpRecv, s.q.Rules().Queues.Main()
	if s.q == &s.e.box.Requests {
		op = hw.OpWrite
	}
	require.True(r.t, to.Reserve(1))
	s.e.box.Inside().Fill(s.q, s.ticket, op, 2, to)
	s.e.box.Inside().Submit(s.q, s.ticket, 1, false)
}

func TestTheEndWaitsForAPostBehindOneThatIsBeingFilled(t *testing.T) {
	r := newRig(t)
	a, all, m := meddled(r)
	var s *slow
	m.meddle = func() { s = r.begin(a, &a.box.Recvs) }
	r.write(a, 1)
	assert.Equal(t, uint64(1), r.next(all).Cookie)
	require.NoError(t, m.peer.Disconnect(Abrupt))
	r.await(func() bool { return a.State() == Disconnected })
	r.none(all)
	s.end(r)
	for _, cookie := range []uint64{2, 3} {
		ev := r.next(all)
		assert.Equal(t, cookie, ev.Cookie)
		assert.Equal(t, hw.StatusFlushed, ev.Status)
	}
	assert.Equal(t, event.Disconnected, r.next(all).Number)
	r.finish(a, all)
}

func TestAControlCallWaitsForAPostBehindOneThatIsBeingFilled(t *testing.T) {
	for _, how := range []CloseFlags{Abrupt, Graceful} {
		r := newRig(t)
		a, all, m := meddled(r)
		var (
			s    *slow
			done <-chan error
		)
		m.meddle = func() {
			s = r.begin(a, &a.box.Requests)
			done = r.disconnect(a, how)
		}
		r.write(a, 1)
		assert.Equal(t, uint64(1), r.next(all).Cookie)
		r.none(all)
		assert.Equal(t, Connected, a.State())
		s.end(r)
		require.NoError(t, <-done)
		for _, cookie := range []uint64{2, 3} {
			ev := r.next(all)
			assert.Equal(t, cookie, ev.Cookie)
			assert.Equal(t, hw.StatusSuccess, ev.Status, "it was posted before the call")
		}
		assert.Equal(t, event.Disconnected, r.next(all).Number)
		r.finish(a, all)
	}
}

// A post that takes the token while an earlier post's slot is still being filled
// goes the long way, and neither is handed on before that slot is filled.
func TestAPostWaitsBehindOneThatIsBeingFilled(t *testing.T) {
	for name, c := range map[string]struct {
		q      func(*Endpoint) *line.Queue
		post   func(*rig, *Endpoint) error
		status hw.Status
	}{
		"a request": {
			func(e *Endpoint) *line.Queue { return &e.box.Requests },
			func(r *rig, e *Endpoint) error {
				return e.PostRDMAWrite(3, 0, r.lmr.Remote(0, 8), r.lmr.Segment(8, 8))
			},
			hw.StatusSuccess,
		},
		"a request of two segments": {
			func(e *Endpoint) *line.Queue { return &e.box.Requests },
			func(r *rig, e *Endpoint) error {
				return e.PostRDMAWrite(3, 0, r.lmr.Remote(0, 16), r.lmr.Segment(8, 8), r.lmr.Segment(32, 8))
			},
			hw.StatusSuccess,
		},
		"a receive": {
			func(e *Endpoint) *line.Queue { return &e.box.Recvs },
			func(r *rig, e *Endpoint) error { return e.PostRecv(3, 0, r.lmr.Segment(0, 8)) },
			hw.StatusFlushed,
		},
		"a batch": {
			func(e *Endpoint) *line.Queue { return &e.box.Requests },
			func(r *rig, e *Endpoint) error {
				write := DTO{Op: hw.OpWrite, Cookie: 3, Remote: r.lmr.Remote(0, 8), Segment: r.lmr.Segment(8, 8)}
				silent := write
				silent.Flags = hw.Suppress
				_, err := e.PostBatch([]DTO{silent, write})
				return err
			},
			hw.StatusSuccess,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a, all, m := meddled(r)
			a.box.SetQP(m.QP.(hw.Runner))
			q := c.q(a)
			require.True(t, a.box.Token.TakeOrKick()) // a holder that releases the token once the ticket is taken
			ticket, _, mine := a.box.Inside().Claim(q)
			require.False(t, mine)
			a.box.Inside().Run()
			require.Zero(t, a.box.Token.Load()&token.Held)
			require.Equal(t, ticket, a.box.Inside().Next(q), "it is not published")
			require.NoError(t, c.post(r, a))
			require.Equal(t, ticket, a.box.Inside().Next(q), "the one before it is not published")
			r.none(all)
			(&slow{a, q, ticket}).end(r)
			require.NoError(t, a.Disconnect(Abrupt))
			for _, cookie := range []uint64{2, 3} {
				ev := r.next(all)
				assert.Equal(t, cookie, ev.Cookie)
				assert.Equal(t, c.status, ev.Status)
			}
			assert.Equal(t, event.Disconnected, r.next(all).Number)
			r.finish(a, all)
		})
	}
}

func TestResetFlushesAPostBehindOneThatIsBeingFilled(t *testing.T) {
	r := newRig(t)
	a, all, _ := meddled(r)
	require.NoError(t, a.Disconnect(Abrupt))
	assert.Equal(t, event.Disconnected, r.next(all).Number)
	require.True(t, a.box.Token.TakeOrKick()) // a holder is about to release the token
	s := r.begin(a, &a.box.Recvs)
	done := make(chan error, 1)
	go func() { done <- a.Reset() }()
	r.await(func() bool { return a.box.Inside().Told(line.TellControl) })
	a.box.Inside().Run()
	assert.Equal(t, Disconnected, a.State())
	s.end(r)
	require.NoError(t, <-done)
	for _, cookie := range []uint64{2, 3} {
		ev := r.next(all)
		assert.Equal(t, cookie, ev.Cookie)
		assert.Equal(t, hw.StatusFlushed, ev.Status, "it was posted in DISCONNECTED")
	}
	r.finish(a, all)
}

// busy returns an endpoint that never runs out of posts from its first one on, until enough
// is set, and what posts them.
func (r *rig) busy() (a *Endpoint, m *meddler, enough *atomic.Bool) {
	a, _ = r.pair(&Attr{MaxRequestDTOs: 4 * line.Budget})
	m, enough = &meddler{QP: a.box.QP()}, new(atomic.Bool)
	a.box.SetQP(m)
	dtos := make([]DTO, 2*line.Budget)
	for i := range dtos {
		dtos[i] = DTO{Op: hw.OpWrite, Flags: hw.Suppress}
	}
	var more func()
	more = func() {
		if !enough.Load() {
			_, _ = a.PostBatch(dtos)
			m.meddle = more
		}
	}
	m.meddle = more
	return a, m, enough
}

// The endpoint always has a line.Budget's worth of posts left, and yet it executes a
// control call.
func TestDisconnectIsExecutedWhileOthersPostWithoutAPause(t *testing.T) {
	r := newRig(t)
	a, m, enough := r.busy()
	more := m.meddle
	told := make(chan (<-chan error), 1)
	m.meddle = func() {
		told <- r.disconnect(a, Abrupt)
		more()
	}
	posted := make(chan struct{})
	go func() {
		r.write(a, 1)
		close(posted)
	}()
	done := <-told
	select {
	case err := <-done:
		assert.NoError(t, err)
	case <-time.After(time.Minute):
		t.Error("Disconnect does not return")
	}
	enough.Store(true)
	<-posted
}

// Four goroutines post without a pause while the connection ends.
func TestDisconnectReturnsWhileFourGoroutinesPost(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(&Attr{MaxRequestDTOs: 256})
	var stop atomic.Bool
	ended := make(chan struct{})
	const posters = 4
	for range posters {
		go func() {
			dtos := make([]DTO, 2*line.Budget)
			for i := range dtos {
				dtos[i] = DTO{Op: hw.OpWrite, Flags: hw.Suppress}
			}
			for !stop.Load() {
				_, _ = a.PostBatch(dtos)
				r.drain()
			}
			ended <- struct{}{}
		}()
	}
	require.NoError(t, a.Disconnect(Abrupt))
	stop.Store(true)
	for range posters {
		<-ended
	}
}

// drain drops the events of r.dto.
func (r *rig) drain() {
	var buf [64]event.Event
	for n := 1; n > 0; {
		n, _ = r.dto.Dequeue(buf[:])
	}
}

// A post that runs while everything is closed gets the error of the endpoint, not
// that of the dispatcher, which is aborted after the endpoint.
func TestAPostThatRacesCloseGetsTheErrorOfItsEndpoint(t *testing.T) {
	r := newRig(t)
	for range 100 {
		all := r.dispatcher(evd.ModeQueue, 64)
		e := r.endpointOf(Config{PZ: r.pz, Recv: all, Request: all, Conn: all})
		refused := make(chan error)
		go func() {
			var err error
			for err == nil || errors.Is(err, &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceCredits}) {
				err = e.PostRecv(1, 0, r.lmr.Segment(0, 8))
			}
			refused <- err
		}()
		require.NoError(t, e.Close())
		wiring(all).Abort()
		require.ErrorIs(t, <-refused, hw.ErrInvalidHandle)
	}
}

// The holder clears the marks of published slots. They would mean the same again 2^24
// tickets later, when a poster has the ticket and has not filled the slot.
func TestASlotIsNotPublishedOnceItsPostHasBeenTaken(t *testing.T) {
	r := newRig(t)
	a, all, m := meddled(r)
	m.meddle = func() {
		for i := range uint64(3) {
			r.write(a, 2+i)
		}
	}
	r.write(a, 1)
	r.takeEvents(all, 4)
	assert.Zero(t, a.box.Inside().Published(&a.box.Requests))
	require.NoError(t, a.Close())
	r.drop(all)
	require.NoError(t, all.Close())
}
