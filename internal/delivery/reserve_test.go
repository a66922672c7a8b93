package delivery

import (
	"runtime"
	"testing"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// Each mode grants as many places as it was asked for; a channel grants a few more,
// to make up for events that count twice.
func TestReserveGrantsTheLengthAndNoMore(t *testing.T) {
	for _, mode := range allModes {
		d := newDispatcher(t, Config{QLen: 6, Way: mode})
		n := 6
		if mode == Channel {
			n += ofMany.slack()
		}
		q := d.Main()
		assert.True(t, q.Reserve(0))
		assert.False(t, q.Reserve(n+1), mode)
		require.True(t, q.Reserve(n-2), mode)
		assert.False(t, q.Reserve(3), "all or none")
		require.True(t, q.Reserve(2), mode)
		assert.False(t, q.Reserve(1), mode)
		q.Release(1)
		require.True(t, q.Reserve(1), mode)
		assert.False(t, q.Reserve(1), mode)
		q.Release(n)
		assert.True(t, q.Reserve(n), mode)
		q.Release(n)
	}
}

func TestPlaceIsFreeWhenItsEventWasTaken(t *testing.T) {
	fill := func(d *Dispatcher) (n int) {
		for d.Main().Reserve(1) {
			n++
		}
		for range n {
			d.Main().Put(dto(uint64(n)))
		}
		d.Main().Flush()
		return n
	}
	for name, tc := range map[string]struct {
		mode *Way
		take func(d *Dispatcher) // takes one event
	}{
		"a dequeued one":        {Ring, func(d *Dispatcher) { _, _ = d.Dequeue(make([]event.Event, 1)) }},
		"one that Wait returns": {Ring, func(d *Dispatcher) { _, _, _ = waitOne(d, background, 1) }},
		"a received one":        {Channel, func(d *Dispatcher) { <-d.C() }},
		"an iterated one": {Ring, func(d *Dispatcher) {
			for range d.Events(background) {
				break
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDispatcher(t, Config{Way: tc.mode})
			n := fill(d)
			for range 3 * n {
				require.False(t, d.Main().Reserve(1))
				tc.take(d)
				require.True(t, d.Main().Reserve(1))
				require.False(t, d.Main().Reserve(1))
				d.Main().Put(dto(0))
				d.Main().Flush()
			}
		})
	}
	t.Run("those of a released batch", func(t *testing.T) {
		d := newDispatcher(t, Config{Way: Batches, QLen: 8, BatchMax: 3})
		require.Equal(t, 8, fill(d))
		b := <-d.Batches()
		require.Len(t, b.Events(), 3)
		require.False(t, d.Main().Reserve(1), "received is not released")
		b.Release()
		require.True(t, d.Main().Reserve(3))
		require.False(t, d.Main().Reserve(1))
	})
}

// Events that come to a channel or a batch can be received after Close.
func TestCloseIsRefusedWhileAnEventIsStillToCome(t *testing.T) {
	for _, mode := range allModes {
		d := newDispatcher(t, Config{Way: mode})
		q := d.Main()
		require.True(t, q.Reserve(2))
		if mode == Ring || mode == Callback {
			isError(t, d.Close(), hw.InvalidState, hw.StateEVDInUse, mode)
			q.Put(dto(1))
			isError(t, d.Close(), hw.InvalidState, hw.StateEVDInUse, mode)
			require.True(t, q.Reserve(1), "it is open")
			q.Release(2)
		}
		require.NoError(t, d.Close(), mode)
		require.False(t, q.Reserve(1))
		if mode == Channel || mode == Batches {
			q.Release(2)
		}
	}
}

func TestPutWithoutAReservationIsNoticedUnderRace(t *testing.T) {
	if !assertions {
		return // the check costs too much for other builds
	}
	for _, mode := range []*Way{Ring, Channel, Callback} {
		d := newDispatcher(t, Config{Way: mode})
		d.Main().Reserve(1)
		d.Main().Put(dto(1))
		assert.Panics(t, func() { d.Main().Put(dto(2)) }, mode)
		assert.Panics(t, func() { d.Main().Release(1) })
	}
}

func TestAProgramThatFollowsTheSizingRuleIsNeverRefused(t *testing.T) {
	// At most 8 operations are outstanding, in a channel made for 8, while events
	// are sent and received all the time.
	d := newDispatcher(t, Config{QLen: 8, Way: Channel})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range d.C() {
		}
	}()
	for range 8 {
		require.True(t, d.Main().Reserve(1))
	}
	for i := range 20000 {
		d.Main().Put(dto(uint64(i)))
		for len(d.C()) >= 8 {
			runtime.Gosched()
		}
		require.True(t, d.Main().Reserve(1), i)
	}
	d.Main().Release(8)
	require.NoError(t, d.Close())
	<-done
}
