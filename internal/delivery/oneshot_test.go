package delivery

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func arm(t testing.TB, s *OneShot) *Queue {
	t.Helper()
	q, err := s.Arm()
	require.NoError(t, err)
	return q
}

func TestOneShotTakesOneEventAtATime(t *testing.T) {
	d := newDispatcher(t, Config{})
	s := d.NewOneShot()
	for c := range uint64(5) {
		q := arm(t, s)
		_, err := s.Arm()
		isError(t, err, hw.InvalidState, hw.NoSubtype, "armed")
		ev := dto(c)
		if c%2 == 0 { // silent or not, because a goroutine waits for it
			ev = silenced(ev)
		}
		q.Put(ev)
		q.Flush()
		_, err = s.Arm()
		isError(t, err, hw.InvalidState, hw.NoSubtype, "not received")
		if c < 3 {
			assert.Equal(t, c, (<-s.C()).Cookie)
		} else {
			ev, err := s.Wait(background)
			require.NoError(t, err)
			assert.Equal(t, c, ev.Cookie)
		}
	}
	assert.Empty(t, drain(t, d), "it takes nothing from the dispatcher")
}

// A Wait that no event could end would wait for ever.
func TestOneShotThatWasReceivedHasNothingToWaitFor(t *testing.T) {
	s := newDispatcher(t, Config{}).NewOneShot()
	for c := range uint64(2) {
		_, err := s.Wait(background)
		isError(t, err, hw.InvalidState, hw.NoSubtype, "before")
		arm(t, s).Put(dto(c))
		ev, err := s.Wait(background)
		require.NoError(t, err)
		assert.Equal(t, c, ev.Cookie)
	}
	_, err := s.Wait(background)
	isError(t, err, hw.InvalidState, hw.NoSubtype, "after")
}

func TestOneShotQueueReservesOnlyByArm(t *testing.T) {
	s := newDispatcher(t, Config{}).NewOneShot()
	q := arm(t, s)
	assert.False(t, q.Reserve(1))
	q.Release(1) // the operation ended without an event
	q = arm(t, s)
	q.PutAll([]event.Event{*dto(1)})
	assert.EqualValues(t, 1, (<-s.C()).Cookie)
	assert.Panics(t, func() { q.Put(dto(2)) }, "once")
	assert.Panics(t, func() { q.Release(1) })
}

func TestOneShotWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{})
		s := d.NewOneShot()
		_, err := s.Wait(context.Background())
		isError(t, err, hw.InvalidState, hw.NoSubtype, "nothing was posted")
		q := arm(t, s)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = s.Wait(ctx)
		isError(t, err, hw.TimeoutExpired, hw.NoSubtype)
		ctx, cancel = context.WithCancel(context.Background())
		cancel()
		_, err = s.Wait(ctx)
		isError(t, err, hw.InterruptedCall, hw.NoSubtype)
		q.Put(dto(1))
		ev, err := s.Wait(ctx)
		require.NoError(t, err, "an event that is there wins")
		assert.EqualValues(t, 1, ev.Cookie)

		arm(t, s)
		go func() { _, err = s.Wait(context.Background()) }()
		synctest.Wait()
		d.Abort()
		synctest.Wait()
		isError(t, err, hw.Abort, hw.NoSubtype)
		q.Put(dto(2))
		ev, err = s.Wait(context.Background())
		require.NoError(t, err)
		assert.EqualValues(t, 2, ev.Cookie)
	})
}

func TestReleasedOneShotsAreUsedAgain(t *testing.T) {
	d := newDispatcher(t, Config{})
	s := d.NewOneShot()
	s.Release()
	assert.PanicsWithValue(t, "evd: a one-shot request was released twice", s.Release)
	_, err := s.Arm()
	isError(t, err, hw.InvalidHandle, hw.Handle1)
	_, err = s.Wait(background)
	isError(t, err, hw.InvalidHandle, hw.Handle1)
	assert.Same(t, s, d.NewOneShot())
	assert.NotSame(t, s, d.NewOneShot())

	// A OneShot whose event was not received is empty when it is used again.
	q := arm(t, s)
	q.Put(dto(1))
	s.Release()
	require.Same(t, s, d.NewOneShot())
	assert.Empty(t, s.C())
	arm(t, s).Put(dto(2))
	assert.EqualValues(t, 2, (<-s.C()).Cookie)
}

