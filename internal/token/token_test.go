package token

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/internal/yield"
)

// held is what Token and Counted have in common.
type held interface {
	Load() uint64
	Check()
	Swap(w, next uint64) bool
	TryTake() (w uint64, ok bool)
	TakeOrKick() bool
	Release() bool
	ReleaseIf(w uint64) bool
	Leave()
	Resume()
}

// shop has work that goroutines leave for the holder of its token.
type shop struct {
	held
	left    atomic.Int64
	tickets atomic.Int64 // taken from the user's bits of the word

	// Owned by the token's holder.
	done   int64 // of left
	direct int64 // done by a poster that left nothing
}

// run does what is left, and releases the token.
func (s *shop) run() {
	for {
		s.work()
		yield.Point()
		if s.Release() {
			return
		}
	}
}

func (s *shop) work() {
	s.Check()
	for left := s.left.Load(); s.done < left; {
		s.done++
	}
}

// leave leaves work, and makes sure that a holder does it.
func (s *shop) leave() {
	s.left.Add(1)
	yield.Point()
	if s.TakeOrKick() {
		s.run()
	}
}

// handOver is leave, in which a holder leaves the token to another one.
func (s *shop) handOver() {
	s.left.Add(1)
	yield.Point()
	if s.TakeOrKick() {
		s.Leave()
		yield.Point()
		s.Resume()
		s.run()
	}
}

// short does a piece of work by itself if the token is free.
func (s *shop) short() {
	w, ok := s.TryTake()
	if !ok {
		s.leave()
		return
	}
	s.direct++
	yield.Point()
	if !s.ReleaseIf(w) {
		s.run()
	}
}

// ticket takes a ticket, and the token in the same swap if it is free.
func (s *shop) ticket() {
	for {
		w := s.Load()
		yield.Point()
		if !s.Swap(w, (w+1)|Held) {
			continue
		}
		s.tickets.Add(1)
		yield.Point()
		if w&Held != 0 {
			s.leave()
			return
		}
		s.direct++
		yield.Point()
		if !s.ReleaseIf(w + 1) {
			s.run()
		}
		return
	}
}

// check looks at the shop when all that left something have returned.
func (s *shop) check(t *testing.T) {
	w := s.Load()
	require.Zero(t, w&flags, "the token is free")
	if _, ok := s.held.(*Token); ok {
		require.EqualValues(t, s.tickets.Load(), w, "no ticket is lost")
	}
	require.Equal(t, s.left.Load(), s.done)
}

// eachPair tests two ways to leave work beside each other, for each pair of ways and with
// both kinds of tokens.
func eachPair(t *testing.T, test func(t *testing.T, open func() *shop, first, second func(*shop))) {
	ways := map[string]func(*shop){
		"kick": (*shop).leave, "short": (*shop).short, "ticket": (*shop).ticket, "hand over": (*shop).handOver,
	}
	for kind, open := range map[string]func() *shop{
		"plain":   func() *shop { return &shop{held: &Token{}} },
		"counted": func() *shop { return &shop{held: &Counted{}} },
	} {
		for name, first := range ways {
			for beside, second := range ways {
				t.Run(kind+" "+name+" beside "+beside, func(t *testing.T) { test(t, open, first, second) })
			}
		}
	}
}

func TestWorkLeftAtAnyPointOfAHoldIsDone(t *testing.T) {
	eachPair(t, func(t *testing.T, open func() *shop, first, second func(*shop)) {
		yield.Interleave(func() (_, _, check func()) {
			s := open()
			return func() { first(s) }, func() { second(s) }, func() {
				assert.EqualValues(t, 2, s.done+s.direct)
				s.check(t)
			}
		})
	})
}

// A holder that was kicked clears the kick, and nothing else, and looks for work after that.
func TestWorkLeftAtAnyPointOfAReleaseAfterAKickIsDone(t *testing.T) {
	eachPair(t, func(t *testing.T, open func() *shop, first, second func(*shop)) {
		yield.Interleave(func() (_, _, check func()) {
			s := open()
			_, ok := s.TryTake()
			require.True(t, ok)
			first(s)
			return s.run, func() { second(s) }, func() {
				assert.EqualValues(t, 2, s.done+s.direct)
				s.check(t)
			}
		})
	})
}

// The holder releases the token while a goroutine is about to kick it.
func TestWorkLeftWhileTheHolderReleasesIsDone(t *testing.T) {
	eachPair(t, func(t *testing.T, open func() *shop, first, second func(*shop)) {
		yield.Interleave(func() (_, _, check func()) {
			s := open()
			_, ok := s.TryTake()
			require.True(t, ok)
			return func() { first(s) }, func() { // the holder has looked for work
					if !s.Release() {
						s.run()
					}
					second(s)
				}, func() {
					assert.EqualValues(t, 2, s.done+s.direct)
					s.check(t)
				}
		})
	})
}

func TestWorkLeftOnTwoProcessorsIsDone(t *testing.T) {
	eachPair(t, func(t *testing.T, open func() *shop, first, second func(*shop)) {
		s := open()
		var returned atomic.Int64
		rounds, lost := int64(0), 0
		together := yield.Meet(2_000, 20*time.Second, func() {
			first(s)
			rounds++
			yield.Until(func() bool { return returned.Load() == rounds })
			if s.done+s.direct != 2*rounds || s.Load()&Held != 0 {
				lost++
			}
		}, func() {
			second(s)
			returned.Add(1)
		})
		require.True(t, together)
		assert.Zero(t, lost, "rounds with work left undone")
		s.check(t)
	})
}

func TestATokenHasOneHolder(t *testing.T) {
	s := &shop{held: &Token{}}
	w, ok := s.TryTake()
	require.True(t, ok)
	_, again := s.TryTake()
	assert.False(t, again)
	assert.False(t, s.TakeOrKick())
	assert.False(t, s.ReleaseIf(w), "it was kicked")
	assert.False(t, s.TakeOrKick(), "a second kick changes nothing")
	assert.False(t, s.Release(), "it was kicked")
	assert.True(t, s.Release())
	assert.Zero(t, s.Load())
	assert.True(t, s.TakeOrKick())
	assert.True(t, s.ReleaseIf(0))
}
