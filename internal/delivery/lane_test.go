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
)

// What a lane sends has nothing of what another completer, or another queue, had there.
func TestALaneSendsItsCompletersEvents(t *testing.T) {
	d := newDispatcher(t, Config{Way: Channel})
	q := d.Main()
	var l Lane
	assert.Nil(t, l.Claim(q))
	for _, source := range []any{"a", "b"} {
		require.True(t, q.Reserve(2))
		succeed(q, &l, source, 1, hw.OpSend, 64)
		assert.Equal(t, event.Event{Number: event.DTOCompletion, Op: hw.OpSend, Length: 64, Cookie: 1, Source: source}, <-d.C())
		ev := l.Claim(q)
		require.NotNil(t, ev)
		ev.Op, ev.Length, ev.Cookie = hw.OpRecv, 0, 2
		l.Send()
		assert.Equal(t, event.Event{Number: event.DTOCompletion, Op: hw.OpRecv, Cookie: 2, Source: source}, <-d.C())
		l.Leave()
		assert.Zero(t, q.places.lanes[0].event, "a lane that nobody has keeps nothing alive")
		assert.Nil(t, l.Claim(q))
	}
	require.True(t, q.Reserve(3))
	succeed(q, &l, nil, 3, hw.OpSend, 0)
	q.Put(&event.Event{Number: event.DTOCompletion, Flags: event.Silent, Cookie: 4})
	assert.Nil(t, l.Claim(q), "an event that notifies goes behind silent ones that are held")
	succeed(q, &l, nil, 5, hw.OpSend, 0)
	for _, cookie := range list(3, 4, 5) {
		assert.Equal(t, cookie, (<-d.C()).Cookie)
	}
	assert.NotNil(t, l.Claim(q))
}

const lanes = 8

// More completers than lanes, which come and go: each event is counted once, whoever
// counts it.
func TestEachSendIsCountedByOne(t *testing.T) {
	require.Equal(t, lanes, ofMany.lanes)
	const completers, rounds = lanes + 3, 5
	d := newDispatcher(t, Config{Way: Channel, QLen: completers})
	q := d.Main()
	var ls [completers]Lane
	for round := range uint64(rounds) {
		for i := range ls {
			require.True(t, q.Reserve(1))
			succeed(q, &ls[i], nil, uint64(i), hw.OpSend, 0)
		}
		for i := range ls {
			assert.EqualValues(t, i, (<-d.C()).Cookie)
		}
		has := make(map[*laneCount]bool)
		for i := range ls {
			has[ls[i].n] = true
		}
		assert.Len(t, has, lanes+1, "each has its own, but those that have none")
		sent := (round + 1) * completers
		assert.Equal(t, sent, q.places.sends())
		assert.Equal(t, sent, d.Counters(false).Events)
		assert.Equal(t, sent, d.Counters(false).Taken)
		ls[round].Leave()
		ls[round].Leave() // again
		ls[lanes].Leave() // which may have none
	}
	require.True(t, q.Reserve(1), "one place is in use when the dispatcher is closed")
	require.NoError(t, d.Close())
	assert.False(t, q.channel.finished.Load())
	succeed(q, &ls[lanes-1], nil, 7, hw.OpSend, 0)
	assert.EqualValues(t, 7, (<-d.C()).Cookie)
	_, open := <-d.C()
	assert.False(t, open)
}

// What lanes count is part of what messages and the step that hands on requests look at.
func TestPlacesThatLanesCountAreFree(t *testing.T) {
	d := newDispatcher(t, Config{Way: Channel, QLen: 4})
	q := d.Main()
	var l Lane
	_, limit := q.Places()
	for cookie := range 2 * limit {
		require.True(t, q.Reserve(1))
		succeed(q, &l, nil, cookie, hw.OpSend, 0)
		<-d.C()
		assert.False(t, q.Full())
	}
	require.True(t, q.Reserve(1))
	reserved, _ := q.Places()
	assert.EqualValues(t, 1, reserved)
	require.True(t, q.Reserve(int(limit)-1))
	assert.True(t, q.Full())
	reserved, _ = q.Places()
	assert.Equal(t, limit, reserved)
	q.Release(int(limit))
}

