package delivery

import (
	"runtime"
	"sync/atomic"
	"time"

	"godat/hw/event"
	"godat/internal/labels"
	"godat/internal/owner"
	"godat/internal/yield"
)

const (
	callbackBatch = 32 // the most events that a callback gets
	callbackTurns = 64 // callbacks in a row before the task gives up its place in the pool
)

// Callback is the way of a dispatcher that calls back: see evd.Config.Callback.
var Callback = &Way{Name: "callback", Grows: true, Begin: func(q *Queue, cfg *Config) { q.SinkTo(newUpcalls(q, cfg)) }}

// upcalls runs a dispatcher's callbacks in one task at a time, which drains a
// ring and ends. Two tasks would lose the order.
type upcalls struct {
	// Immutable.
	q        *Queue
	callback func([]event.Event)
	submit   func(func()) error
	task     func() // run, made once
	label    labels.Label
	exited   func() // a callback has not returned, though its goroutine has ended; nil: nobody asks

	ring      rings
	notice    notice         // due if the task has something to do
	scheduled atomic.Bool    // a task was started and has not ended
	goroutine atomic.Uintptr // the goroutine that calls back now; 0: none
	calls     atomic.Uint64  // twice how many callbacks began, less one while one runs

	running chan struct{} // a lock, held by the task

	// Owned by the task.
	own           owner.Tag
	buf           []event.Event
	requestsFirst bool
}

func newUpcalls(q *Queue, cfg *Config) *upcalls {
	u := &upcalls{q: q, callback: cfg.Callback, submit: cfg.Submit, buf: make([]event.Event, callbackBatch)}
	u.ring.grow(cfg.MaxLen)
	u.running = make(chan struct{}, 1)
	u.task = u.run
	u.label = labels.Of("callback", "dispatcher", cfg.Public.String())
	return u
}

// Put puts events into the ring.
func (u *upcalls) Put(evs []event.Event) {
	u.ring.PutAll(evs)
	u.check()
	u.notice.mark(allSilent(evs))
}

// Flush schedules the task if an event that notifies has come; with all in any case.
func (u *upcalls) Flush(all bool) {
	if all {
		u.notice.set()
	}
	if u.notice.due() && !u.q.closed() {
		u.schedule()
	}
}

// Free gives back places without events.
func (u *upcalls) Free(n int) {
	u.q.Unuse(n)
	u.check()
}

// check panics when an event was put without a reservation.
func (u *upcalls) check() {
	if assertions && u.ring.Tail()+u.q.places.unused.Load() > u.q.places.granted() {
		panic("evd: more events than reservations")
	}
}

// Counts counts the events so far. Listed ones go to the program at once.
func (u *upcalls) Counts() (came uint64, listed int) { return u.ring.Tail(), 0 }

// Grow makes room for so many events.
func (u *upcalls) Grow(places int) { u.ring.grow(places) }

// schedule starts the task unless one is scheduled.
func (u *upcalls) schedule() {
	if !u.scheduled.Load() && u.scheduled.CompareAndSwap(false, true) {
		u.start()
	}
}

// start hands the task to the pool. If the pool has no place, the task gets a
// goroutine of its own, because nothing may keep events from being delivered.
func (u *upcalls) start() {
	if u.submit == nil || u.submit(u.task) != nil {
		go u.run()
	}
}

// run is the task.
func (u *upcalls) run() {
	u.running <- struct{}{}
	u.label.Set()
	u.own.Acquire()
	u.goroutine.Store(owner.Goroutine())
	again := true
	defer func() { u.endTask(again) }()
	again = u.work()
}

// endTask ends the task. Another one follows if there is more to do, also when the callback
// ended the goroutine, by runtime.Goexit or by a panic that the program's pool recovers.
func (u *upcalls) endTask(again bool) {
	u.goroutine.Store(0)
	u.own.Release()
	labels.Clear()
	<-u.running
	if again {
		u.start()
	}
}

// work calls back until no event is queued, or returns true when it has used up its share of
// the pool before that. When it finds no more events it clears scheduled, and then looks
// again: a producer that put an event before saw scheduled set, and started no task.
func (u *upcalls) work() (again bool) {
	for {
		if !u.drain() {
			return true
		}
		yield.Point()
		u.scheduled.Store(false)
		yield.Point()
		if !u.notice.due() || u.q.closed() || !u.scheduled.CompareAndSwap(false, true) {
			return false
		}
	}
}

// drain calls back until no event is queued. It returns false when it has used up
// its share of the pool before that.
func (u *upcalls) drain() bool {
	for range callbackTurns {
		if u.q.closed() {
			return true
		}
		u.notice.clear()
		yield.Point()
		claimed := u.ring.Tail()
		if n := u.take(); n > 0 {
			u.call(n)
			continue
		}
		if u.ring.Next() >= claimed {
			return true
		}
		runtime.Gosched() // an event was claimed that is about to be published
	}
	return false
}

// take moves events to buf, and gives back the places of those that had one.
func (u *upcalls) take() int {
	u.own.Check()
	before := u.ring.Next()
	n := u.q.d.async.takeBeside(&u.ring, &u.requestsFirst, u.buf)
	if taken := u.ring.Next() - before; taken != 0 {
		u.q.Done(int(taken))
	}
	return n
}

// call calls back with the first n events of buf.
func (u *upcalls) call(n int) {
	u.calls.Add(1)
	returned := false
	defer func() { // also when the callback panics or ends the goroutine
		u.calls.Add(1)
		if !returned && u.exited != nil {
			u.exited()
		}
	}()
	u.callback(u.buf[:n])
	returned = true
}

// UpcallTime is how long a close waits for a function of the program's.
const UpcallTime = 5 * time.Second

// stop waits until no callback runs, and reports whether none does. The dispatcher is closed, so a
// task that begins later makes no call.
func (u *upcalls) stop() bool {
	select {
	case u.running <- struct{}{}:
	default:
		late := time.NewTimer(UpcallTime)
		defer late.Stop()
		select {
		case u.running <- struct{}{}:
		case <-late.C:
			return false
		}
	}
	<-u.running
	return true
}

func (u *upcalls) onExit(f func()) { u.exited = f }

func (u *upcalls) began() (calls uint64) { return u.calls.Load() }

// inside reports whether the calling goroutine is in the callback.
func (u *upcalls) inside() bool {
	g := u.goroutine.Load()
	return g != 0 && g == owner.Goroutine()
}
