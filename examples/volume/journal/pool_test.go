package journal

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestASlotIsFreeWhenAllReplicasHaveReleasedItsEntry(t *testing.T) {
	p := NewPool(Layout{Nodes: 3, Slots: 2, SlotSize: page}, 1, 10, 2, 1, 2, 3)
	_, ok := p.Take()
	require.False(t, ok, "an earlier term may have named it")
	for _, id := range []uint64{1, 2, 3} {
		require.Zero(t, p.Free())
		p.Release(id, 10)
	}
	require.Equal(t, 2, p.Free())
	slot, ok := p.Take()
	require.True(t, ok)
	assert.Contains(t, []uint32{2, 3}, slot, "a node fills its own slots")
	p.Name(slot, 12)
	p.Release(1, 12)
	p.Release(2, 20)
	p.Release(3, 11)
	assert.Equal(t, 1, p.Free())
	id, released := p.Behind()
	assert.Equal(t, [2]uint64{3, 11}, [2]uint64{id, released})
	p.Leave(3)
	assert.Equal(t, 2, p.Free(), "the one that held it has left")
}

func TestASlotThatWasDroppedIsFree(t *testing.T) {
	p := NewPool(Layout{Nodes: 1, Slots: 1, SlotSize: page}, 0, 1, 1, 1)
	p.Release(1, 1)
	slot, _ := p.Take()
	p.Drop(slot)
	assert.Equal(t, 1, p.Free())
	assert.Panics(t, func() { p.Drop(slot) })
	assert.Panics(t, func() { p.Name(slot, 2) })
}

func TestAPoolWithoutAMajorityFreesNothing(t *testing.T) {
	p := NewPool(Layout{Nodes: 1, Slots: 1, SlotSize: page}, 0, 1, 2, 1, 2)
	p.Release(1, 1)
	p.Leave(2)
	require.Zero(t, p.Free())
	require.True(t, p.Join(2, 1))
	p.Release(1, 1)
	require.Zero(t, p.Free(), "the second one does not have the entry yet")
	p.Release(2, 0)
	require.Zero(t, p.Free())
	p.Release(2, 1)
	require.Equal(t, 1, p.Free())
}

func TestAReplicaJoinsIfTheSlotsThatItNeedsAreThere(t *testing.T) {
	p := NewPool(Layout{Nodes: 1, Slots: 2, SlotSize: page}, 0, 1, 1, 1, 2)
	p.Release(1, 1)
	p.Release(2, 1)
	slot, _ := p.Take()
	p.Name(slot, 5)
	p.Leave(2)
	require.True(t, p.Join(2, 4))
	p.Release(1, 5)
	require.Equal(t, 1, p.Free(), "it holds the slot")
	p.Leave(2)
	require.Equal(t, 2, p.Free())
	require.False(t, p.Join(2, 4))
	require.True(t, p.Join(2, 5))
}

// TestAPoolIsOneThatSearches compares a pool with one that looks at all entries and all
// replicas each time.
func TestAPoolIsOneThatSearches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Layout{Nodes: 2, Slots: rapid.IntRange(1, 4).Draw(t, "slots"), SlotSize: page}
		p := NewPool(l, 1, 1, 1, 1, 2, 3)
		named := make(map[uint32]uint64) // the index by which a slot was named last
		for i := range l.Slots {
			named[uint32(l.Slots+i)] = 1
		}
		filling := make(map[uint32]bool)
		released := map[uint64]uint64{1: 0, 2: 0, 3: 0}
		joining := make(map[uint64]bool)
		last := uint64(1)
		busy := func() (n int) {
			for slot, index := range named {
				held := len(released) == 0
				for _, r := range released {
					held = held || r < index
				}
				if held && !filling[slot] {
					n++
				}
			}
			return n
		}
		some := func(t *rapid.T) uint64 { return rapid.Uint64Range(1, 4).Draw(t, "replica") }
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				before := busy()
				slot, ok := p.Take()
				require.Equal(t, ok, before+len(filling) < l.Slots)
				if ok {
					require.False(t, filling[slot])
					filling[slot] = true
					require.Equal(t, before, busy(), "it was free")
				}
			},
			"name or drop": func(t *rapid.T) {
				for slot := range uint32(2 * l.Slots) {
					if !filling[slot] {
						continue
					}
					delete(filling, slot)
					if rapid.Bool().Draw(t, "drop") {
						delete(named, slot)
						p.Drop(slot)
						return
					}
					last += rapid.Uint64Range(1, 3).Draw(t, "entries")
					named[slot] = last
					p.Name(slot, last)
					return
				}
			},
			"release": func(t *rapid.T) {
				id, index := some(t), rapid.Uint64Range(0, last).Draw(t, "index")
				p.Release(id, index)
				if r, ok := released[id]; ok && index >= r {
					released[id] = index
					joining[id] = false
				}
			},
			"leave": func(t *rapid.T) {
				id := some(t)
				whole := 0 // of the others
				for other := range released {
					if other != id && !joining[other] {
						whole++
					}
				}
				if whole > 0 {
					p.Leave(id)
					delete(released, id)
				}
			},
			"join": func(t *rapid.T) {
				id := some(t)
				index := rapid.Uint64Range(0, last).Draw(t, "index")
				if _, ok := released[id]; !ok && p.Join(id, index) {
					released[id] = index
					joining[id] = true
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, l.Slots-busy()-len(filling), p.Free())
			},
		})
	})
}

func TestAReplicaHoldsSlotsThatAllOthersHaveReleased(t *testing.T) {
	p := NewPool(Layout{Nodes: 1, Slots: 1, SlotSize: page}, 0, 1, 2, 1, 2, 3)
	assert.False(t, p.Holds(3), "the others need them, too")
	p.Release(1, 1)
	assert.False(t, p.Holds(3))
	p.Release(2, 1)
	assert.True(t, p.Holds(3))
	assert.False(t, p.Holds(2))
	p.SetMajority(3)
	assert.False(t, p.Holds(3), "the others are no majority")
	p.SetMajority(2)
	p.Leave(3)
	assert.False(t, p.Holds(3), "it holds nothing any more")
	require.Equal(t, 1, p.Free())
}
