package token

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/internal/yield"
)

func TestATokenMovesOnWhenItsAccessHasEnded(t *testing.T) {
	for name, c := range map[string]struct {
		then func(*Counted)
		want bool
	}{
		"nothing":                      {func(*Counted) {}, false},
		"a kick":                       {func(c *Counted) { c.TakeOrKick() }, false},
		"a kick that the holder sees":  {func(c *Counted) { c.TakeOrKick(); c.Release() }, false},
		"a step":                       {func(c *Counted) { c.Step() }, true},
		"a release":                    {func(c *Counted) { c.Release() }, true},
		"a release of the short way":   {func(c *Counted) { c.ReleaseIf(0) }, true},
		"another hold":                 {func(c *Counted) { c.Release(); c.TakeOrKick() }, true},
		"another hold, of a short way": {func(c *Counted) { c.ReleaseIf(0); c.TryTake() }, true},
		"a hand-over":                  {func(c *Counted) { c.Leave() }, true},
	} {
		var counted Counted
		require.True(t, counted.TakeOrKick())
		w := counted.Load()
		c.then(&counted)
		assert.Equal(t, c.want, counted.MovedOn(w), name)
	}
}

// area is memory that its owner takes away and gives back.
type area struct {
	Counted
	there     atomic.Bool
	low, high int // the same, while the memory is there
	unequal   int // how often a holder found them not to be
}

func (a *area) access() {
	if a.there.Load() {
		for range 20 { // which widens the window in builds without yields
			low := a.low
			yield.Point()
			if a.high != low {
				a.unequal++
			}
		}
	}
}

func (a *area) change() {
	a.there.Store(false)
	if w := a.Load(); w&Held != 0 {
		yield.Until(func() bool { return a.MovedOn(w) })
	}
	a.low++
	yield.Point()
	a.high++
	a.there.Store(true)
}

func TestNoHolderAccessesMemoryAfterItMovedOn(t *testing.T) {
	for name, hold := range map[string]func(*area){
		"holds of one access": func(a *area) {
			w, ok := a.TryTake()
			assert.True(t, ok)
			a.access()
			assert.True(t, a.ReleaseIf(w))
		},
		"a hold that steps": func(a *area) {
			assert.True(t, a.TakeOrKick())
			a.access()
			a.Step()
			a.access()
			assert.True(t, a.Release())
		},
		"a hold that is left and resumed": func(a *area) {
			assert.True(t, a.TakeOrKick())
			a.access()
			a.Leave()
			yield.Point()
			a.Resume()
			a.access()
			assert.True(t, a.Release())
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &area{}
			a.there.Store(true)
			require.True(t, yield.Meet(20_000, 20*time.Second, func() { hold(a) }, a.change))
			assert.Zero(t, a.unequal)
		})
	}
}
