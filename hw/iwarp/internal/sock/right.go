// Package sock says who reads the socket of a connection, and looks at the sockets of a device:
// for consumers that poll, and for hang-ups.
package sock

import (
	"sync"
	"sync/atomic"
	"time"

	"godat/internal/yield"
)

// Right is the right to read a connection's socket, and to change the receiver's state. Three
// parties read: the receiver's goroutine; a consumer that polls; and a watcher, a goroutine that
// waits in the socket for a message, as a Read of a net.Conn does. One word says who reads at
// this moment, and who waits for octets meanwhile. Each transition is one swap of the word.
//
// Who reads: the holder of the right. The receiver's goroutine has it from the beginning, gives it
// up while it waits for octets, and takes it back when its wait has ended; so does a watcher. If
// another goroutine holds the right then, they mark that they want it, and the holder hands it over.
// At most one goroutine wants the right, because only the one that the phase names waits in the
// socket. A consumer takes the right if it is free, and never waits for it.
//
// Who waits: the phase says. Whatever comes, a goroutine will read it:
//
//   - In own and asked the receiver's goroutine waits in the socket, or is on its way there; in
//     watched and quiet the watcher is. The network poller wakes that goroutine for all octets that
//     come, except those that a consumer reads before. So a consumer may leave octets in the
//     socket, and need not poll again.
//   - In free nobody waits in the socket. The next watcher takes it, or the receiver's goroutine takes
//     it back: it looks every Tick whether the socket has been free since its last look.
//   - A goroutine that sleeps in another way relies on the receiver's goroutine to wake it. So the
//     word counts such goroutines (needs), and while there is one, the socket is not free: Need
//     takes a free socket back, and Leave gives the socket back if there is a need. Both change one
//     word, so neither misses the other. What ends the connection, or limits the receiver's time,
//     takes a free socket back, too (Reclaim).
//   - The receiver's goroutine sleeps in free, watched and quiet. A transition to own wakes it. If
//     the socket stays with one watcher for a Tick, the receiver's goroutine makes the phase quiet
//     and sleeps without a limit; then the watcher wakes it when it leaves.
//   - The peer's stream has ended, or the socket has failed (hung; see [HangUps]). The holder that reads while
//     hung is set reads until nothing is left. Hang counts as a need, so the receiver's goroutine reads
//     next; its caller then interrupts the wait.
//
// To get the socket from the receiver's goroutine, a watcher interrupts that goroutine's wait. That pays
// only if the socket then stays with watchers. So the receiver's goroutine keeps the socket for as
// many calls of Watch as Patience says, and for twice as many each time that the socket came back.
type Right struct {
	word atomic.Uint64

	// Immutable once a watcher comes.
	Tick     time.Duration // between two looks of the receiver's goroutine
	Patience uint64        // how many waits it sees to before a watcher gets the socket, at first

	turn   sync.Mutex    // locked, until the holder hands the right to the one that wants it
	answer chan bool     // answers the goroutine that asks for the socket
	back   chan struct{} // wakes the receiver's goroutine to look at the word
}

const (
	// tick is long, because a thread that waits for the network sets a hardware timer if one of
	// the program is near, and that costs as much as to wake a goroutine.
	tick     = 100 * time.Millisecond
	patience = 4
)

// Init makes a right that the caller holds, as the receiver's goroutine.
func (r *Right) Init() {
	r.Tick, r.Patience = tick, patience
	r.answer, r.back = make(chan bool, 1), make(chan struct{}, 1)
	r.turn.Lock()
	r.word.Store(uint64(none | reading))
}

// TryAcquire acquires the right if it is free.
func (r *Right) TryAcquire() bool {
	for {
		w := word(r.word.Load())
		if w&reading != 0 {
			return false
		}
		if r.swap(w, w|reading) {
			return true
		}
	}
}

// Acquire waits for the right, for the receiver's goroutine or a watcher.
func (r *Right) Acquire() {
	if !r.want() {
		r.turn.Lock()
	}
}

// want takes the right if it is free. Otherwise the holder will hand it over.
func (r *Right) want() (taken bool) {
	for {
		w := word(r.word.Load())
		switch {
		case w&reading == 0:
			if r.swap(w, w|reading) {
				return true
			}
		case r.swap(w, w|wanted):
			return false
		}
	}
}

