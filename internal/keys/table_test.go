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

func TestLookup(t *testing.T) {
	tab := New[uint32](1000)
	key, v, err := tab.Insert(same)
	require.NoError(t, err)

	assert.Equal(t, key, *v, "value gets the key that Insert returns")
	assert.Same(t, v, tab.Lookup(key))
	assert.Nil(t, tab.Lookup(key^1), "another generation is dead")
	assert.Nil(t, tab.Lookup(key+1<<genBits), "another index is dead")
	assert.Nil(t, tab.Lookup(0))
	assert.Nil(t, tab.Lookup(^uint32(0)), "an index beyond the table is dead")
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

func TestFullTable(t *testing.T) {
	for _, n := range []int{1, 2, 511, 512, 513, 2000} {
		tab := New[uint32](n)
		seen := make(map[uint32]bool)
		for range n {
			key, _, err := tab.Insert(same)
			require.NoError(t, err)
			index := key >> genBits
			require.False(t, seen[index], "every index is given once")
			require.NotZero(t, index)
			require.LessOrEqual(t, index, uint32(n))
			seen[index] = true
		}
		_, _, err := tab.Insert(func(uint32) uint32 { t.Error("value called on a full table"); return 0 })
		require.ErrorIs(t, err, ErrFull)
		require.Equal(t, n, tab.Len())
	}
}

func TestIndexesAreReusedFirstInFirstOutWithAnotherGeneration(t *testing.T) {
	const n = 100
	tab := New[uint32](n)
	var keys []uint32
	for range n {
		key, _, err := tab.Insert(same)
		require.NoError(t, err)
		keys = append(keys, key)
	}
	for _, key := range keys {
		require.True(t, tab.Remove(key))
	}
	for _, old := range keys {
		key, _, err := tab.Insert(same)
		require.NoError(t, err)
		require.Equal(t, old>>genBits, key>>genBits)
		require.NotEqual(t, old, key)
		require.Nil(t, tab.Lookup(old))
	}
}

func TestAnIndexRestsBeforeItIsReused(t *testing.T) {
	tab := New[uint32](1000)
	recent := make([]uint32, 0, rest)
	for range 5000 {
		key, _, err := tab.Insert(same)
		require.NoError(t, err)
		require.NotContains(t, recent, key>>genBits)
		if len(recent) == rest {
			recent = slices.Delete(recent, 0, 1)
		}
		recent = append(recent, key>>genBits)
		require.True(t, tab.Remove(key))
	}
	assert.LessOrEqual(t, len(tab.indexes.freed), 2*rest+3, "the memory of removed keys is bounded")
}

func TestTheFirstKeyIsRandom(t *testing.T) {
	seen := make(map[uint32]bool)
	for range 20 {
		key, _, err := New[uint32](1 << 20).Insert(same)
		require.NoError(t, err)
		seen[key] = true
	}
	assert.Greater(t, len(seen), 10)
}

func TestSizesAtTheLimits(t *testing.T) {
	for _, n := range []int{-1, 0} {
		assert.Panics(t, func() { New[int](n) })
	}
	for _, n := range []int{MaxEntries, MaxEntries + 1, math.MaxInt32} {
		tab := New[uint32](n)
		assert.EqualValues(t, MaxEntries, tab.indexes.max)
		tab.indexes.next = MaxEntries
		for _, index := range []uint32{MaxEntries, 1} {
			key, v, err := tab.Insert(same)
			require.NoError(t, err)
			assert.Equal(t, index, key>>genBits)
			assert.Same(t, v, tab.Lookup(key))
		}
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

// Readers look up while a writer inserts and removes: under -race this shows
// that entries are published whole.
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
