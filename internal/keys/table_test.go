package keys

import (
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func same(key uint32) uint32 { return key }

func TestLookupFindsTheKeysThatLive(t *testing.T) {
	tab := New[uint32](1000)
	key, v, err := tab.Insert(same)
	require.NoError(t, err)

	assert.Equal(t, key, *v, "value gets the key that Insert returns")
	assert.Same(t, v, tab.Lookup(key))
	for _, other := range []uint32{key ^ 1, key + leastSlots, key ^ 1<<31, empty, spare, Smallest - 1} {
		assert.Nil(t, tab.Lookup(other), "%#x was never given out", other)
	}
	assert.Equal(t, 1, tab.Len())
}

func TestRemoveMakesDead(t *testing.T) {
	tab := New[uint32](3)
	key, v, err := tab.Insert(same)
	require.NoError(t, err)

	assert.True(t, tab.Remove(key))
	assert.Nil(t, tab.Lookup(key))
	assert.Equal(t, key, *v, "the value outlives its removal")
	assert.False(t, tab.Remove(key), "a second removal finds nothing")
	assert.False(t, tab.Remove(0))
	assert.Zero(t, tab.Len())
}

func TestALookUpNearARemovedKeyFindsNothing(t *testing.T) {
	tab := New[uint32](3)
	key, v, err := tab.Insert(same)
	require.NoError(t, err)
	other, w, err := tab.Insert(same)
	require.NoError(t, err)
	var n Near[uint32]
	assert.Nil(t, n.Lookup(key))
	assert.Nil(t, n.Lookup(0))
	assert.Same(t, v, tab.LookupNear(&n, key))
	assert.Same(t, v, n.Lookup(key))
	assert.Nil(t, n.Lookup(other))
	for range 2 {
		assert.Same(t, w, tab.LookupNear(&n, other))
		assert.Same(t, w, n.Lookup(other), "of two keys the first to be found last stays")
		assert.Nil(t, n.Lookup(key))
		assert.Same(t, v, tab.LookupNear(&n, key), "the one before is near, too")
	}
	assert.True(t, tab.Remove(other))
	for _, dead := range []uint32{other, 0, ^uint32(0)} {
		assert.Nil(t, n.Lookup(dead))
		assert.Nil(t, tab.LookupNear(&n, dead))
	}
	assert.Same(t, v, tab.LookupNear(&n, key), "the other key lives")
	third, x, err := tab.Insert(same)
	require.NoError(t, err)
	assert.Same(t, x, tab.LookupNear(&n, third))
	for _, k := range []uint32{third, key} {
		assert.True(t, tab.Remove(k))
		assert.Nil(t, n.Lookup(k))
		assert.Nil(t, tab.LookupNear(&n, k))
	}
}

func TestAFullTableTakesNoMoreKeys(t *testing.T) {
	for _, n := range []int{1, 2, 511, 512, 513, 2000} {
		tab := New[uint32](n)
		seen := make(map[uint32]bool)
		for range n {
			key, _, err := tab.Insert(same)
			require.NoError(t, err)
			require.False(t, seen[key], "every key is given once")
			require.GreaterOrEqual(t, key, uint32(Smallest))
			seen[key] = true
		}
		_, _, err := tab.Insert(func(uint32) uint32 { t.Error("value called on a full table"); return 0 })
		require.ErrorIs(t, err, ErrFull)
		require.Equal(t, n, tab.Len())
	}
}

func TestTheMemoryOfRemovedKeysIsBounded(t *testing.T) {
	tab := New[uint32](1000)
	live := make([]uint32, 0, 100)
	for range 100_000 {
		if len(live) == cap(live) {
			require.True(t, tab.Remove(live[0]))
			live = slices.Delete(live, 0, 1)
		}
		live = append(live, insert(t, tab))
	}
	assert.Len(t, tab.slots.resting, Rest)
	assert.LessOrEqual(t, len(tab.slots.slots()), 8*(Rest+cap(live)+1))
	assert.LessOrEqual(t, 2*tab.slots.used, len(tab.slots.slots()), "half of the places are empty")
	for _, key := range live {
		require.Equal(t, key, *tab.Lookup(key))
	}
}

func TestSizesAtTheLimits(t *testing.T) {
	for _, n := range []int{-1, 0} {
		assert.Panics(t, func() { New[int](n) })
	}
	for _, n := range []int{MaxEntries, MaxEntries + 1, math.MaxInt32} {
		assert.Equal(t, MaxEntries, New[uint32](n).slots.max)
	}
}

func TestTableAgreesWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "max")
		tab := New[uint32](n)
		alive, dead := map[uint32]*uint32{}, map[uint32]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				key, v, err := tab.Insert(same)
				if len(alive) == n {
					require.ErrorIs(t, err, ErrFull)
					return
				}
				require.NoError(t, err)
				require.NotContains(t, alive, key)
				alive[key] = v
				delete(dead, key)
			},
			"remove": func(t *rapid.T) {
				if len(alive) == 0 {
					return
				}
				keys := make([]uint32, 0, len(alive))
				for k := range alive {
					keys = append(keys, k)
				}
				slices.Sort(keys)
				key := rapid.SampledFrom(keys).Draw(t, "key")
				require.True(t, tab.Remove(key))
				delete(alive, key)
				dead[key] = true
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(alive), tab.Len())
				for k, v := range alive {
					require.Same(t, v, tab.Lookup(k))
				}
				for k := range dead {
					require.Nil(t, tab.Lookup(k))
				}
			},
		})
	})
}

// Readers look up while a writer inserts and removes: the race detector shows
// whether entries are published whole.
func TestLookupWhileOthersChangeTheTable(t *testing.T) {
	type pair struct{ a, b uint32 }
	tab := New[pair](300)
	var current sync.Map
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				current.Range(func(k, _ any) bool {
					if v := tab.Lookup(k.(uint32)); v != nil {
						assert.Equal(t, pair{k.(uint32), ^k.(uint32)}, *v)
					}
					return true
				})
			}
		})
	}
	for range 5000 {
		key, _, err := tab.Insert(func(key uint32) pair { return pair{key, ^key} })
		require.NoError(t, err)
		current.Store(key, nil)
		if key%3 != 0 {
			continue
		}
		current.Range(func(k, _ any) bool {
			tab.Remove(k.(uint32))
			current.Delete(k)
			return true
		})
	}
	close(stop)
	wg.Wait()
}

func TestLookupDoesNotAllocate(t *testing.T) {
	tab := New[uint32](10)
	key, _, err := tab.Insert(same)
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(100, func() { tab.Lookup(key) }))
}

func BenchmarkLookup(b *testing.B) {
	tab := New[[4]uint64](1 << 16)
	key, _, err := tab.Insert(func(key uint32) [4]uint64 { return [4]uint64{uint64(key)} })
	require.NoError(b, err)
	var sum uint64
	for b.Loop() {
		sum += tab.Lookup(key)[0]
	}
	_ = sum
}
