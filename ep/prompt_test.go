package ep

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/token"
	"godat/mem"
)

// witness is a meddler that counts the receives that were posted to it.
type witness struct {
	*meddler
	received atomic.Int32
}

func (w *witness) PostRecv(wrs []hw.RecvWR) (int, error) {
	n, err := w.meddler.PostRecv(wrs)
	w.received.Add(int32(n))
	return n, err
}

// Where a send does not wait for its receive, a program that has posted a receive
// may tell its peer to send at once, even if another call on the endpoint is under
// way.
func TestAReceiveIsTheDevicesWhenItsPostReturns(t *testing.T) {
	for name, c := range map[string]struct {
		post   func(*Endpoint, mem.Segment) error
		n      int32
		before func(*rig, *Endpoint, *evd.Dispatcher, *meddler)
		strict bool // the device can wait, but need not
	}{
		"one":            {post: func(e *Endpoint, s mem.Segment) error { return e.PostRecv(2, 0, s) }, n: 1},
		"one, if strict": {post: func(e *Endpoint, s mem.Segment) error { return e.PostRecv(2, 0, s) }, n: 1, strict: true},
		"a batch": {post: func(e *Endpoint, s mem.Segment) error {
			_, err := e.PostRecvBatch([]DTO{{Cookie: 2, Segments: []mem.Segment{s}}, {Cookie: 3, Segments: []mem.Segment{s}}})
			return err
		}, n: 2},
		"one, after more than 2^23 that no other call was in the way of": {
			post: func(e *Endpoint, s mem.Segment) error { return e.PostRecv(2, 0, s) }, n: 1, before: receiveManyTheShortWay,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.adapter.attr.NotReadyWait, r.adapter.attr.Strict = c.strict, c.strict
			a, all, m := meddled(r)
			if c.before != nil {
				c.before(r, a, all, m)
			}
			w := &witness{meddler: m}
			a.box.SetQP(w)
			given := make(chan int32, 1)
			m.meddle = func() {
				go func() {
					assert.NoError(t, c.post(a, r.lmr.Segment(0, 8)))
					given <- w.received.Load()
				}()
				r.await(func() bool { return a.box.Token.Load()&token.Kicked != 0 })
				r.await(func() bool { // without its wait the post would return here
					return a.box.Inside().Sleepers() == 1 || len(given) != 0
				})
			}
			r.write(a, 1)
			assert.Equal(t, c.n, <-given)
			assert.Equal(t, uint64(1), r.next(all).Cookie)
			require.NoError(t, a.Disconnect(Abrupt))
			for i := range uint64(c.n) {
				assert.Equal(t, 2+i, r.next(all).Cookie)
			}
			assert.Equal(t, event.Disconnected, r.next(all).Number)
			r.finish(a, all)
		})
	}
}

// receiveManyTheShortWay gives the endpoint the tickets of more than 2^23 receives,
// all posted the short way. It posts two for each 2^20 and skips the rest.
func receiveManyTheShortWay(r *rig, e *Endpoint, all *evd.Dispatcher, m *meddler) {
	e.box.SetQP(m.QP) // which has a hw.Runner
	q := &e.box.Recvs
	for first := uint32(1<<20 - 1); first < 1<<23+3<<20; first += 1 << 20 {
		e.box.Inside().Age(q, first)
		for range 2 {
			require.NoError(r.t, e.PostRecv(1, 0, r.lmr.Segment(0, 8)))
			require.NoError(r.t, m.peer.PostSend(1, hw.Suppress, r.lmr.Segment(8, 8)))
			require.NoError(r.t, r.next(all).Err())
		}
	}
}

// The end of the connection also ends the wait.
func TestAPostOfAReceiveDoesNotOutlastItsConnection(t *testing.T) {
	r := newRig(t)
	r.adapter.attr.NotReadyWait = false
	a, all, m := meddled(r)
	posted := make(chan error, 1)
	var s *slow
	m.meddle = func() {
		ticket, _, mine := a.box.Inside().Claim(&a.box.Recvs) // its slot is filled after the connection has ended
		require.False(t, mine)
		s = &slow{a, &a.box.Recvs, ticket}
		go func() { posted <- a.PostRecv(3, 0, r.lmr.Segment(0, 8)) }()
		r.await(func() bool { return a.box.Inside().Sleepers() == 1 })
	}
	r.write(a, 1)
	assert.Equal(t, uint64(1), r.next(all).Cookie)
	require.NoError(t, m.peer.Disconnect(Abrupt))
	require.NoError(t, <-posted)
	s.end(r)
	assert.Equal(t, uint64(2), r.next(all).Cookie)
	assert.Equal(t, uint64(3), r.next(all).Cookie)
	assert.Equal(t, event.Disconnected, r.next(all).Number)
	r.finish(a, all)
}
