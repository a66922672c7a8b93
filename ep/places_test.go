package ep

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/owner"
)

// used counts the places of a dispatcher that are taken: by outstanding operations,
// and by events that the program has not taken.
func used(d *evd.Dispatcher, qlen int) int {
	n := 0
	for wiring(d).Main().Reserve(1) {
		n++
	}
	wiring(d).Main().Release(n)
	return qlen - n
}

// No post finds a dispatcher full if it has two places for each connection and one
// for each receive and request that may be outstanding.
func TestAConnectionTakesTwoPlacesAndEachPostOne(t *testing.T) {
	const qlen = 32
	r := newRig(t)
	d := r.dispatcher(evd.ModeQueue, qlen)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	a, b := r.endpointOf(Config{PZ: r.pz, Recv: d, Request: d, Conn: d}), r.endpoint(nil)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	is := func(places int, when string) {
		t.Helper()
		assert.Equal(t, places, used(d, qlen), when)
	}
	post := func(err error) { t.Helper(); require.NoError(t, err) }

	is(0, "an endpoint takes none")
	for range 3 {
		post(a.PostRecv(1, hw.Default, r.lmr.Segment(0, 8)))
		post(b.PostRecv(1, hw.Default, r.lmr.Segment(8, 8)))
	}
	is(3, "a receive takes one")
	post(a.Connect(ConnectConfig{Qual: r.psp.Qual()}))
	is(5, "Connect takes two: for its outcome, and for the end")
	post(RequestOf(r.next(r.cr)).Accept(b, nil))
	r.next(r.conn)
	r.await(func() bool { return a.State() == Connected })
	is(5, "an event keeps the place")
	require.Equal(t, event.Established, r.next(d).Number)
	is(4, "until it is taken")

	post(a.PostSend(2, hw.Default, r.lmr.Segment(0, 8)))
	is(5, "a request takes one")
	require.EqualValues(t, 2, r.next(d).Cookie)
	is(4, "until its event is taken")
	post(a.PostSend(3, hw.Suppress, r.lmr.Segment(0, 8)))
	is(5, "a suppressed one, too")
	post(a.PostSend(4, hw.Default, r.lmr.Segment(0, 8)))
	require.EqualValues(t, 4, r.next(d).Cookie)
	is(4, "until a request behind it has completed")

	post(b.Disconnect(Abrupt))
	r.await(func() bool { return a.State() == Disconnected })
	is(4, "its end and the receives")
	for range 3 {
		require.Equal(t, hw.StatusFlushed, r.next(d).Status)
	}
	is(1, "its end")
	require.Equal(t, event.Disconnected, r.next(d).Number)
	is(0, "nothing is left")
}

func TestARefusedConnectionGivesItsSecondPlaceBack(t *testing.T) {
	const qlen = 2
	r := newRig(t)
	d := r.dispatcher(evd.ModeQueue, qlen)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	a := r.endpointOf(Config{PZ: r.pz, Conn: d})
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	require.NoError(t, a.Connect(ConnectConfig{Qual: r.psp.Qual()}))
	require.Equal(t, 2, used(d, qlen))
	require.NoError(t, RequestOf(r.next(r.cr)).Reject(nil))
	r.await(func() bool { return used(d, qlen) == 1 })
	require.Equal(t, event.PeerRejected, r.next(d).Number)
	assert.Zero(t, used(d, qlen))

	// With one place there is no room for the event of the end.
	require.NoError(t, d.Resize(1))
	require.NoError(t, a.Reset())
	err := a.Connect(ConnectConfig{Qual: r.psp.Qual()})
	require.ErrorIs(t, err, hw.ErrInsufficientResources)
	assert.Zero(t, used(d, 1))
}

// Posters that share a dispatcher leave each other room: each has no more requests and events
// than its share. So none is refused.
func TestPostersThatKeepToTheirSharesAreNotRefused(t *testing.T) {
	const qlen = 128
	for _, posters := range []int{2, 3} {
		r := newRig(t)
		d := r.dispatcher(evd.ModeQueue, qlen)
		rounds := 200 * qlen
		if testing.Short() || owner.Enabled {
			rounds = 20 * qlen
		}
		var all sync.WaitGroup
		var taken [3]atomic.Int64
		var refused atomic.Int64
		for i := range posters {
			e, peer := r.endpointOf(Config{PZ: r.pz, Recv: r.dto, Request: d, Conn: r.conn}), r.endpoint(nil)
			r.connect(e, peer)
			all.Go(func() {
				for n := range rounds {
					for n-int(taken[i].Load()) >= qlen/posters {
						runtime.Gosched()
					}
					if e.PostRDMAWrite(uint64(i), 0, r.lmr.Remote(8, 8), r.lmr.Segment(0, 8)) != nil {
						refused.Add(1)
						taken[i].Add(1)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		var buf [32]event.Event
		for open := true; open; {
			select {
			case <-done:
				open = false
			default:
			}
			n, err := d.Dequeue(buf[:])
			require.NoError(t, err)
			for _, ev := range buf[:n] {
				taken[ev.Cookie].Add(1)
			}
			if n == 0 {
				runtime.Gosched()
			}
			open = open || n > 0
		}
		assert.Zero(t, refused.Load())
	}
}
