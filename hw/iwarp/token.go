package iwarp

import (
	"sync/atomic"

	"godat/internal/owner"
	"godat/internal/yield"
)

// A token's word says whether some goroutine holds the token. The holder owns the
// sender, and ends the connection:
//
//	0             free
//	held          held
//	held|kicked   held, and another goroutine has left work for the holder
//
// The upper bits count: one for each release, and one for each step of a long hold.
// Only free → held takes the token, and only the holder leaves held. A goroutine
// that leaves work publishes it first and then looks at the word. So it becomes the
// holder itself, or its kick makes the holder's release fail, or the holder clears
// an earlier kick and looks for work after that.
const (
	held   = 1 << 0
	kicked = 1 << 1
	count  = 1 << 2
	flags  = count - 1
)

// The number of bytes that a holder may send before it leaves the rest to the writer.
const (
	posterBudget   = 256 << 10
	receiverBudget = 64 << 10
	writerBudget   = 1 << 30
)

// token is the right to work on a connection's sender and on its end.
type token struct {
	owner *connection // the connection whose step the holder runs; immutable, and for run alone
	word  atomic.Uint64
	own   owner.Tag // asserted by the methods that only the holder may call
}

// kick makes sure that a holder looks for work after this call: the present one, or the
// caller itself if the token is free.
func (t *token) kick(budget int) {
	for {
		w := t.word.Load()
		yield.Point()
		switch {
		case w&held == 0:
			if t.word.CompareAndSwap(w, w|held) {
				t.run(budget)
				return
			}
		case w&kicked != 0:
			return
		case t.word.CompareAndSwap(w, w|kicked):
			return
		}
	}
}

// run does the holder's work and releases the token.
func (t *token) run(budget int) {
	for {
		t.own.Acquire()
		t.owner.step(budget)
		t.own.Release()
		if t.letGo() {
			return
		}
	}
}

// letGo releases the token and returns true. If there is a kick, it clears the kick and
// returns false: the caller is still the holder.
func (t *token) letGo() bool {
	for {
		w := t.word.Load()
		yield.Point()
		if w&kicked != 0 {
			t.word.And(^uint64(kicked))
			return false
		}
		if t.word.CompareAndSwap(w, w-held+count) {
			return true
		}
	}
}

// moved counts a step of the holder: it tells goroutines that wait in device.grace that
// the holder's accesses so far have ended.
func (t *token) moved() {
	t.word.Add(count)
	yield.Point()
}

// movedOn reports whether the accesses that the holder had in progress when the word was w
// have ended.
func (t *token) movedOn(w uint64) bool {
	now := t.word.Load()
	return now&^flags != w&^flags || now&held == 0
}
