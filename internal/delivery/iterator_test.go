package delivery

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/event"
)

func TestEventsEndsWithItsContext(t *testing.T) {
	for _, mode := range []*Way{Ring, Channel, Batches} {
		synctest.Test(t, func(t *testing.T) {
			d := newDispatcher(t, Config{Way: mode})
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			var got []uint64
			ended := false
			go func() {
				for ev := range d.Events(ctx) {
					got = append(got, ev.Cookie)
				}
				ended = true
			}()
			synctest.Wait()
			put(t, d.Main(), 1, 2)
			synctest.Wait()
			put(t, d.Main(), 3)
			synctest.Wait()
			assert.Equal(t, list(1, 2, 3), got, mode)
			assert.False(t, ended)
			cancel(errors.New("enough"))
			synctest.Wait()
			assert.True(t, ended)
		})
	}
}

func TestEventsEndsWithClose(t *testing.T) {
	for _, mode := range []*Way{Ring, Channel, Batches} {
		synctest.Test(t, func(t *testing.T) {
			d := newDispatcher(t, Config{Way: mode})
			var n, ended atomic.Int32
			for range 3 {
				go func() {
					for range d.Events(context.Background()) {
						n.Add(1)
					}
					ended.Add(1)
				}()
			}
			synctest.Wait()
			put(t, d.Main(), 1, 2, 3, 4)
			synctest.Wait()
			assert.EqualValues(t, 4, n.Load())
			assert.NoError(t, d.Close(), "an iterator is no waiter")
			synctest.Wait()
			assert.EqualValues(t, 3, ended.Load(), mode)
		})
	}
}

func TestEventsOfACallbackDispatcherAreNone(t *testing.T) {
	d := newDispatcher(t, Config{Way: Callback})
	for range d.Events(background) {
		t.Error("an event")
	}
}

func TestAnIteratorLeavesTheEventsItDidNotYield(t *testing.T) {
	d := newDispatcher(t, Config{})
	put(t, d.Main(), 1, 2, 3)
	for ev := range d.Events(background) {
		assert.EqualValues(t, 1, ev.Cookie)
		n, err := d.Dequeue(make([]event.Event, 1))
		assert.NoError(t, err, "between two events others may dequeue")
		assert.Equal(t, 1, n)
		break
	}
	assert.Equal(t, list(3), drain(t, d))

	b := newDispatcher(t, Config{Way: Batches, QLen: 4})
	put(t, b.Main(), 1)
	for range b.Events(background) {
		break
	}
	assert.True(t, b.Main().Reserve(4), "its batch was released")
	b.Main().Release(4)
}

// An iterator waits for its turn while a goroutine is in Wait.
func TestIteratorTakesOverFromAWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{})
		ctx, cancel := context.WithCancel(context.Background())
		var waited error
		go func() { _, _, waited = waitOne(d, ctx, 2) }()
		synctest.Wait()
		var got []uint64
		go func() {
			for ev := range d.Events(context.Background()) {
				got = append(got, ev.Cookie)
			}
		}()
		gone := false
		ctx2, cancel2 := context.WithCancel(context.Background())
		go func() {
			for range d.Events(ctx2) {
				t.Error("an event")
			}
			gone = true
		}()
		synctest.Wait()
		put(t, d.Main(), 7)
		synctest.Wait()
		assert.Empty(t, got)
		cancel2()
		synctest.Wait()
		assert.True(t, gone, "a context ends the wait for a turn")
		cancel()
		synctest.Wait()
		assert.ErrorIs(t, waited, context.Canceled)
		assert.Equal(t, list(7), got)
		d.Abort()
	})
}

// Producers leave events to an iterator that is there to take them.
func TestAnIteratorThatEndsTriggersTheCNOForWhatItLeaves(t *testing.T) {
	for name, end := range map[string]func(d *Dispatcher) (more bool){
		"by a break":       func(*Dispatcher) bool { return false },
		"by a panic":       func(*Dispatcher) bool { panic("body") },
		"since it may not": func(d *Dispatcher) bool { d.Consumer().SetUnwaitable(); return true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { endOfIterator(t, end) })
		})
	}
}

func endOfIterator(t *testing.T, end func(d *Dispatcher) (more bool)) {
	d := newDispatcher(t, Config{})
	var triggered atomic.Int32
	d.Consumer().SetNotifier(func() { triggered.Add(1) })
	var got []uint64
	go func() {
		defer func() { _ = recover() }()
		for ev := range d.Events(context.Background()) {
			got = append(got, ev.Cookie)
			if !end(d) {
				break
			}
		}
	}()
	synctest.Wait()
	// Both are there before the iterator wakes: a producer that found it gone would trigger, too.
	q := d.Main()
	require.True(t, q.Reserve(2))
	q.Put(dto(1))
	q.Put(dto(2))
	q.Flush()
	synctest.Wait()
	assert.Equal(t, list(1), got)
	assert.EqualValues(t, 1, triggered.Load())
	assert.Equal(t, list(2), drain(t, d))
}
