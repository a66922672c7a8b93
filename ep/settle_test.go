package ep

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
)

// Each look at an endpoint settles the suppressed requests that have succeeded, because they have no
// event that would: they are not outstanding, they are counted, and their slots and places are free again.
func TestSuppressedRequestsThatSucceededAreNotOutstanding(t *testing.T) {
	for name, look := range map[string]func(*Endpoint){
		"Status":   func(e *Endpoint) { _, _ = e.Status() },
		"Snapshot": func(e *Endpoint) { e.Snapshot() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			to := r.dispatcher(evd.ModeQueue, 8)
			defer wiring(to).Abort()
			a, b := r.endpointOf(Config{PZ: r.pz, Request: to, Conn: r.conn}), r.endpoint(nil)
			r.connect(a, b)
			for range 3 {
				require.NoError(t, b.PostRecv(0, 0, r.lmr.Segment(0, 8)))
				require.NoError(t, a.PostSend(0, hw.Suppress, r.lmr.Segment(8, 8)))
			}
			require.EqualValues(t, 3, a.box.Requests.Outstanding(), "the device has told nothing")
			reserved, _ := wiring(to).Main().Places()
			require.EqualValues(t, 3, reserved)
			look(a)
			r.await(func() bool { return a.box.Requests.Outstanding() == 0 })
			reserved, _ = wiring(to).Main().Places()
			assert.Zero(t, reserved)
			status, err := a.Status()
			require.NoError(t, err)
			assert.Equal(t, Status{State: Connected, RecvIdle: true, RequestIdle: true}, status)
			s := a.Snapshot().Requests
			assert.Equal(t, map[string][2]uint64{"SEND": {3, 24}}, moves(s))
			assert.Zero(t, s.Outstanding)
			r.none(to)

			require.NoError(t, a.PostSend(0, hw.Suppress, r.lmr.Segment(8, 8))) // no receive is left
			look(a)
			status, err = a.Status()
			require.NoError(t, err)
			assert.False(t, status.RequestIdle, "it waits for a receive")
			require.NoError(t, b.PostRecv(0, 0, r.lmr.Segment(0, 8)))
			r.await(func() bool { s, _ := a.Status(); return s.RequestIdle })
		})
	}
}

// The looks come at any moment between posts; none is lost, counted twice or retired too early.
func TestLooksAtAnEndpointDontDisturbItsRequests(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(&Attr{MaxRequestDTOs: 16})
	const posts = 4000
	done := make(chan struct{})
	var looks sync.WaitGroup
	for range 2 {
		looks.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_, _ = a.Status()
					runtime.Gosched()
				}
			}
		})
	}
	signaled := 0
	for i := range uint64(posts) {
		flags := hw.Suppress
		if i%7 == 6 {
			flags = 0
			signaled++
		}
		for a.PostRDMAWrite(i, flags, r.lmr.Remote(0, 8), r.lmr.Segment(8, 8)) != nil {
			runtime.Gosched()
		}
		if flags == 0 {
			require.Equal(t, i, r.next(r.dto).Cookie)
		}
	}
	close(done)
	looks.Wait()
	r.await(func() bool { s, _ := a.Status(); return s.RequestIdle })
	assert.Equal(t, map[string][2]uint64{"RDMA_WRITE": {posts, 8 * posts}}, moves(a.Snapshot().Requests))
	r.none(r.dto)
}

// A mark of one life does not keep the next one from asking.
func TestAnEndpointThatWasResetIsAskedAgain(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	require.NoError(t, a.PostSend(0, hw.Suppress, r.lmr.Segment(8, 8))) // no receive: the mark waits
	_, _ = a.Status()
	require.True(t, a.box.Inside().Marking())
	require.NoError(t, a.Disconnect(Abrupt))
	for range 2 {
		r.next(r.conn)
	}
	r.next(r.dto)
	require.NoError(t, a.Reset())
	require.NoError(t, b.Reset())
	r.connect(a, b)
	require.NoError(t, b.PostRecv(0, 0, r.lmr.Segment(0, 8)))
	require.NoError(t, a.PostSend(0, hw.Suppress, r.lmr.Segment(8, 8)))
	r.await(func() bool { s, _ := a.Status(); return s.RequestIdle })
}

// overtaken is a queue pair whose marks complete when the test says so.
type overtaken struct {
	hw.Runner
	id uint64
}

func (o *overtaken) Mark(id uint64) bool { o.id = id; return true }

func TestAMarkThatALaterRequestOvertookRetiresNothing(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(nil)
	qp := &overtaken{Runner: a.box.QP().(hw.Runner)}
	a.box.SetQP(qp)
	write := func(flags hw.Flags) {
		require.NoError(t, a.PostRDMAWrite(0, flags, r.lmr.Remote(0, 8), r.lmr.Segment(8, 8)))
	}
	write(hw.Suppress)
	_, _ = a.Status()
	require.NotZero(t, qp.id)
	write(hw.Suppress)
	write(0)
	r.next(r.dto)
	write(hw.Suppress)
	a.box.Requests.Complete([]hw.WC{{ID: qp.id, Op: hw.OpMark}})
	assert.EqualValues(t, 1, a.box.Requests.Outstanding())
	assert.Equal(t, map[string][2]uint64{"RDMA_WRITE": {3, 24}}, moves(a.Snapshot().Requests))
	a.box.Requests.Complete([]hw.WC{{ID: qp.id, Op: hw.OpMark}})
	assert.Zero(t, a.box.Requests.Outstanding())
}
