package delivery

import (
	"context"
	"testing"
	"testing/synctest"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// over makes an over-committed dispatcher, and the dispatcher that its errors go
// to.
func over(t testing.TB, cfg Config) (d, async *Dispatcher) {
	t.Helper()
	async = newDispatcher(t, Config{Streams: event.StreamAsync})
	cfg.Streams = event.DefaultStreams | event.StreamSoftware
	d = newDispatcher(t, cfg)
	d.Overcommit(async)
	return d, async
}

func overflows(t testing.TB, async *Dispatcher) []event.Event {
	t.Helper()
	buf := make([]event.Event, 8)
	n, err := async.Dequeue(buf)
	require.NoError(t, err)
	return buf[:n]
}

func TestAnOvercommittedDispatcherLosesEventsThatFindNoRoom(t *testing.T) {
	d, async := over(t, Config{QLen: 3})
	for _, q := range []*Queue{d.Main(), d.For(77)} {
		require.True(t, q.Reserve(8), "no post is refused")
		for c := range uint64(3) {
			q.Put(dto(c))
		}
		assert.Empty(t, overflows(t, async), "it is full, and nothing is lost")
		q.Put(silenced(dto(3)))
		succeed(q, new(Lane), t, 4, hw.OpRecv, 0)
		q.PutAll([]event.Event{*dto(5)})
		q.Flush()
		assert.Equal(t, []event.Event{{Number: 0x08001, Source: d.public, Data: event.EVDOverflow}}, overflows(t, async),
			"one event is pending at a time")
		assert.Equal(t, list(0, 1, 2), drain(t, d))
		q.Put(dto(6))
		q.Release(1)
		q.Flush()
		assert.True(t, q.places.idle())
		assert.Empty(t, overflows(t, async))
		assert.Equal(t, list(6), drain(t, d), "it goes on")
	}
}

func TestAWaiterIsWokenThoughAnEventOverflows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, async := over(t, Config{QLen: 2})
		require.NoError(t, d.Feeds().Attach(feedOf(hw.Unsignalled)))
		woken := false
		go func() {
			ev, nmore, err := waitOne(d, context.Background(), 1)
			assert.NoError(t, err)
			assert.EqualValues(t, 1, ev.Cookie)
			assert.Equal(t, 1, nmore)
			woken = true
		}()
		synctest.Wait()
		putSilent(t, d.Main(), 1, 2)
		synctest.Wait()
		assert.False(t, woken)
		putSilent(t, d.Main(), 3)
		synctest.Wait()
		assert.True(t, woken)
		assert.Len(t, overflows(t, async), 1)

		drain(t, d)
		woken = false
		go func() {
			_, _, err := waitOne(d, context.Background(), 1)
			assert.NoError(t, err)
			woken = true
		}()
		synctest.Wait()
		put(t, d.Main(), 4)
		synctest.Wait()
		assert.True(t, woken, "a loud event wakes as ever")
	})
}

func TestAFullQueueRefusesSoftwareEventsWithoutAnOverflow(t *testing.T) {
	d, async := over(t, Config{QLen: 2})
	require.NoError(t, d.PostSoftware(1))
	require.NoError(t, d.PostSoftware(2))
	isError(t, d.PostSoftware(3), hw.QueueFull, hw.NoSubtype)
	assert.Empty(t, overflows(t, async))
	put(t, d.Main(), 4)
	assert.Len(t, overflows(t, async), 1)
	assert.Len(t, drain(t, d), 2)
}

func TestRoutesOfAnOvercommittedDispatcherRefuseWhenFull(t *testing.T) {
	d, async := over(t, Config{QLen: 1})
	r, err := d.Route(1, 1, 1)
	require.NoError(t, err)
	assert.Same(t, d.Main(), d.For(2))
	require.True(t, d.For(3).Reserve(1+ofMany.slack()))
	assert.False(t, d.For(3).Reserve(1))
	d.For(3).Release(1 + ofMany.slack())
	r.Close()
	assert.Same(t, d.Main(), d.For(3), "the route is gone")
	assert.Empty(t, overflows(t, async))
}

func TestAnOverflowNeedsNoDispatcherForErrors(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 1})
	d.Overcommit(nil)
	put(t, d.Main(), 1, 2) // the lost event is reported to no dispatcher
	d, async := over(t, Config{})
	q := d.Main()
	require.True(t, q.Reserve(1))
	isError(t, d.Close(), hw.InvalidState, hw.StateEVDInUse)
	d.Abort()
	assert.False(t, q.Reserve(1))
	q.Put(dto(3))
	assert.Empty(t, overflows(t, async), "what comes after Abort is dropped, and no overflow")
}
