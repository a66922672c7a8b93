package stream

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"godat/evd"
	"godat/hw"
	"godat/internal/release"
	"godat/internal/yield"
)

// waiter is where a Read or a Write waits: one goroutine at a time. Whatever may end the
// wait first changes the state that the waiting call looks at, and then calls notify.
//
// No wake-up is lost: the waiting call sets waiting and then looks at the state, notify's
// caller changes the state and then looks at waiting. So at least one of the two sees what
// the other did. A token in wake that nobody needed any more costs a later wait one more
// look.
//
// sleep sets waiting by a locked store. A call that expects to wait spares that: it calls
// announce, which stores without one, before it locks the mutex of its turn. The lock is a
// locked instruction, and comes between announce and the look. The call before may have
// withdrawn the announcement meanwhile, so the call loads waiting once it has the mutex. If
// it finds 1 then, notify's callers do: the call's own store came before the lock, and
// a store of another processor is visible to all once it is to one. From there on only the
// holder of the mutex stores 0.
//
// A call that waits in the watcher sets parked in place of waiting; see look.
type waiter struct {
	waiting atomic.Uint32 // 1 while a call waits, or may be about to
	wake    chan struct{} // of length 1
	alone   atomic.Bool   // the program has one processor; the goroutine that waits writes it

	// Of the goroutine that waits.
	patience int  // looks before a wait
	waits    uint // so far

	// Where the connection's messages come in; nil if there is no such place. Immutable.
	watcher hw.Watcher
	ready   func() bool
	lookFn  func(parks bool) bool
	parked  atomic.Bool // the waiting call sleeps in the watcher

	passed atomic.Bool // the deadline has passed

	mu    sync.Mutex
	at    time.Time // the deadline; zero for none
	timer *time.Timer
}

// mostPatience is how often a wait lets other goroutines run before it parks, at most.
const mostPatience = 16

// soon reports whether ready reports true after other goroutines have run. On a provider
// that carries bytes within the process that is often so, and saves a wake-up. Its
// patience doubles when it was right, and halves when it was not.
//
// On several processors it lets none run. There a goroutine that yields moves to another
// processor, away from its memory's caches, and the two ends, each yielding on its own,
// share the scheduler's lock. A goroutine that is woken runs where its waker waits next.
//
// If the device can be asked, soon asks it before each look: a call that reads the socket
// itself need not be woken by the goroutine that would read it.
func (w *waiter) soon(events *evd.Dispatcher, ready func() bool) bool {
	w.count()
	asks, alone := events.Asks(), w.alone.Load()
	if !alone && !asks {
		return false
	}
	for range w.patience {
		if alone {
			runtime.Gosched()
		}
		if asks {
			events.Ask(true)
		}
		if ready() {
			w.patience = min(2*w.patience, mostPatience)
			return true
		}
	}
	w.patience = max(1, w.patience/2)
	return false
}

// count counts a wait, and asks now and then for the number of processors: the question
// costs as much as a wake-up.
func (w *waiter) count() {
	if w.waits%64 == 0 {
		if alone := runtime.GOMAXPROCS(0) == 1; alone != w.alone.Load() {
			w.alone.Store(alone)
		}
	}
	w.waits++
}

// announce says that the caller is about to wait, before it locks the mutex of its turn. It
// says nothing where soon looks again and again: a notify would wake a goroutine that runs.
func (w *waiter) announce(events *evd.Dispatcher) {
	if !w.alone.Load() && !events.Asks() {
		release.Uint32(&w.waiting, 1)
	}
}

// yields reports whether soon would only let other goroutines run.
func (w *waiter) yields(events *evd.Dispatcher) bool { return w.alone.Load() && !events.Asks() }

// announced reports whether notify wakes the caller, which holds the mutex, when something
// changes that it looks at from now on.
func (w *waiter) announced() bool { return w.waiting.Load() != 0 }

// withdraw takes an announcement back. A notify that does not see that yet leaves a token
// that nobody needs.
func (w *waiter) withdraw() {
	if w.waiting.Load() != 0 {
		release.Uint32(&w.waiting, 0)
	}
}

// park waits for a notify. The caller was announced before it looked.
func (w *waiter) park() {
	w.count()
	<-w.wake
}

// watch waits where the messages come in, until ready reports true, and possibly less
// long. It returns false at once if the call is to wait in another way. So it is
// where the program has one processor: there goroutines that yield to each other find
// the messages without asking the system twice for each.
func (w *waiter) watch() bool {
	if w.ready == nil {
		return false
	}
	w.count()
	if w.alone.Load() || !w.watcher.Watch(w.lookFn) {
		return false
	}
	if w.parked.Load() { // the last look of a watch that found ready true
		w.parked.Store(false)
	}
	return true
}

// look is what watch looks at. It says before that whether the call sleeps, for notify.
func (w *waiter) look(parks bool) bool {
	if w.parked.Load() != parks {
		w.parked.Store(parks)
	}
	return w.ready()
}

// wait returns when ready reports true, and possibly before.
func (w *waiter) wait(events *evd.Dispatcher, ready func() bool) {
	if !w.soon(events, ready) {
		w.sleep(ready)
	}
}

// sleep is wait without patience.
func (w *waiter) sleep(ready func() bool) {
	w.need(true)
	w.waiting.Store(1)
	yield.Point()
	if !ready() {
		<-w.wake
	}
	w.withdraw()
	w.need(false)
}

// need tells the watcher that the call sleeps, or has slept.
func (w *waiter) need(sleeps bool) {
	if w.watcher != nil {
		w.watcher.Need(sleeps)
	}
}

// notify wakes the goroutine that waits, if there is one. It does not block. It reports
// whether it has sent to the channel, which takes a locked instruction. To disturb the
// watcher takes one, too, but notify has looked at waiting before that: a call that went to
// sleep meanwhile may have missed the change, and nobody has seen that it sleeps.
func (w *waiter) notify() (woken bool) {
	yield.Point()
	if w.waiting.Load() == 0 && !w.parked.Load() {
		return false
	}
	return w.rouse()
}

// rouse is notify once there is, or was, a call that waits. It looks at parked also when it
// has sent: it may have found a 1 that the call has withdrawn meanwhile.
func (w *waiter) rouse() (woken bool) {
	if w.waiting.Load() != 0 {
		select {
		case w.wake <- struct{}{}:
			woken = true
		default: // a token is there already
		}
	}
	if w.parked.Load() {
		w.watcher.Disturb()
	}
	return woken
}

// setDeadline sets the time at which waits end; zero means never.
func (w *waiter) setDeadline(t time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.at = time.Time{}
	left := time.Until(t)
	w.passed.Store(!t.IsZero() && left <= 0)
	if !t.IsZero() && left > 0 {
		w.at = time.Now().Add(left) // by the monotonic clock, which timers use
		if w.timer == nil {
			w.timer = time.AfterFunc(left, w.expire)
		} else {
			w.timer.Reset(left)
		}
	}
	w.notify()
}

// expire is the timer's function. A timer that was stopped too late finds another
// deadline, or none.
func (w *waiter) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.at.IsZero() && !time.Now().Before(w.at) {
		w.passed.Store(true)
		w.notify()
	}
}
