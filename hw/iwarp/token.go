package iwarp

import "godat/internal/yield"

// A life's word says who holds the token, to which everything about sending and
// about the end belongs:
//
//	0             nobody
//	held          somebody
//	held|kicked   and somebody else left something to be looked at
//
// and counts in the upper bits: by one when it is let go, and in a long hold
// between two things. Only free → held takes it, and only the holder leaves held.
// Who leaves something publishes it first and then looks at the word: so it
// becomes the holder itself, or its kick makes the release fail, or the holder
// clears an earlier kick and looks after that.
const (
	held   = 1 << 0
	kicked = 1 << 1
	count  = 1 << 2
	flags  = count - 1
)

// How many bytes a holder may send before it leaves the rest to the sender.
const (
	posterBudget   = 256 << 10
	receiverBudget = 64 << 10
	senderBudget   = 1 << 30
)

// kick makes sure that somebody looks at the life after this.
func (l *life) kick(budget int) {
	for {
		w := l.word.Load()
		yield.Point()
		switch {
		case w&held == 0:
			if l.word.CompareAndSwap(w, w|held) {
				l.run(budget)
				return
			}
		case w&kicked != 0:
			return
		case l.word.CompareAndSwap(w, w|kicked):
			return
		}
	}
}

// run does what there is to do and lets go.
func (l *life) run(budget int) {
	for {
		l.own.Acquire()
		l.step(budget)
		l.own.Release()
		if l.letGo() {
			return
		}
	}
}

// letGo releases the token, unless there is a kick, which it clears.
func (l *life) letGo() bool {
	for {
		w := l.word.Load()
		yield.Point()
		if w&kicked != 0 {
			l.word.And(^uint64(kicked))
			return false
		}
		if l.word.CompareAndSwap(w, w-held+count) {
			return true
		}
	}
}

// moved tells who waits for what the holder was doing that it is done.
func (l *life) moved() {
	l.word.Add(count)
	yield.Point()
}

// movedOn reports whether what was in progress when the word was w has ended.
func (l *life) movedOn(w uint64) bool {
	now := l.word.Load()
	return now&^flags != w&^flags || now&held == 0
}
