package evd

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
)

func requireCounters(t *testing.T, d *Dispatcher, want Counters) {
	t.Helper()
	c, err := d.Counters()
	require.NoError(t, err)
	require.Equal(t, want, c)
}

// Of four reserved places two get events, and two are given back. The consumer takes
// the first event; the callback takes both.
func TestADispatcherOfAnyModeCounts(t *testing.T) {
	called := make(chan struct{})
	for mode, take := range map[Mode]func(*Dispatcher){
		ModeQueue: func(d *Dispatcher) {
			n, err := d.Dequeue(make([]event.Event, 1))
			require.NoError(t, err)
			require.Equal(t, 1, n)
		},
		ModeChannel:  func(d *Dispatcher) { <-d.C() },
		ModeBatch:    func(d *Dispatcher) { (<-d.Batches()).Release() },
		ModeCallback: func(*Dispatcher) { <-called },
	} {
		t.Run(mode.String(), func(t *testing.T) {
			cfg := Config{Mode: mode, BatchMax: 1, Streams: event.DefaultStreams | event.StreamAsync}
			if mode == ModeCallback {
				cfg.Callback = func([]event.Event) { called <- struct{}{} }
			}
			d := newDispatcher(t, cfg)
			q := d.inner.Main()
			require.True(t, q.Reserve(4))
			requireCounters(t, d, Counters{})
			q.Put(dto(1))
			q.Release(2)
			q.Flush()
			if mode != ModeCallback {
				requireCounters(t, d, Counters{Events: 1})
			}
			take(d)
			q.Put(dto(2))
			q.Flush()
			taken := uint64(1)
			if mode == ModeCallback {
				take(d)
				taken = 2
			}
			eventually(t, "the counts", func() bool {
				c, err := d.Counters()
				return err == nil && c == Counters{Events: 2, Taken: taken}
			})
			c, err := d.ResetCounters()
			require.NoError(t, err)
			assert.Equal(t, Counters{Events: 2, Taken: taken}, c)
			requireCounters(t, d, Counters{})

			d.inner.PutAsync(&delivery.AsyncNode{Event: event.Event{Number: event.AsyncIACatastrophic}})
			for range 3 - taken {
				take(d)
			}
			eventually(t, "the error", func() bool {
				c, err := d.Counters()
				return err == nil && c == Counters{Events: 1, Taken: 3 - taken}
			})
			require.NoError(t, d.Close())
			_, err = d.Counters()
			isError(t, err, hw.InvalidHandle, hw.Handle1)
			_, err = d.ResetCounters()
			isError(t, err, hw.InvalidHandle, hw.Handle1)
		})
	}
	_, err := (*Dispatcher)(nil).Counters()
	isError(t, err, hw.InvalidHandle, hw.Handle1)
}

func TestSleepsAndLostEventsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		async := newDispatcher(t, Config{Streams: event.StreamAsync})
		d := newDispatcher(t, Config{QLen: 1, Overcommit: true, Async: async})
		go func() { _, _, _ = d.Wait(t.Context(), 1) }()
		synctest.Wait()
		requireCounters(t, d, Counters{Sleeps: 1})
		q := d.inner.Main()
		require.True(t, q.Reserve(4))
		q.Put(dto(1))
		q.Flush()
		synctest.Wait()
		for c := range uint64(3) {
			q.Put(dto(c))
		}
		requireCounters(t, d, Counters{Events: 2, Taken: 1, Lost: 2, Sleeps: 1})
		n, err := async.Dequeue(make([]event.Event, 2))
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		_, _, err = d.Wait(t.Context(), 1)
		require.NoError(t, err)
		requireCounters(t, d, Counters{Events: 2, Taken: 2, Lost: 2, Sleeps: 1})
	})
}
