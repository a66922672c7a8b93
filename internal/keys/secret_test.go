package keys

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seeded makes a table whose draws are the same in every run, so that a test that
// counts them can't fail by chance.
func seeded(max int, seed byte) *Table[uint32] {
	t := New[uint32](max)
	rng := rand.NewChaCha8([32]byte{seed})
	t.slots.draw = func() uint32 { return uint32(rng.Uint64()) }
	return t
}

func insert(t testing.TB, tab *Table[uint32]) uint32 {
	t.Helper()
	key, _, err := tab.Insert(same)
	require.NoError(t, err)
	return key
}

// requireUniform demands that the counts are those of a fair draw, by the
// chi-squared statistic: its mean is the number of counts less one, and its
// deviation the root of twice that. A fair draw is five deviations off once in
// millions of runs.
func requireUniform(t *testing.T, counts []int, what string) {
	t.Helper()
	total := 0
	for _, n := range counts {
		total += n
	}
	want := float64(total) / float64(len(counts))
	chi := 0.0
	for _, n := range counts {
		chi += (float64(n) - want) * (float64(n) - want) / want
	}
	free := float64(len(counts) - 1)
	require.InDelta(t, free, chi, 5*math.Sqrt(2*free), "%s are not drawn alike", what)
}

// watch counts how each of the four bytes of one key follows from the same byte of
// another: by difference and by exclusive or.
type watch [2][4][]int

func newWatch() (w watch) {
	for i := range w {
		for j := range w[i] {
			w[i][j] = make([]int, 256)
		}
	}
	return w
}

func (w *watch) see(known, other uint32) {
	for i, d := range [2]uint32{other - known, other ^ known} {
		for j := range w[i] {
			w[i][j][d>>(8*j)&0xff]++
		}
	}
}

func (w *watch) requireUniform(t *testing.T, what string) {
	t.Helper()
	for i, how := range [2]string{"differences", "exclusive ors"} {
		for j := range w[i] {
			requireUniform(t, w[i][j], "bytes of "+how+" of "+what)
		}
	}
}

func TestAKeyTellsNothingOfTheNextOne(t *testing.T) {
	tab := seeded(1<<20, 1)
	w := newWatch()
	known := insert(t, tab)
	for range 1 << 16 {
		next := insert(t, tab)
		w.see(known, next)
		known = next
	}
	w.requireUniform(t, "keys given out one after the other")
}

// A peer that was given a region sees it freed and another region registered in its
// place, as in a server that registers memory for each request.
func TestAFreedKeyTellsNothingOfItsSuccessor(t *testing.T) {
	for _, max := range []int{1, 1 << 20} {
		tab := seeded(max, 2)
		w := newWatch()
		for range 1 << 15 {
			old := insert(t, tab)
			require.True(t, tab.Remove(old))
			next := insert(t, tab)
			w.see(old, next)
			require.True(t, tab.Remove(next))
		}
		w.requireUniform(t, "a key freed and the next")
	}
}

// While one key lives on that a peer never saw, the peer may see very many keys
// come and go: more than the table has places. Keys that belong at the place of the
// hidden key, or near it, must come as often as others do; otherwise the peer knows
// the low bits of the hidden key.
func TestManyKeysTellNothingOfOneThatLives(t *testing.T) {
	const tables, seen = 32, 1 << 13
	var alike [33]int // by the number of low bits that are alike
	for i := range tables {
		tab := seeded(1<<20, byte(i))
		hidden := insert(t, tab)
		for range seen {
			key := insert(t, tab)
			for n := range bits.TrailingZeros32(key^hidden) + 1 {
				alike[n]++
			}
			require.True(t, tab.Remove(key))
		}
		require.Less(t, len(tab.slots.slots()), seen)
	}
	for n := range 13 {
		want := float64(tables*seen) / float64(int(1)<<n)
		assert.InDelta(t, want, alike[n], 5*math.Sqrt(want), "keys with %d low bits of the one that lives", n)
	}
}

func TestEveryBitOfAKeyIsDrawn(t *testing.T) {
	const n = 1 << 16
	tab := seeded(1<<20, 3)
	var ones [32]int
	for range n {
		for key := insert(t, tab); key != 0; key &= key - 1 {
			ones[bits.TrailingZeros32(key)]++
		}
	}
	for i, count := range ones {
		assert.InDelta(t, n/2, count, 5*math.Sqrt(n)/2, "bit %d", i)
	}
}

func TestEachTableDrawsForItself(t *testing.T) {
	seen := make(map[uint32]bool)
	for range 100 {
		seen[insert(t, New[uint32](1))] = true
	}
	assert.Greater(t, len(seen), 98)
}

// script makes a table that draws the numbers of the returned slice, first to last,
// and takes each out of it.
func script(max int, numbers ...uint32) (*Table[uint32], *[]uint32) {
	tab := New[uint32](max)
	tab.slots.draw = func() uint32 {
		next := numbers[0]
		numbers = numbers[1:]
		return next
	}
	return tab, &numbers
}

func TestAFreedKeyIsNotSeenAgainSoon(t *testing.T) {
	const old uint32 = 1 << 31
	tab, draws := script(1000, old)
	require.Equal(t, old, insert(t, tab))
	require.True(t, tab.Remove(old))
	for i := range uint32(Rest) {
		*draws = []uint32{old, 1<<30 | i}
		key := insert(t, tab)
		require.Equal(t, 1<<30|i, key, "the key of %d removals ago rests", i)
		require.Empty(t, *draws)
		require.True(t, tab.Remove(key))
		require.Nil(t, tab.Lookup(old))
	}
	*draws = []uint32{old}
	assert.Equal(t, old, insert(t, tab), "it is a number like any other from then on")
}

func TestANumberThatIsInUseOrSmallIsDrawnAgain(t *testing.T) {
	tab, draws := script(1000, 0, 1, Smallest-1, Smallest, Smallest, math.MaxUint32)
	assert.EqualValues(t, Smallest, insert(t, tab))
	assert.Equal(t, uint32(math.MaxUint32), insert(t, tab))
	assert.Empty(t, *draws)
}

// Keys with the same low bits lie one behind the other. Each is found whichever of
// the others is removed, has rested or is entered. Behind the last place of the
// array comes the first.
func TestKeysThatMeetAreAllFound(t *testing.T) {
	const low = leastSlots - 1
	tab, draws := script(1000)
	for i := range uint32(5) {
		*draws = append(*draws, (i+1)<<20|low)
	}
	var live []uint32
	for range 5 {
		live = append(live, insert(t, tab))
	}
	gone := []uint32{live[1], live[2]}
	for _, key := range gone {
		require.True(t, tab.Remove(key))
	}
	check := func() {
		t.Helper()
		for _, key := range []uint32{live[0], live[3], live[4]} {
			require.Equal(t, key, *tab.Lookup(key))
		}
		for _, key := range append([]uint32{7<<20 | low, low, empty, spare}, gone...) {
			require.Nil(t, tab.Lookup(key))
		}
	}
	check()
	for i := range uint32(Rest) {
		*draws = []uint32{1<<31 | i*67}
		require.True(t, tab.Remove(insert(t, tab)))
	}
	check()
	*draws = []uint32{6<<20 | low}
	key := insert(t, tab)
	require.Equal(t, key, *tab.Lookup(key))
	check()
}
