package delivery

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// recorder is a callback that keeps the events it gets, and notices calls that
// overlap.
type recorder struct {
	mu      sync.Mutex
	got     []uint64
	inside  atomic.Int32
	overlap atomic.Bool
}

func (r *recorder) call(evs []event.Event) {
	if r.inside.Add(1) != 1 {
		r.overlap.Store(true)
	}
	r.mu.Lock()
	r.got = append(r.got, cookies(evs)...)
	r.mu.Unlock()
	r.inside.Add(-1)
}

func (r *recorder) list() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]uint64{}, r.got...)
}

func TestCallbackGetsAllEventsInOrder(t *testing.T) {
	tasks := make(chan func(), 1)
	defer close(tasks)
	for range 4 {
		go func() {
			for task := range tasks {
				task()
			}
		}()
	}
	pool := func(task func()) error {
		select {
		case tasks <- task:
			return nil
		default:
			return errors.New("full")
		}
	}
	for name, submit := range map[string]func(func()) error{
		"on a pool":                  pool,
		"on goroutines":              nil,
		"where the pool has no room": func(func()) error { return errors.New("full") },
	} {
		t.Run(name, func(t *testing.T) {
			var r recorder
			d := newDispatcher(t, Config{Way: Callback, QLen: 64, Callback: r.call, Submit: submit})
			for i := range uint64(5000) {
				eventually(t, "room", func() bool { return d.Main().Reserve(1) })
				d.Main().Put(dto(i))
				d.Main().Flush()
			}
			eventually(t, "all", func() bool { return len(r.list()) == 5000 })
			for i, c := range r.list() {
				require.EqualValues(t, i, c)
			}
			assert.False(t, r.overlap.Load(), "one callback at a time")
		})
	}
}

func TestCallbackIsForEventsThatNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		d := newDispatcher(t, Config{Way: Callback, QLen: 8, Callback: r.call})
		putSilent(t, d.Main(), 1, 2)
		synctest.Wait()
		assert.Empty(t, r.list())
		put(t, d.Main(), 3)
		synctest.Wait()
		assert.Equal(t, list(1, 2, 3), r.list())
		putSilent(t, d.Main(), 4)
		d.Flush()
		synctest.Wait()
		assert.Equal(t, list(1, 2, 3, 4), r.list())
		d.PutAsync(&AsyncNode{Event: event.Event{Number: event.AsyncEPBroken, Cookie: 5}})
		synctest.Wait()
		assert.Equal(t, list(1, 2, 3, 4, 5), r.list())
		putSilent(t, d.Main(), 6)
		require.False(t, d.Main().Reserve(8), "a refusal calls back")
		synctest.Wait()
		assert.Equal(t, list(1, 2, 3, 4, 5, 6), r.list())
	})
}

func TestAtMostOneTaskIsSubmitted(t *testing.T) {
	var (
		r     recorder
		tasks []func()
	)
	d := newDispatcher(t, Config{
		Way: Callback, QLen: 4096, Callback: r.call,
		Submit: func(task func()) error { tasks = append(tasks, task); return nil },
	})
	put(t, d.Main(), 0, 1, 2)
	require.Len(t, tasks, 1)
	tasks[0]()
	assert.Equal(t, list(0, 1, 2), r.list())
	require.Len(t, tasks, 1)
	put(t, d.Main(), 3)
	require.Len(t, tasks, 2)
	tasks[1]()
	assert.Equal(t, list(0, 1, 2, 3), r.list())

	// A task with much to do lets other tasks have the pool in between.
	for i := range uint64(4096) {
		require.True(t, d.Main().Reserve(1))
		d.Main().Put(dto(4 + i))
	}
	d.Main().Flush()
	for i := 2; i < len(tasks); i++ {
		tasks[i]()
	}
	assert.Greater(t, len(tasks), 3)
	assert.Len(t, r.list(), 4100)
}

func TestInUpcallIsTrueInACallbackOnly(t *testing.T) {
	var (
		d, other *Dispatcher
		inside   = make(chan bool)
	)
	d = newDispatcher(t, Config{Way: Callback, Callback: func([]event.Event) {
		isError(t, d.Close(), hw.InvalidState, hw.NoSubtype, "from its own callback")
		fromElsewhere := make(chan bool)
		go func() { fromElsewhere <- d.InUpcall() }()
		inside <- d.InUpcall() && !other.InUpcall() && !<-fromElsewhere
	}})
	other = newDispatcher(t, Config{Way: Callback})
	assert.False(t, d.InUpcall())
	assert.False(t, newDispatcher(t, Config{}).InUpcall())
	put(t, d.Main(), 1)
	assert.True(t, <-inside)
	eventually(t, "the task ends", func() bool { return !d.calls.(*upcalls).scheduled.Load() })
	assert.False(t, d.InUpcall())
	assert.NoError(t, d.Close())
}

func TestCloseWaitsForTheCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, end := make(chan struct{}), make(chan struct{})
		calls := 0
		d := newDispatcher(t, Config{Way: Callback, Callback: func([]event.Event) {
			calls++
			close(begun)
			<-end
		}})
		put(t, d.Main(), 1)
		<-begun
		put(t, d.Main(), 2)
		done := false
		go func() {
			assert.NoError(t, d.Close())
			done = true
		}()
		synctest.Wait()
		assert.False(t, done)
		close(end)
		synctest.Wait()
		assert.True(t, done)
		assert.Equal(t, 1, calls, "what is queued is dropped")
	})
}

func TestAbortFromTheCallbackDoesNotWaitForItself(t *testing.T) {
	done := make(chan struct{})
	var d *Dispatcher
	d = newDispatcher(t, Config{Way: Callback, Callback: func([]event.Event) {
		d.Abort()
		close(done)
	}})
	put(t, d.Main(), 1)
	<-done
}
