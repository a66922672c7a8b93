package soft

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/internal/yield"
)

// accessor accesses memory while its count is odd.
type accessor struct {
	present Presence
	word    atomic.Uint32
	count   atomic.Uint64
	looks   int    // calls of InProgress
	onLook  func() // called after each
}

const absentBit = 4

func newAccessor(z *Zone) *accessor {
	a := &accessor{}
	a.present.Init(z, a, &a.word, absentBit)
	return a
}

func (a *accessor) begin() {
	a.count.Add(1)
	yield.Point()
	if a.word.Load()&absentBit != 0 {
		a.present.Enter()
	}
}

func (a *accessor) end() { a.count.Add(1) }

func (a *accessor) InProgress() (count uint64, busy bool) {
	count = a.count.Load()
	a.looks++
	if a.onLook != nil {
		a.onLook()
	}
	return count, count&1 != 0
}

func (a *accessor) Over(count uint64) bool { return a.count.Load() != count }

// What a wait costs does not grow with what is idle: it looks once at each accessor that has
// been at work since the last look, and at none that never was.
func TestAWaitLooksAtNothingThatStaysIdle(t *testing.T) {
	z := &Zone{}
	all := make([]*accessor, 10_000)
	for i := range all {
		all[i] = newAccessor(z)
	}
	z.Await()
	assert.Zero(t, z.Looks(), "none was at work")
	for _, a := range all {
		a.begin()
		a.end()
	}
	for range 10 {
		z.Await()
	}
	assert.EqualValues(t, len(all), z.Looks())
	all[17].begin()
	all[17].end()
	z.Await()
	z.Await()
	assert.EqualValues(t, len(all)+1, z.Looks(), "one was at work again")
}

func TestAnAccessorStaysInTheSetWhileItIsAtWork(t *testing.T) {
	z := &Zone{}
	busy, idle := newAccessor(z), newAccessor(z)
	for range 2 {
		idle.begin()
		idle.end()
		busy.begin()
		for range 3 {
			all := z.InProgress(nil, nil)
			require.Len(t, all, 1)
			assert.False(t, all[0].Over())
			assert.Empty(t, z.InProgress(busy, nil), "that is the caller itself")
		}
		now := z.InProgress(nil, nil)
		busy.end()
		assert.True(t, now[0].Over())
	}
	assert.Empty(t, z.InProgress(nil, nil))
	busy.begin()
	busy.present.Leave()
	busy.present.Leave()
	assert.Empty(t, z.InProgress(nil, nil), "it has left")
}

// An access begins behind each look at an accessor that was idle. Either the accessor is found
// at work by the next look, or it finds its bit set and waits for the lock.
func TestAnAccessThatBeginsBesideALookIsNotOverlooked(t *testing.T) {
	for _, look := range []int{1, 2} {
		z := &Zone{}
		a := newAccessor(z)
		a.begin()
		a.end()
		entered := make(chan struct{})
		a.onLook = func() {
			if a.looks == look {
				a.count.Add(1)
				if a.word.Load()&absentBit == 0 {
					close(entered)
					return
				}
				go func() {
					a.present.Enter()
					close(entered)
				}()
			}
		}
		first := z.InProgress(nil, nil)
		<-entered
		a.onLook = nil
		assert.Len(t, z.InProgress(nil, nil), 1, "a key that it looks up now may die from here on")
		if look == 1 {
			assert.Len(t, first, 1, "it may have looked up the key that died")
		}
	}
}

// page is memory that its owner takes away and gives back.
type page struct {
	there     atomic.Bool
	low, high int // the same, while the memory is there
	unequal   int // how often an access found them not to be
}

func (m *page) access() {
	if m.there.Load() {
		for range 20 { // which widens the window in builds without yields
			low := m.low
			yield.Point()
			if m.high != low {
				m.unequal++
			}
		}
	}
}

// Under -race this shows, too, that no access comes behind a wait.
func TestNoAccessIsInProgressBehindAWait(t *testing.T) {
	z, m := &Zone{}, &page{}
	m.there.Store(true)
	a := newAccessor(z)
	access := func() {
		a.begin()
		m.access()
		a.end()
	}
	change := func() {
		m.there.Store(false)
		z.Await()
		m.low++
		yield.Point()
		m.high++
		m.there.Store(true)
	}
	require.True(t, yield.Meet(20_000, 30*time.Second, access, change))
	assert.Zero(t, m.unequal)
}
