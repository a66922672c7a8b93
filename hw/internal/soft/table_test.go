package soft

import (
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/hw"
	"godat/internal/yield"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// area makes a region of new memory, whose first byte requests name by addr.
func area(z *Zone, size int, addr uint64) (Region, unsafe.Pointer) {
	base := unsafe.Pointer(unsafe.SliceData(make([]byte, size)))
	return Region{Base: base, Size: uint64(size), Addr: addr, Zone: z, Priv: hw.AllPrivileges}, base
}

func newTable(max int) *Table {
	t := &Table{}
	t.slots.Init(max)
	return t
}

func TestADeadKeyNamesNoRegion(t *testing.T) {
	var z Zone
	tab := newTable(1000)
	r, base := area(&z, 8, 100)
	key, err := tab.insert(r)
	require.NoError(t, err)
	v := NewView(tab, &QP{Zone: &z})
	assert.Equal(t, r, tab.Lookup(key))
	assert.Equal(t, base, v.Reach(100, 8, key, hw.LocalRead))
	for _, other := range []uint32{0, 1, key ^ 1, key + 256, key - 256, ^uint32(0)} {
		assert.Zero(t, tab.Lookup(other))
		assert.Nil(t, v.Reach(100, 8, other, hw.LocalRead))
	}
	assert.True(t, tab.restrict(key, hw.LocalWrite))
	assert.Nil(t, v.Reach(100, 8, key, hw.LocalWrite))
	assert.Equal(t, base, v.Reach(100, 8, key, hw.LocalRead))
	for range 2 {
		tab.remove(key)
		assert.Zero(t, tab.Len())
	}
	assert.Zero(t, tab.Lookup(key))
	assert.Nil(t, v.Reach(100, 8, key, hw.LocalRead))
	tab.set(key, &r)
	assert.False(t, tab.restrict(key, hw.LocalRead))
	assert.Zero(t, tab.Lookup(key), "it stays dead")
}

// The place in which a view found a region becomes another key's. The view then finds
// neither region under the other's key.
func TestAViewFindsARegionByItsKeyThoughItFoundAnotherInItsPlace(t *testing.T) {
	var z Zone
	tab := newTable(2)
	v := NewView(tab, &QP{Zone: &z})
	old, a := area(&z, 8, 100)
	was, err := tab.insert(old)
	require.NoError(t, err)
	require.Equal(t, a, v.Reach(100, 8, was, hw.LocalRead))
	tab.remove(was)
	assert.Nil(t, v.Reach(100, 8, was, hw.LocalRead), "the key is dead")
	now, b := area(&z, 8, 100)
	key, err := tab.insert(now)
	require.NoError(t, err)
	require.Same(t, v.near, tab.slots.Find(key))
	assert.Nil(t, v.Reach(100, 8, was, hw.LocalRead))
	assert.Equal(t, b, v.Reach(100, 8, key, hw.LocalRead))
	far, c := area(&z, 8, 100)
	other, err := tab.insert(far)
	require.NoError(t, err)
	for range 2 {
		assert.Equal(t, c, v.Reach(100, 8, other, hw.LocalRead))
		assert.Equal(t, b, v.Reach(100, 8, key, hw.LocalRead))
	}
}

// The key dies at any point of a look-up, and another region takes its place: the
// look-up never returns pieces of both regions.
func TestALookUpFindsOneRegionOrNone(t *testing.T) {
	var z Zone
	for name, change := range map[string]func(tab *Table, key uint32, to Region){
		"another region under the same key": func(tab *Table, key uint32, to Region) { tab.set(key, &to) },
		"another key in the same place": func(tab *Table, key uint32, to Region) {
			tab.remove(key)
			_, err := tab.insert(to)
			require.NoError(t, err)
		},
		"the same key again": func(tab *Table, key uint32, to Region) {
			// As if the table drew the same key again, after a long rest.
			p := tab.slots.Find(key)
			tab.remove(key)
			p.set(key, &to)
		},
	} {
		for _, way := range []string{"Reach", "Reach and Reach", "Reach and Again"} {
			t.Run(name+", "+way, func(t *testing.T) {
				yield.Interleave(func() (first, second, check func()) {
					tab := newTable(1)
					old, a := area(&z, 64, 0)
					now, b := area(&z, 64, 32)
					key, err := tab.insert(old)
					require.NoError(t, err)
					v := NewView(tab, &QP{Zone: &z})
					look := v.Reach
					if way != "Reach" {
						require.Equal(t, a, v.Reach(0, 8, key, hw.LocalRead))
					}
					if way == "Reach and Again" {
						look = v.Again
					}
					var got unsafe.Pointer
					return func() { got = look(32, 8, key, hw.LocalRead) },
						func() { change(tab, key, now) },
						func() { assert.Contains(t, []unsafe.Pointer{nil, unsafe.Add(a, 32), b}, got) }
				})
			})
		}
	}
}

// Under -race this shows that look-ups and changes of places do not race.
func TestLookUpsDoNotRaceWithChangesOfTheTable(t *testing.T) {
	var zones [2]Zone
	tab := newTable(1) // one place for all
	var regions [2]Region
	for i := range regions {
		regions[i], _ = area(&zones[i], 64, uint64(i)*1000)
	}
	current := make(chan uint32, 1)
	var wg sync.WaitGroup
	for i := range zones {
		wg.Go(func() {
			v := NewView(tab, &QP{Zone: &zones[i]})
			for key := range current {
				if p := v.Reach(regions[i].Addr, 64, key, hw.LocalRead); p != nil {
					assert.Equal(t, regions[i].Base, p)
				}
				if r := tab.Lookup(key); r != (Region{}) {
					assert.Contains(t, regions, r)
				}
			}
		})
	}
	for n := range 3000 {
		key, err := tab.insert(regions[n%2])
		require.NoError(t, err)
		current <- key
		tab.set(key, &regions[(n+1)%2])
		tab.remove(key)
	}
	close(current)
	wg.Wait()
}

func TestABindOfAWindowAllocatesNothing(t *testing.T) {
	var d Device
	d.Init(Config{
		Provider: "test",
		Attr:     hw.Attr{MaxMR: 1 << 20, MaxMRs: 100, MaxWindows: 100, MaxZones: 1},
	})
	zone, err := d.NewZone()
	require.NoError(t, err)
	mr, err := d.Register(zone, make([]byte, 64), hw.AllPrivileges)
	require.NoError(t, err)
	q := &QP{Zone: zone.(*Zone)}
	h, err := d.NewWindow(zone, nil)
	require.NoError(t, err)
	w := h.(*Window)
	b := hw.Bind{Window: w, MR: mr, Addr: d.Keys.Lookup(mr.LKey()).Addr, Len: 8, Priv: hw.RemoteRead}
	queue := &SendQueue{}
	queue.Init(4)
	wrs := []hw.SendWR{{Op: hw.OpBind, Bind: &b}}
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		b.Key = w.NextKey()
		if queue.Push(wrs) != 1 {
			t.Error("no room")
		}
		queue.Freed.Add(1)
		SpendBinds(wrs)
		ok, _, _ := w.BeginBind(q, &b)
		if !ok || !w.EndBind(q, &b) {
			t.Error("not bound")
		}
	}))
	assert.Equal(t, 2, d.Keys.Len(), "the region's and the window's")
}