// Give gives the right up, or hands it to the one that wants it.
func (r *Right) Give() {
	for {
		w := word(r.word.Load())
		switch {
		case w&wanted == 0:
			if r.swap(w, w&^reading) {
				return
			}
		case r.swap(w, w&^wanted):
			r.turn.Unlock()
			return
		}
	}
}

// swap changes the word, unless it has changed since it was w.
func (r *Right) swap(w, to word) bool {
	yield.Point()
	return r.word.CompareAndSwap(uint64(w), uint64(to))
}

// do makes a transition: change says what becomes of a word. It wakes the receiver's goroutine
// if that sleeps and has to look at the word.
func (r *Right) do(change func(word) word) (from, to word) {
	from, to = r.change(change)
	if wakes(from, to) {
		r.wake()
	}
	return from, to
}

// change is do without the wake-up.
func (r *Right) change(change func(word) word) (from, to word) {
	for {
		from = word(r.word.Load())
		if to = change(from); to == from || r.swap(from, to) {
			return from, to
		}
	}
}

// wake wakes the receiver's goroutine.
func (r *Right) wake() {
	select {
	case r.back <- struct{}{}:
	default: // it has still to look
	}
}

// Begin says that the receiver's goroutine waits for octets from now on.
func (r *Right) Begin() { r.do(begin.on) }

// End says that it will wait no more. It keeps the right, so no consumer reads.
func (r *Right) End() {
	if from, _ := r.do(end.on); from.phase() == asked {
		r.answer <- false
	}
}

// Watch makes the caller the watcher, if it may be. If the receiver's goroutine has the socket,
// interrupt ends that one's wait.
func (r *Right) Watch(interrupt func()) bool {
	from, to := r.do(func(w word) word { return w.wished(word(r.Patience)) })
	switch {
	case from.phase() == to.phase():
		return false
	case to.phase() == watched:
		return true
	}
	interrupt()
	return <-r.answer
}

// Refuse answers the goroutine that has asked for the socket: the receiver's goroutine keeps it.
func (r *Right) Refuse() {
	r.do(refuse.on)
	r.answer <- false
}

// Grant gives the socket to the goroutine that has asked for it, and returns when the receiver's
// goroutine has it again. The caller has given up the right.
func (r *Right) Grant() {
	_, seen := r.do(grant.on)
	r.answer <- true
	timer := time.NewTicker(r.Tick)
	defer timer.Stop()
	for {
		select {
		case <-r.back:
			timer.Reset(r.Tick)
		case <-timer.C:
		}
		_, now := r.change(func(w word) word { return w.looked(seen) })
		if p := now.phase(); p == own || p == asked { // for which it may have been asked since
			return
		} else if p == quiet {
			timer.Stop()
		}
		seen = now
	}
}

// Leave ends the watcher's time. With over it gives the socket back, because the receiver's
// goroutine has to see to something.
func (r *Right) Leave(over bool) {
	if over {
		r.do(word.returned)
	} else {
		r.do(word.left)
	}
}

// Reclaim gives the socket back to the receiver's goroutine if nobody waits there.
func (r *Right) Reclaim() { r.do(word.reclaimed) }

// Need is called with true before a goroutine sleeps in another way, and with false when it has
// slept.
func (r *Right) Need(sleeps bool) {
	if sleeps {
		r.do(word.needed)
	} else {
		r.word.Add(^uint64(oneNeed - 1))
	}
}

// Hang says that the stream has ended, or that the socket has failed.
func (r *Right) Hang() { r.do(word.hungUp) }

// Hung reports whether Hang was called.
func (r *Right) Hung() bool { return word(r.word.Load())&hung != 0 }

// Waiter is a set of those that may wait in the socket, or be on their way there.
type Waiter uint8

// Those that may wait.
const (
	Receiver Waiter = 1 << iota // its goroutine, which nobody has asked for the socket
	Asked                       // the same, and a goroutine has asked
	Watcher
)

// waiters has the one that waits in a phase.
var waiters = [phases]Waiter{own: Receiver, asked: Asked, watched: Watcher, quiet: Watcher}

// Waits reports whether one of the set waits in the socket.
func (r *Right) Waits(set Waiter) bool { return waiters[word(r.word.Load()).phase()]&set != 0 }