func TestOneShotReleasedWhileArmedRestsUntilItsEventCame(t *testing.T) {
	for name, end := range map[string]func(*Queue){
		"an event":       func(q *Queue) { q.Put(dto(1)) },
		"without events": func(q *Queue) { q.Release(1) },
	} {
		d := newDispatcher(t, Config{})
		s := d.NewOneShot()
		q := arm(t, s)
		s.Release()
		assert.Panics(t, s.Release, name)
		_, err := s.Arm()
		isError(t, err, hw.InvalidHandle, hw.Handle1, name)
		assert.NotSame(t, s, d.NewOneShot(), name)
		end(q)
		assert.Same(t, s, d.NewOneShot(), name)
		assert.Empty(t, s.C(), name)
	}
}

// A holder that has received the event may arm the OneShot at once, even while the
// producer is still between the send and the note of it. A holder may release it at
// any time.
func TestOneShotsUnderLoad(t *testing.T) {
	atEach(t, func(t *testing.T) {
		d := newDispatcher(t, Config{})
		type job struct {
			q *Queue
			c uint64
		}
		jobs := make(chan job)
		var producers, users sync.WaitGroup
		for range 2 {
			producers.Go(func() {
				for j := range jobs {
					j.q.Put(dto(j.c))
					j.q.Flush()
				}
			})
		}
		for u := range uint64(3) {
			users.Go(func() {
				s := d.NewOneShot()
				for i := range uint64(600) {
					q, err := s.Arm()
					if !assert.NoError(t, err) {
						return
					}
					c := u<<32 | i
					jobs <- job{q, c}
					if i%7 == 3 {
						s.Release() // the event is dropped
						s = d.NewOneShot()
						continue
					}
					if !assert.Equal(t, c, (<-s.C()).Cookie) {
						return
					}
				}
				s.Release()
			})
		}
		users.Wait()
		close(jobs)
		producers.Wait()
		for s := d.public.(*public).shots.free; s != nil; s = s.next {
			assert.Empty(t, s.C())
			assert.EqualValues(t, shotPooled, s.state.Load())
		}
	})
}

// doneHook is a context that runs a function when Done is called, which a waiter
// that found nothing does when it is about to sleep.
type doneHook struct {
	context.Context
	hook func()
}

func (c doneHook) Done() <-chan struct{} {
	c.hook()
	return c.Context.Done()
}

// A select picks any of the cases that are ready, so a single round proves nothing.
func TestAOneShotsEventThatCameBeforeTheAbortIsNotLost(t *testing.T) {
	for i := range uint64(100) {
		d := newDispatcher(t, Config{})
		s := d.NewOneShot()
		q := arm(t, s)
		ev, err := s.Wait(doneHook{background, func() {
			q.Put(dto(i))
			d.Abort()
		}})
		require.NoError(t, err)
		require.Equal(t, i, ev.Cookie)
	}
}

// The success of a suppressed request has no event.
func TestAOneShotThatIsDisarmedWakesItsWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDispatcher(t, Config{}).NewOneShot()
		arm(t, s).Release(1) // while nobody waits
		for c := range uint64(2) {
			var ev event.Event
			var err error
			wait := func() { ev, err = s.Wait(context.Background()) }
			q := arm(t, s)
			go wait()
			synctest.Wait()
			assert.NoError(t, err, "it sleeps")
			q.Release(1)
			synctest.Wait()
			isError(t, err, hw.InvalidState, hw.NoSubtype)
			q = arm(t, s)
			go wait()
			synctest.Wait()
			q.Put(dto(c))
			synctest.Wait()
			assert.NoError(t, err)
			assert.Equal(t, c, ev.Cookie)
		}
		s.Release()
	})
}