func TestALaneIsOfOneQueue(t *testing.T) {
	d := newDispatcher(t, Config{Way: Channel})
	other := newDispatcher(t, Config{Way: Channel})
	var l Lane
	for range 3 * lanes { // each time it leaves the count that it had
		for _, d := range []*Dispatcher{d, other} {
			require.True(t, d.Main().Reserve(1))
			succeed(d.Main(), &l, nil, 1, hw.OpSend, 0)
			<-d.C()
			assert.Zero(t, d.Main().places.done.Load(), "it finds a count")
		}
	}
	l.Leave()
	for _, d := range []*Dispatcher{d, other} {
		require.NoError(t, d.Close())
		_, open := <-d.C()
		assert.False(t, open)
	}
}

// The completer of the last event and the closer look at each other's words. If both
// missed each other, nobody would close the channel.
func TestACloserAndACompleterWithALaneDoNotMissEachOther(t *testing.T) {
	const completers = 2
	for round := range int(10 * attempts()) {
		d := makeDispatcher(Config{Way: Channel})
		q := d.Main()
		var (
			ls    [completers]Lane
			ready atomic.Int32
			wg    sync.WaitGroup
		)
		for i := range ls {
			require.True(t, q.Reserve(2))
			succeed(q, &ls[i], nil, 0, hw.OpSend, 0)
			wg.Go(func() {
				for ready.Add(1); ready.Load() <= completers; {
					runtime.Gosched()
				}
				succeed(q, &ls[i], nil, 0, hw.OpSend, 0)
			})
		}
		for ready.Load() < completers {
			runtime.Gosched()
		}
		ready.Add(1)
		for range round % 64 {
			ready.Load()
		}
		q.shut()
		wg.Wait()
		for range 2 * completers {
			<-d.C()
		}
		select {
		case _, open := <-d.C():
			require.False(t, open)
		default:
			require.Fail(t, "nobody has closed the channel", round)
		}
		d.Abort()
	}
}

// spinUntil waits for another goroutine, which is about to be there.
func spinUntil(cond func() bool) {
	for n := 1; !cond(); n++ {
		if n%1000 == 0 {
			runtime.Gosched()
		}
	}
}

// The same for the few instructions that matter: either the completer sees that the
// queue is closed, or the closer sees that the event was sent. The closer goes ahead a
// moment after the send has begun, each round another one.
func TestEitherTheCloserOrTheCompleterSeesThatAllIsSent(t *testing.T) {
	d := newDispatcher(t, Config{Way: Channel})
	q := d.Main()
	var (
		lane        Lane
		_           = lane.enter(q, nil)
		n           = lane.n
		round, past atomic.Uint64
		closed      bool // the completer has seen it
		wg          sync.WaitGroup
	)
	rounds := 50 * attempts()
	end := time.Now().Add(2 * time.Second)
	wg.Go(func() {
		for r := uint64(1); ; r++ {
			spinUntil(func() bool { return round.Load() >= r })
			if round.Load() > rounds {
				return
			}
			at := n.begin()
			q.channel.ch <- event.Event{}
			n.end(at)
			closed = q.closed()
			past.Store(r)
		}
	})
	missed := 0
	for r := uint64(1); r <= rounds && time.Now().Before(end); r++ {
		q.places.reserved.Store(r)
		round.Store(r)
		spinUntil(func() bool { return n.begun.Load() == r })
		for range r % 256 {
			n.sent.Load() // which makes the completer's store take long
		}
		q.places.close()
		idle := q.places.idle()
		spinUntil(func() bool { return past.Load() == r })
		if !idle && !closed {
			missed++
		}
		<-d.C()
	}
	round.Store(rounds + 1)
	wg.Wait()
	assert.Zero(t, missed)
}
