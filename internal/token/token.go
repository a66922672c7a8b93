package token

import (
	"sync/atomic"

	"godat/internal/owner"
	"godat/internal/yield"
)

// The flags of a token's word. The bits below Kicked belong to the package
// that uses the token.
const (
	Held   uint64 = 1 << 63 // a goroutine holds the token, or the token waits in a list for one
	Kicked uint64 = 1 << 62 // the holder looks for work before it releases the token
)

// Token is the right to work on what lies beside it. The zero Token is free. Any
// goroutine may call Load, Swap, TryTake and TakeOrKick; the other methods are the
// holder's. In race builds a call of another goroutine panics.
type Token struct {
	own  owner.Tag // the holder's
	word atomic.Uint64
}

// Load returns the word.
func (t *Token) Load() uint64 { return t.word.Load() }

// Check asserts that the caller is the holder.
func (t *Token) Check() { t.own.Check() }

// Swap replaces the word w by next, which has the flags of w, or Held in addition. If w
// is free and next is not, the caller is the holder. It returns false, and has done
// nothing, if the word is not w any more.
func (t *Token) Swap(w, next uint64) bool {
	ok := t.word.CompareAndSwap(w, next)
	if owner.Enabled && ok && next&^w&Held != 0 {
		t.own.Acquire()
	}
	return ok
}

// TryTake takes the token if it is free. It returns the word that it found, for
// ReleaseIf.
func (t *Token) TryTake() (w uint64, ok bool) {
	w = t.word.Load()
	yield.Point()
	if w&Held == 0 && t.word.CompareAndSwap(w, w|Held) {
		t.own.Acquire()
		return w, true
	}
	return w, false
}

// TakeOrKick takes the token if it is free, and otherwise kicks the holder. Either way
// the holder looks for work after the call began: the caller, if TakeOrKick returns
// true, or else another goroutine.
func (t *Token) TakeOrKick() (taken bool) {
	for {
		w := t.word.Load()
		yield.Point()
		switch {
		case w&Held == 0:
			if t.Swap(w, w|Held) {
				return true
			}
		case w&Kicked != 0:
			return false
		case t.word.CompareAndSwap(w, w|Kicked):
			return false
		}
	}
}

// Release releases the token and returns true. If the holder was kicked, Release clears
// the kick and returns false: the caller still holds the token, and looks for work.
func (t *Token) Release() bool { return t.release(0) }

// release is Release, which adds n to the user's bits.
func (t *Token) release(n uint64) bool {
	t.own.Release()
	for {
		w := t.word.Load()
		yield.Point()
		if w&Kicked != 0 {
			t.own.Acquire()
			t.word.And(^Kicked)
			return false
		}
		if t.word.CompareAndSwap(w, w&^Held+n) {
			return true
		}
	}
}

// ReleaseIf releases the token if its word is still w, but for Held: the word from which
// TryTake took it, or the next word of a Swap that took it, without Held. So there was no kick since
// then, and no goroutine has changed the user's bits. Otherwise ReleaseIf returns false,
// the caller still holds the token, and looks for work.
func (t *Token) ReleaseIf(w uint64) bool {
	t.own.Release()
	if t.word.CompareAndSwap(w|Held, w) {
		return true
	}
	t.own.Acquire()
	return false
}

// Leave ends the caller's hold, and leaves the token held for the goroutine that calls
// Resume.
func (t *Token) Leave() { t.own.Release() }

// Resume makes the caller the holder of a token that was left.
func (t *Token) Resume() { t.own.Acquire() }
