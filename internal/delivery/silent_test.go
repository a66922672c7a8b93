package delivery

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
)

func TestSilentEventsDoNotWakeButCountLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{})
		var got []uint64
		wait := func() {
			ev, _, err := waitOne(d, context.Background(), 1)
			assert.NoError(t, err)
			got = append(got, ev.Cookie)
		}
		go wait()
		synctest.Wait()
		putSilent(t, d.Main(), 1, 2)
		synctest.Wait()
		assert.Empty(t, got)
		put(t, d.Main(), 3)
		synctest.Wait()
		assert.Equal(t, list(1), got)
		wait() // the event is queued already
		assert.Equal(t, list(1, 2), got)
		drain(t, d)

		// Errors and connection events notify, even if the producer puts them as
		// silent.
		for _, ev := range []*event.Event{
			flushed(4), {Number: event.Disconnected, Cookie: 5}, {Number: event.BindCompletion, Cookie: 6, Status: hw.StatusBindFailed},
		} {
			got = nil
			go wait()
			synctest.Wait()
			putEvent(t, d.Main(), ev, true)
			synctest.Wait()
			assert.Equal(t, list(ev.Cookie), got)
		}
	})
}

// A context that is canceled ends the wait, and the queued events decide then: if
// there is one, even a silent one, Wait returns it.
func TestAWaitThatIsCanceledFindsTheSilentEventsThatCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, func() { putSilent(t, d.Main(), 1, 2) })
		time.AfterFunc(time.Hour, cancel)
		start := time.Now()
		ev, nmore, err := waitOne(d, ctx, 1)
		require.NoError(t, err)
		assert.Equal(t, time.Hour, time.Since(start))
		assert.EqualValues(t, 1, ev.Cookie)
		assert.Equal(t, 1, nmore)
	})
}

// For silent events, a waiter that still looks and yields counts as one that
// sleeps.
func TestSilentEventsDoNotEndAWaitThatJustBegan(t *testing.T) {
	d := newDispatcher(t, Config{})
	d.main.consumer.spins = 1 << 30
	nmore := make(chan int)
	go func() {
		_, n, err := waitOne(d, background, 1)
		assert.NoError(t, err)
		nmore <- n
	}()
	eventually(t, "it waits", d.main.consumer.turn.awaited)
	for range 100 {
		runtime.Gosched()
	}
	putSilent(t, d.Main(), 1, 2)
	for range 100 {
		runtime.Gosched()
	}
	put(t, d.Main(), 3)
	assert.Equal(t, 2, <-nmore)
}
