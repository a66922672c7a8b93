package loop

import (
	"sync/atomic"

	"godat/internal/owner"
	"godat/internal/yield"
)

// token is the right to work on a pipe. The lower bits of its word are
//
//	0                free
//	held             the holder works on the pipe
//	held|kicked      and another goroutine left it something to look at
//	held|queued      the pipe waits for a worker; no goroutine works on it
//
// and its upper bits count: by one at each release, each takeUp, and each step of a long
// hold. Only free → held takes the token, and only the holder leaves held. A goroutine
// that leaves something publishes it first and then looks at the word. So it becomes the
// holder itself, or its kick makes the release fail, or the holder clears an earlier
// kick and looks after that.
type token struct {
	own  owner.Tag // the holder's
	word atomic.Uint64
}

const (
	held   = 1 << 0
	kicked = 1 << 1
	queued = 1 << 2
	count  = 1 << 3
	flags  = count - 1
)

// begin makes the caller the holder of a token that no other goroutine knows yet.
func (t *token) begin() {
	t.word.Store(held)
	t.own.Acquire()
}

// take takes the token if its word is still w, in which the token is free.
func (t *token) take(w uint64) bool {
	ok := t.word.CompareAndSwap(w, w|held)
	if ok {
		t.own.Acquire()
	}
	return ok
}

// takeOrKick takes the token if it is free, and otherwise kicks its holder.
func (t *token) takeOrKick() (taken bool) {
	for {
		w := t.word.Load()
		yield.Point()
		switch {
		case w&held == 0:
			if t.take(w) {
				return true
			}
		case w&kicked != 0:
			return false
		case t.word.CompareAndSwap(w, w|kicked):
			return false
		}
	}
}

// release releases the token and returns true. If there is a kick, it clears the kick
// and returns false: the caller is still the holder.
func (t *token) release() bool {
	t.own.Release()
	for {
		w := t.word.Load()
		yield.Point()
		if w&kicked != 0 {
			t.own.Acquire()
			t.word.And(^uint64(kicked))
			return false
		}
		if t.word.CompareAndSwap(w, w-held+count) {
			return true
		}
	}
}

// releaseAsTaken releases the token if the word has not changed since take(w): no kick,
// and no step.
func (t *token) releaseAsTaken(w uint64) bool {
	t.own.Release()
	ok := t.word.CompareAndSwap(w|held, w+count)
	if !ok {
		t.own.Acquire()
	}
	return ok
}

// giveToWorker gives the token up to the worker that calls takeUp.
func (t *token) giveToWorker() {
	t.own.Release()
	t.word.Or(queued)
}

// takeUp makes a worker the holder.
func (t *token) takeUp() {
	t.word.Add(count - queued)
	t.own.Acquire()
}

// step tells goroutines that wait in movedOn that the holder's access has ended: the
// holder looks keys up again before it goes on.
func (t *token) step() {
	t.own.Check()
	t.word.Add(count)
	yield.Point()
}

// movedOn reports whether the access that was in progress when the word was w has ended.
func (t *token) movedOn(w uint64) bool {
	now := t.word.Load()
	return now&^flags != w&^flags || now&(held|queued) != held
}
