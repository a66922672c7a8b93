package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

func TestASharedReceiveCompletesWhereItWasTaken(t *testing.T) {
	r := newRig(t)
	q := r.srq(0, 0)
	x, y := r.dispatcher(evd.ModeQueue, 32), r.dispatcher(evd.ModeQueue, 32)
	t.Cleanup(func() {
		require.NoError(t, r.adapter.Close())
		require.NoError(t, x.Close())
		require.NoError(t, y.Close())
	})
	toA, a := r.feeder(q, x)
	toB, b := r.feeder(q, y)
	for i := range 4 {
		require.NoError(t, q.PostRecv(uint64(100+i), r.lmr.Segment(64*i, 64)))
	}
	for i, at := range []struct {
		from, by *Endpoint
		d        *evd.Dispatcher
	}{{toA, a, x}, {toB, b, y}, {toB, b, y}, {toA, a, x}} {
		msg := r.lmr.Bytes()[4096 : 4096+16]
		msg[0] = byte(i + 1)
		require.NoError(t, at.from.PostSend(7, hw.Suppress, r.lmr.Segment(4096, 16)))
		ev := r.next(at.d)
		assert.Equal(t, event.DTOCompletion, ev.Number)
		assert.Equal(t, hw.OpRecv, ev.Op)
		assert.Equal(t, hw.StatusSuccess, ev.Status)
		assert.EqualValues(t, 100+i, ev.Cookie)
		assert.EqualValues(t, 16, ev.Length)
		assert.Same(t, at.by, Of(ev))
		assert.EqualValues(t, i+1, r.lmr.Bytes()[64*i], "the data is in the buffer that was posted %d.", i)
	}
	r.none(x)
	r.none(y)
	available, outstanding := r.counts(q)
	assert.Zero(t, available)
	assert.Zero(t, outstanding)
}

func TestSharedReceivesRetireInAnyOrder(t *testing.T) {
	r := newRig(t)
	q := r.srq(4, 0)
	e := r.taker(q, r.dto)
	post := func(cookie uint64) uint64 {
		wrs, err := q.admit(cookie, nil)
		require.NoError(t, err)
		return wrs[0].ID
	}
	var ids [5]uint64
	for i := range 4 {
		ids[i] = post(uint64(i))
	}
	done := func(i int, status hw.Status) {
		e.box.Recvs.Complete([]hw.WC{{ID: ids[i], Status: status}})
		ev := r.next(r.dto)
		assert.EqualValues(t, i, ev.Cookie)
		assert.Equal(t, status, ev.Status)
		assert.Same(t, e, Of(ev))
	}
	assert.ErrorIs(t, q.Resize(3), &hw.Error{Type: hw.InvalidState, Sub: 85}, "the device has none of them any more")
	done(2, hw.StatusSuccess)
	done(0, hw.StatusFlushed)
	ids[4] = post(4) // in a slot that another receive has freed
	done(3, hw.StatusLocalLength)
	done(4, hw.StatusSuccess)
	done(1, hw.StatusSuccess)
	_, outstanding := r.counts(q)
	assert.Zero(t, outstanding)
}

func TestReceivesOfASharedQueueOutliveAnEndpoint(t *testing.T) {
	r := newRig(t)
	q := r.srq(0, 0)
	_, a := r.feeder(q, r.dto)
	toB, b := r.feeder(q, r.dto)
	for i := range 3 {
		require.NoError(t, q.PostRecv(uint64(i), r.lmr.Segment(0, 8)))
	}
	assert.ErrorIs(t, q.Close(), &hw.Error{Type: hw.InvalidState, Sub: 87})
	require.NoError(t, a.Close())
	available, outstanding := r.counts(q)
	assert.Equal(t, 3, available)
	assert.Equal(t, 3, outstanding)
	r.none(r.dto)
	require.NoError(t, toB.PostSend(9, hw.Suppress, r.lmr.Segment(64, 8)))
	ev := r.next(r.dto)
	assert.EqualValues(t, 0, ev.Cookie)
	assert.Same(t, b, Of(ev))
	require.NoError(t, b.Close())
	require.NoError(t, q.Close(), "what is left is dropped")
	r.none(r.dto)
}

