package iwarp

import (
	"sync/atomic"
	"time"

	"godat/internal/yield"
)

// watch lets a goroutine that waits for a message wait in the socket itself, as a Read of
// a net.Conn does: the network poller wakes that goroutine, which need not be woken by the
// receiver's goroutine then. Until it leaves it is the watcher, and the receiver's
// goroutine sleeps. The first watcher interrupts the receiver's wait to have the socket.
//
//   - Somebody waits for octets again soon after the watcher has left: the next watcher,
//     or the receiver's goroutine, which looks every watchTick whether the socket has been
//     free since its last look, and then takes it back. A socket that stays with one
//     watcher for so long lets that goroutine sleep without a limit (watchQuiet); the
//     watcher wakes it when it leaves.
//   - A goroutine that sleeps in another way is not left alone: it counts itself in needs,
//     and then takes the socket back if that is free; the watcher leaves, and then looks at
//     needs. So one of the two sees the other.
//   - A watcher that finds an error, or a deadline that has passed, gives the socket back, and
//     leaves the rest to the receiver's goroutine: it finds both, because the error stays with
//     the receiver and the deadline with the socket. What ends the connection, or limits
//     the receiver's time, takes a free socket back, and interrupts a watcher by the deadline.
//   - An interrupt is a deadline that has passed. It is marked in the link, under its lock,
//     which keeps the receiver's deadline meanwhile. The goroutine whose wait an interrupt
//     has ended settles it, and waits under that deadline again.
type watch struct {
	// Immutable.
	fn   func(fd uintptr) bool
	tick time.Duration

	// Shared.
	word     atomic.Uint64 // the phase, watchQuiet, and how often a watcher has left
	needs    atomic.Int32  // goroutines that sleep in another way
	asks     atomic.Int32  // waits that the receiver's goroutine has seen to
	patience atomic.Int32  // how many it sees to before a watcher gets the socket
	lent     chan bool     // answers the goroutine that asks for the socket
	back     chan struct{} // wakes the receiver's goroutine to look at the word

	// Owned by the watcher.
	look func(parks bool) bool
	over bool // the receiver's goroutine has to see to something
}

// The phases of a watch.
const (
	watchNone  = iota // no receiver waits for octets
	watchOwn          // the receiver's goroutine does
	watchAsked        // a goroutine has asked it for the socket
	watchFree         // the last watcher has left
	watchHeld         // a watcher waits for octets, or reads
	watchPhase = 7    // the mask

	watchQuiet = 8 // with watchHeld
	watchTurn  = 16
)

const (
	leastPatience = 4 // of watch.patience
	mostPatience  = 1 << 10

	// watchTick is the time between two looks at a socket that watchers have. It is long, because
	// a thread that waits for the network sets a hardware timer if one of the program is near, and
	// that costs as much as to wake a goroutine.
	watchTick = 100 * time.Millisecond
)

func (w *watch) init(fn func(fd uintptr) bool) {
	w.fn, w.tick = fn, watchTick
	w.lent, w.back = make(chan bool, 1), make(chan struct{}, 1)
	w.patience.Store(leastPatience)
}

// move changes the phase, unless the word has changed since it was s.
func (w *watch) move(s, to uint64) bool {
	yield.Point()
	return w.word.CompareAndSwap(s, s&^(watchPhase|watchQuiet)+to)
}

// Watch implements [hw.Watcher].
func (r *receiver) Watch(look func(parks bool) bool) bool {
	w := &r.link.watch
	for {
		s := w.word.Load()
		switch s & watchPhase {
		case watchFree:
			if !w.move(s, watchHeld) {
				continue
			}
		case watchOwn:
			if w.needs.Load() > 0 || w.asks.Add(1) < w.patience.Load() {
				return false
			}
			if !w.move(s, watchAsked) {
				continue
			}
			r.interrupt(1 << watchAsked)
			if !<-w.lent {
				return false
			}
		default:
			return false
		}
		r.watchNow(look)
		return true
	}
}

// Need implements [hw.Watcher].
func (r *receiver) Need(sleeps bool) { r.link.watch.need(sleeps) }

func (w *watch) need(sleeps bool) {
	if !sleeps {
		w.needs.Add(-1)
		return
	}
	w.needs.Add(1)
	yield.Point()
	w.reclaim()
}

// Disturb implements [hw.Watcher].
func (r *receiver) Disturb() { r.interrupt(1 << watchHeld) }

