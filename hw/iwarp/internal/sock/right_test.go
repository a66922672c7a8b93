package sock

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/internal/yield"
)

// party makes transitions, one at a time.
type party string

const (
	receiver party = "the receiver's goroutine"
	watcher  party = "the watcher"
	holder   party = "the holder of the right"
	others   party = "others" // of which there may be several
)

// transition is a call of a Right: who makes it, where, what becomes of the word, and what does
// that.
type transition struct {
	by      party
	can     func(w word) bool
	becomes func(w word) word
	call    func(r *Right)
}

func in(set ...word) func(word) bool {
	return func(w word) bool {
		for _, p := range set {
			if w.phase() == p {
				return true
			}
		}
		return false
	}
}

func always(word) bool { return true }

func asTaken(w word) word {
	if w&reading != 0 {
		return w | wanted
	}
	return w | reading
}

func asGiven(w word) word {
	if w&wanted != 0 {
		return w &^ wanted
	}
	return w &^ reading
}

// transitions are those from a word. Where one of them needs a patience, it has come to its end.
func transitions(from word) map[string]transition {
	wished := func(w word) word { return w.wished(0) }
	looked := func(w word) word { return w.looked(from) }
	return map[string]transition{
		"begin":         {receiver, in(none), begin.on, (*Right).Begin},
		"end":           {receiver, in(own, asked), end.on, (*Right).End},
		"refuse":        {receiver, in(asked), refuse.on, (*Right).Refuse},
		"grant":         {receiver, in(asked), grant.on, func(r *Right) { r.do(grant.on) }},
		"look":          {receiver, in(free, watched), looked, func(r *Right) { r.change(looked) }},
		"leave":         {watcher, in(watched, quiet), word.left, func(r *Right) { r.Leave(false) }},
		"give back":     {watcher, in(watched, quiet), word.returned, func(r *Right) { r.Leave(true) }},
		"want to read":  {receiver, wants(own, asked), asTaken, func(r *Right) { r.want() }},
		"watch to read": {watcher, wants(watched, quiet), asTaken, func(r *Right) { r.want() }},
		"wish":          {others, always, wished, func(r *Right) { r.do(wished) }},
		"reclaim":       {others, always, word.reclaimed, (*Right).Reclaim},
		"need":          {others, always, word.needed, func(r *Right) { r.Need(true) }},
		"slept":         {others, func(w word) bool { return w >= oneNeed }, func(w word) word { return w - oneNeed }, func(r *Right) { r.Need(false) }},
		"hang":          {others, always, word.hungUp, (*Right).Hang},
		"poll":          {others, always, func(w word) word { return w | reading }, func(r *Right) { r.TryAcquire() }},
		"give":          {holder, func(w word) bool { return w&reading != 0 && w.phase() != none }, asGiven, (*Right).Give},
	}
}

// wants is in for a party that waits in the socket, and not for the right.
func wants(set ...word) func(word) bool {
	of := in(set...)
	return func(w word) bool { return of(w) && w&wanted == 0 }
}

// starts are the words that the pairs begin with.
func starts() (all []word) {
	for phase := none; phase < phases; phase++ {
		for _, need := range []word{0, oneNeed} {
			if phase == free && need != 0 {
				continue
			}
			for _, right := range []word{0, reading, reading | wanted} {
				if phase == none && right != reading || phase == free && right&wanted != 0 {
					continue
				}
				all = append(all, phase|need|right)
			}
		}
	}
	return all
}

func rightWith(w word) *Right {
	r := new(Right)
	r.Init()
	r.word.Store(uint64(w))
	return r
}

