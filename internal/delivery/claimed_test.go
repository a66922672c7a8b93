package delivery

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/yield"
)

// The publication of an event may become visible after its producer has looked for
// sleepers (see package release). Three tests let a producer claim a place, look, and
// publish much later; the last one puts events as endpoints do.

// claim is a PutSuccess whose event becomes visible when the returned function is
// called. The producer has found nothing to do.
func claim(t *testing.T, q *Queue) (publish func()) {
	require.True(t, q.Reserve(1))
	r := &q.consumer.ring.newest.Load().r
	cell, at := r.Claim()
	cell.Value = *dto(7)
	return func() {
		for range 50 {
			runtime.Gosched()
		}
		cell.Publish(at)
	}
}

func TestAWaiterCountsClaimedEventsBeforeItSleeps(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 2})
	d.main.consumer.notice.set() // the producer sees that an event has notified
	publish := claim(t, d.Main())
	var publishing sync.WaitGroup
	publishing.Go(publish)
	defer publishing.Wait()
	c := d.Consumer()
	require.True(t, c.turn.acquire(turnWaiter))
	defer c.release()
	assert.Equal(t, 1, c.recount(), "the waiter has cleared the notice, and no producer wakes it")
}

func TestAWaiterThatAnnouncesItsSleepAwaitsClaimedEvents(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 2})
	c := d.Consumer()
	require.True(t, c.turn.acquire(turnWaiter))
	defer c.release()
	require.Zero(t, c.recount())
	put(t, d.Main(), 1)
	publish := claim(t, d.Main()) // the producer sees the notice, and no sleeper
	var publishing sync.WaitGroup
	publishing.Go(publish)
	defer publishing.Wait()
	assert.True(t, c.park(2), "no producer wakes it")
	c.unpark()
}

func TestADequeueWithACNOAwaitsClaimedEvents(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 2})
	triggered := 0
	d.Consumer().SetNotifier(func() { triggered++ })
	publish := claim(t, d.Main())
	put(t, d.Main(), 1)
	require.Equal(t, 1, triggered)
	var publishing sync.WaitGroup
	publishing.Go(publish)
	defer publishing.Wait()
	n, err := d.Dequeue(make([]event.Event, 4))
	require.NoError(t, err)
	assert.Equal(t, 2, n, "no producer triggers the CNO again")
}

func TestAWaitWithACNOCountsClaimedEvents(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 3})
	triggered := 0
	d.Consumer().SetNotifier(func() { triggered++ })
	put(t, d.Main(), 1)
	publish := claim(t, d.Main())
	put(t, d.Main(), 2)
	require.Equal(t, 2, triggered)
	var publishing sync.WaitGroup
	publishing.Go(publish)
	defer publishing.Wait()
	_, nmore, err := waitOne(d, background, 1)
	require.NoError(t, err)
	assert.Equal(t, 2, nmore, "no producer triggers the CNO again")
}

// succeed puts the event of a success as an endpoint does.
func succeed(q *Queue, lane *Lane, source any, cookie uint64, op hw.Op, length uint32) {
	r := q.Ring()
	if r == nil {
		q.PutSuccess(lane, source, cookie, op, length)
		return
	}
	cell, at := r.Claim()
	Success(&cell.Value, source, cookie, op, length)
	cell.Publish(at)
	q.Note()
	q.Flush()
}

// complete reserves a place for an event, and puts it.
func complete(q *Queue, cookie uint64) {
	for !q.Reserve(1) {
		runtime.Gosched()
	}
	succeed(q, new(Lane), nil, cookie, hw.OpSend, 0)
}

// completeAll is complete of n events at once.
func completeAll(q *Queue, n int) {
	for !q.Reserve(n) {
		runtime.Gosched()
	}
	r := q.Ring()
	first := r.ClaimAll(n)
	for i := range n {
		Success(&r.At(first+uint64(i)).Value, nil, uint64(i), hw.OpSend, 0)
	}
	r.At(first).PublishAll(first, n)
	q.Note()
	q.Flush()
}

// meet is yield.Meet of calls that spin where they would sleep.
func meet(t *testing.T, first, second func()) {
	t.Helper()
	times := 30_000
	if testing.Short() {
		times = 5000
	}
	require.True(t, yield.Meet(times, 10*time.Second, first, second), "a wake-up was lost")
}

func TestNoCompletionIsLostAtTheEdgeOfSleep(t *testing.T) {
	each := func(q *Queue, n int) {
		for range n {
			complete(q, 1)
		}
	}
	for name, c := range map[string]struct {
		threshold int
		produce   func(q *Queue, n int)
	}{"one": {1, each}, "two": {2, each}, "two at once": {2, completeAll}} {
		threshold := c.threshold
		t.Run(name, func(t *testing.T) {
			d := newDispatcher(t, Config{QLen: 4})
			produce := func() { c.produce(d.Main(), threshold) }
			c := d.Consumer()
			buf := make([]event.Event, 4)
			wait := func() {
				assert.True(t, c.turn.acquire(turnWaiter))
				for c.ready(threshold) < threshold && c.recount() < threshold {
					if c.park(threshold) {
						c.unpark()
						continue
					}
					yield.Until(func() bool { return len(c.token) != 0 })
					<-c.token
				}
				c.take(buf)
				c.release()
			}
			meet(t, produce, wait)
		})
	}
}

// A waiter that leaves frees the turn, and then looks whether an iterator sleeps for
// it. The iterator says that it is about to sleep, and then looks at the turn.
func TestNoIteratorIsLeftAsleepWhenAWaiterLeaves(t *testing.T) {
	c := newDispatcher(t, Config{}).Consumer()
	var waiting, passed atomic.Bool
	leave := func() {
		assert.True(t, c.turn.acquire(turnWaiter))
		waiting.Store(true)
		c.releaseTurn()
		yield.Until(passed.Load)
		passed.Store(false)
	}
	sleep := func() {
		yield.Until(waiting.Load)
		waiting.Store(false)
		c.turn.queued.Add(1)
		if c.turn.awaited() {
			yield.Until(func() bool { return len(c.turn.next) != 0 })
		}
		c.turn.queued.Add(-1)
		select {
		case <-c.turn.next:
		default:
		}
		passed.Store(true)
	}
	meet(t, leave, sleep)
}