func TestASharedReceiveHasRoomWhereverItMayComplete(t *testing.T) {
	r := newRig(t)
	q := r.srq(8, 0)
	x, y, z := r.dispatcher(evd.ModeQueue, 3), r.dispatcher(evd.ModeQueue, 2), r.dispatcher(evd.ModeQueue, 1)
	t.Cleanup(func() {
		require.NoError(t, r.adapter.Close())
		for _, d := range []*evd.Dispatcher{x, y, z} {
			require.NoError(t, d.Close())
		}
	})
	free := func(d *evd.Dispatcher) (n int) {
		for wiring(d).Main().Reserve(1) {
			n++
		}
		wiring(d).Main().Release(n)
		return n
	}
	toA, a := r.feeder(q, x)
	require.NoError(t, q.PostRecv(1))
	assert.Equal(t, 2, free(x))
	_, b := r.feeder(q, y)
	assert.Equal(t, 1, free(y), "a new dispatcher has room for what was posted before")
	second := r.taker(q, y)
	assert.Equal(t, 1, free(y), "and only once")

	require.NoError(t, q.PostRecv(2))
	assert.ErrorIs(t, q.PostRecv(3), &hw.Error{Type: hw.InsufficientResources, Sub: 5})
	assert.Equal(t, 1, free(x), "a refused post gives back what it has reserved")
	available, outstanding := r.counts(q)
	assert.Equal(t, 2, available)
	assert.Equal(t, 2, outstanding)

	_, err := r.adapter.NewEndpoint(Config{PZ: r.pz, Recv: z, SRQ: q, Attr: &Attr{}})
	assert.ErrorIs(t, err, &hw.Error{Type: hw.InsufficientResources, Sub: 5})
	assert.Equal(t, 1, free(z), "a refused endpoint gives back what it has reserved")

	require.NoError(t, toA.PostSend(1, hw.Suppress))
	assert.Same(t, a, Of(r.next(x)))
	assert.Equal(t, 2, free(x))
	assert.Equal(t, 1, free(y), "the completion gives the room elsewhere back")

	require.NoError(t, b.Close())
	assert.Equal(t, 1, free(y), "another endpoint still completes there")
	require.NoError(t, second.Close())
	assert.Equal(t, 2, free(y))
	require.NoError(t, q.PostRecv(4))
	require.NoError(t, q.PostRecv(5))
	assert.Zero(t, free(x))
	require.NoError(t, a.Close())
	assert.Equal(t, 3, free(x))
}

func TestASharedReceiveFollowsTheRouteOfItsCookie(t *testing.T) {
	r := newRig(t)
	q := r.srq(0, 0)
	d := r.dispatcher(evd.ModeQueue, 8)
	route, err := d.Route(0xF0, 0x10, 1)
	require.NoError(t, err)
	from, e := r.feeder(q, d)
	require.NoError(t, q.PostRecv(0x11))
	require.NoError(t, q.PostRecv(0x21))
	require.NoError(t, from.PostSend(0, hw.Suppress))
	require.NoError(t, from.PostSend(0, hw.Suppress))
	ev := <-route.C()
	assert.EqualValues(t, 0x11, ev.Cookie)
	assert.EqualValues(t, 0x21, r.next(d).Cookie)
	require.NoError(t, e.Close())
	require.NoError(t, d.Close())
}

func TestCompletionsOfAnEndpointWithoutADispatcherAreDropped(t *testing.T) {
	r := newRig(t)
	q := r.srq(1, 0)
	from, _ := r.feeder(q, nil)
	for range 3 {
		require.NoError(t, q.PostRecv(1))
		require.NoError(t, from.PostSend(2, 0))
		assert.EqualValues(t, 2, r.next(r.dto).Cookie)
	}
}