// check looks at the outcome of two transitions from a word: it is that of one after the other,
// no socket is free while a goroutine sleeps in another way, the receiver's goroutine does not
// sleep on, and the right was handed to the one that wants it.
func check(t *testing.T, r *Right, from word, a, b transition, name string) {
	to := word(r.word.Load())
	require.Contains(t, []word{b.becomes(a.becomes(from)), a.becomes(b.becomes(from))}, to, name)
	assert.False(t, to.phase() == free && to >= oneNeed, name)
	sleeps := in(free, watched, quiet)(from) && a.by != receiver && b.by != receiver
	if sleeps && (in(own, asked)(to) || from.phase() == quiet && to.phase() != quiet) {
		assert.Len(t, r.back, 1, "%s: the receiver's goroutine wakes", name)
	}
	if (from|a.becomes(from)|b.becomes(from))&wanted != 0 {
		handed := r.turn.TryLock()
		assert.True(t, handed != (to&wanted != 0) || to&wanted == 0 && from&wanted == 0, "%s: the right is handed over", name)
		assert.True(t, to&reading != 0, "%s: whoever wants to read does, or somebody before", name)
	}
}

func TestTwoTransitionsAtOnceAreOneAfterTheOther(t *testing.T) {
	pairs := 0
	for _, from := range starts() {
		all := transitions(from)
		for x, a := range all {
			for y, b := range all {
				if !a.can(from) || !b.can(from) || a.by == b.by && a.by != others {
					continue
				}
				pairs++
				name := fmt.Sprintf("%s and %s, from %#x", x, y, uint64(from))
				yield.Interleave(func() (first, second, end func()) {
					r := rightWith(from)
					return func() { a.call(r) }, func() { b.call(r) }, func() { check(t, r, from, a, b, name) }
				})
			}
		}
	}
	assert.Greater(t, pairs, 1000)
}

// A consumer that polls again and again does not keep the right from the goroutine that waits.
func TestTheOneThatWantsTheRightIsTheNext(t *testing.T) {
	var r Right
	r.Init()
	got := make(chan struct{})
	go func() {
		r.Acquire()
		close(got)
	}()
	yield.Until(func() bool { return word(r.word.Load())&wanted != 0 })
	r.Give()
	assert.False(t, r.TryAcquire())
	<-got
	r.Give()
	assert.True(t, r.TryAcquire())
}

// granting is a right whose socket was granted to a watcher. back is closed when the receiver's
// goroutine has it again.
func granting(t *testing.T) (r *Right, back chan struct{}) {
	r, back = new(Right), make(chan struct{})
	r.Init()
	r.Begin()
	r.Patience = 0
	require.True(t, r.Watch(func() {
		go func() {
			r.Grant()
			close(back)
		}()
	}))
	return r, back
}

func TestASocketThatStaysFreeComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, back := granting(t)
		for range 3 { // watchers that come again and again keep it
			time.Sleep(tick / 2)
			r.Leave(false)
			time.Sleep(tick / 2)
			require.True(t, r.Watch(nil))
		}
		r.Leave(false)
		before := time.Now()
		<-back
		assert.LessOrEqual(t, time.Since(before), 2*tick)
		assert.True(t, r.Waits(Receiver))
	})
}

func TestAWatcherThatStaysLetsTheReceiversGoroutineSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, back := granting(t)
		time.Sleep(3 * tick)
		assert.Equal(t, quiet, word(r.word.Load()).phase())
		time.Sleep(time.Hour)
		r.Leave(false)
		before := time.Now()
		<-back
		assert.LessOrEqual(t, time.Since(before), 2*tick, "the watcher has woken it when it left")
	})
}

func TestASocketIsLentWhenManyHaveWaitedForIt(t *testing.T) {
	r := rightWith(own)
	asks := func() (n int) {
		for n = 1; word(r.word.Load()).phase() == own; n++ {
			r.do(func(w word) word { return w.wished(patience) })
		}
		return n - 1
	}
	for _, want := range []int{4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024} {
		assert.Equal(t, want, asks())
		r.do(grant.on)
		r.Leave(false)
		r.Reclaim()
	}
	r.do(func(w word) word { return w.needed() })
	assert.False(t, r.Watch(nil), "a goroutine sleeps in another way")
}