// interrupt ends the present wait for octets, or the next one, if the watch is in one of the
// phases, of which each is a bit.
func (r *receiver) interrupt(phases uint64) {
	l := r.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if phases>>(l.watch.word.Load()&watchPhase)&1 != 0 && !l.dead && !l.interrupted {
		l.interrupted = true
		_ = l.conn.SetReadDeadline(past)
	}
}

// watchNow is Watch for the watcher.
func (r *receiver) watchNow(look func(parks bool) bool) {
	w := &r.link.watch
	w.look, w.over = look, false
	err := r.port.raw.Read(w.fn)
	if err != nil { // of a wait
		look(false)
		w.over = w.over || !r.link.settle()
	}
	w.look = nil
	w.leave(w.over)
}

// watchRead reads what has come, for the watcher.
func (r *receiver) watchRead(fd uintptr) bool {
	w := &r.link.watch
	if w.look(false) {
		return true
	}
	r.right.mu.Lock()
	r.own.Acquire()
	parks, came := false, false
	for !parks && !came && !w.over {
		switch {
		case r.err != nil || r.end != nil || r.link.attention.Load()&(broken|bounded) != 0:
			w.over = true
		case r.readMore(int(fd)):
			parks = true
		default:
			if r.err == nil {
				r.end = r.process()
			}
			came = w.look(false)
			if parks = !came && r.dry(); parks {
				r.direct.pause()
			}
		}
	}
	if r.end == nil {
		r.limitRest()
	}
	r.in.release() // the program may take its time before it comes again
	r.own.Release()
	yield.Point()
	r.right.mu.Unlock()
	return !parks || w.look(true)
}

// leave ends the watcher's time. With over it gives the socket back.
func (w *watch) leave(over bool) {
	to := uint64(watchTurn + watchFree)
	if over {
		to = watchTurn + watchOwn
	}
	s := w.word.Load()
	for !w.move(s, to) {
		s = w.word.Load()
	}
	if over || s&watchQuiet != 0 {
		w.wake()
	}
	yield.Point()
	if w.needs.Load() > 0 {
		w.reclaim()
	}
}

// reclaim gives the socket back to the receiver's goroutine if no watcher has it.
func (w *watch) reclaim() {
	for s := w.word.Load(); s&watchPhase == watchFree; s = w.word.Load() {
		if w.move(s, watchOwn) {
			w.doubt()
			w.wake()
			return
		}
	}
}

// doubt makes the next watcher wait longer for the socket: it did not stay with the last.
func (w *watch) doubt() {
	w.asks.Store(0)
	w.patience.Store(min(2*w.patience.Load(), mostPatience))
}

// wake wakes the receiver's goroutine.
func (w *watch) wake() {
	select {
	case w.back <- struct{}{}:
	default: // it has still to look
	}
}

// lend gives the socket to the goroutine that asks for it, and returns when the receiver's
// goroutine has it again. It does nothing if none asks any more.
func (r *receiver) lend() {
	w := &r.link.watch
	s := w.word.Load() // nobody else changes it in this phase
	switch {
	case s&watchPhase != watchAsked:
	case r.link.attention.Load()&(broken|bounded) != 0:
		w.move(s, watchOwn)
		w.lent <- false
	default:
		r.park()
		w.move(s, watchHeld)
		w.lent <- true
		w.sleep()
		r.resume()
	}
}

// sleep sleeps until the receiver's goroutine has the socket again.
func (w *watch) sleep() {
	tick := time.NewTicker(w.tick)
	defer tick.Stop()
	for last := w.word.Load(); ; {
		select {
		case <-w.back:
			tick.Reset(w.tick)
		case <-tick.C:
		}
		s := w.word.Load()
		switch {
		case s&watchPhase == watchOwn, s&watchPhase == watchAsked: // or asked since
			return
		case s != last: // watchers come again and again
			w.patience.Store(leastPatience)
		case s&watchPhase == watchFree:
			if w.move(s, watchOwn) {
				w.doubt()
				return
			}
		case w.move(s, watchHeld|watchQuiet):
			tick.Stop()
		}
		last = s
	}
}

// begin says that the receiver's goroutine waits for octets.
func (w *watch) begin() { w.word.Store(watchOwn) }

// endWatch says that it waits no more.
func (r *receiver) endWatch() {
	if r.link.watch.word.Swap(watchNone)&watchPhase == watchAsked {
		r.link.watch.lent <- false
	}
	r.link.settle()
}
