package token

import "godat/internal/yield"

// Parked is set in the word of a Counted that was left and not yet resumed.
const Parked uint64 = 1 << 61

// flags are the bits of a Counted's word that are not its count.
const flags = Held | Kicked | Parked

// Counted is a token whose holder accesses memory that another goroutine may take away.
// That goroutine makes sure that no later access finds the memory, loads the word, and
// waits until MovedOn: then the access that was in progress has ended. The bits of the
// user are a count, which grows at each release and at each Step of a long hold.
//
// Why an access that begins later does not find the memory: the holder changes the word
// when it takes or resumes the token and at each Step, and then looks up what it
// accesses. If it changed the word before the other goroutine loaded the word, MovedOn
// waits for the access; if after, it finds that the memory is gone.
type Counted struct{ Token }

// Release is [Token.Release].
func (t *Counted) Release() bool { return t.release(1) }

// ReleaseIf is [Token.ReleaseIf].
func (t *Counted) ReleaseIf(w uint64) bool {
	t.own.Release()
	if t.word.CompareAndSwap(w|Held, w+1) {
		return true
	}
	t.own.Acquire()
	return false
}

// Leave is [Token.Leave]. A token that was left has no access in progress.
func (t *Counted) Leave() {
	t.own.Release()
	t.word.Or(Parked)
}

// Resume is [Token.Resume].
func (t *Counted) Resume() {
	t.word.And(^Parked)
	t.own.Acquire()
}

// Step ends the holder's access. The holder then looks up what it accesses next.
func (t *Counted) Step() {
	t.own.Check()
	t.word.Add(1)
	yield.Point()
}

// MovedOn reports whether the access that was in progress when the word was w has ended.
func (t *Counted) MovedOn(w uint64) bool {
	now := t.word.Load()
	return now&^flags != w&^flags || now&(Held|Parked) != Held
}
