package journal

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"godat/examples/volume/entry"
	"godat/examples/volume/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var layout = Layout{Nodes: 2, Slots: 3, SlotSize: 2 * page}

// fill fills the first n bytes of a slot with data like no other's, and names it.
func fill(t require.TestingT, j *Journal, slot uint32, n int, seed uint64) entry.Entry {
	b, err := j.Slot(slot, n)
	require.NoError(t, err)
	for at := 0; at < n; at += 16 {
		binary.LittleEndian.PutUint64(b[at:], seed)
		binary.LittleEndian.PutUint64(b[at+8:], uint64(slot)<<32|uint64(at))
	}
	return entry.Entry{Op: entry.Write, Len: uint32(n), Slot: slot}.Sealed(b)
}

func TestAJournalIsOpenedAgainAfterAKill(t *testing.T) {
	s := fault.New(layout.Size())
	j, err := Open(s, layout)
	require.NoError(t, err)
	e := fill(t, j, 4, 4096, 1)
	again, err := Open(s, layout)
	require.NoError(t, err)
	data, err := again.Data(&e)
	require.NoError(t, err)
	assert.Len(t, data, 4096)
}

func TestAJournalOfAnotherLayoutIsRefused(t *testing.T) {
	s := fault.New(layout.Size())
	_, err := Open(s, layout)
	require.NoError(t, err)
	_, err = Open(s, Layout{Nodes: 3, Slots: 2, SlotSize: 2 * page})
	require.ErrorContains(t, err, "another layout")
	s.Flip(3)
	_, err = Open(s, layout)
	require.ErrorContains(t, err, "is none")
	_, err = Open(fault.New(layout.Size()-1), layout)
	require.ErrorContains(t, err, "bytes of")
	for _, l := range []Layout{{}, {Nodes: 1, Slots: 1, SlotSize: 5}, {Nodes: -1, Slots: 1, SlotSize: page}, {Nodes: 1 << 20, Slots: 1 << 20, SlotSize: page}, {Nodes: 1, Slots: 1, SlotSize: math.MaxInt &^ (page - 1)}} {
		_, err = Open(s, l)
		require.ErrorContains(t, err, "layout", l)
	}
}

func TestAByteThatFlipsInASlotIsFound(t *testing.T) {
	s := fault.New(layout.Size())
	j, err := Open(s, layout)
	require.NoError(t, err)
	e := fill(t, j, 5, 8192, 1)
	for _, at := range []int{0, 1, 4095, 8191} {
		s.Flip(j.Offset(5) + at)
		_, err = j.Data(&e)
		require.ErrorIs(t, err, ErrOther, at)
		s.Flip(j.Offset(5) + at)
	}
	_, err = j.Data(&e)
	require.NoError(t, err)
}

func TestASlotIsSummedOnceUntilSomebodyWritesToIt(t *testing.T) {
	s := fault.New(layout.Size())
	j, err := Open(s, layout)
	require.NoError(t, err)
	passes := func(f func(), want int) {
		t.Helper()
		before := entry.Passes()
		f()
		assert.Equal(t, want, int(entry.Passes()-before))
	}
	e, other := fill(t, j, 4, 4096, 1), fill(t, j, 5, 4096, 2)
	is := func(e entry.Entry, err error) func() {
		return func() {
			_, got := j.Data(&e)
			require.ErrorIs(t, got, err)
		}
	}
	passes(is(e, nil), 1)
	passes(is(e, nil), 0)
	passes(is(other, nil), 1)
	moved := e
	moved.Off += 512
	passes(is(moved, ErrOther), 1)
	passes(is(e, nil), 0)
	j.Forget(4)
	again := fill(t, j, 4, 4096, 3)
	passes(is(e, ErrOther), 1)
	passes(is(again, nil), 1)
	passes(func() { again, err = j.Seal(again) }, 1)
	require.NoError(t, err)
	passes(is(again, nil), 0)
	_, err = j.Seal(entry.Entry{Slot: 99, Len: 512})
	require.ErrorContains(t, err, "no slot")
	life, _ := j.has(&e)
	j.Forget(4)
	j.know(&again, life) // it was summed while somebody began to write
	passes(is(again, nil), 1)
}

func TestASlotThatIsNotThereIsAnError(t *testing.T) {
	j, err := Open(fault.New(layout.Size()), layout)
	require.NoError(t, err)
	for _, e := range []entry.Entry{{Slot: 6, Len: 512}, {Slot: 1 << 31, Len: 512}, {Len: 2*page + 512}} {
		_, err := j.Data(&e)
		require.ErrorContains(t, err, "no slot")
	}
}

func TestAfterASyncThatFailedAllFail(t *testing.T) {
	s := fault.New(layout.Size())
	j, err := Open(s, layout)
	require.NoError(t, err)
	e := fill(t, j, 0, 512, 1)
	s.FailAfter(0)
	require.ErrorIs(t, j.Sync([]entry.Entry{e}), fault.ErrDisk)
	s.Repair()
	require.ErrorIs(t, j.Sync([]entry.Entry{e}), fault.ErrDisk)
}

// TestWhatWasSyncedIsThereAfterAPowerCut compares a journal with a map of what was synced.
func TestWhatWasSyncedIsThereAfterAPowerCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := fault.New(layout.Size())
		j, err := Open(s, layout)
		require.NoError(t, err)
		synced, filled := make(map[uint32]entry.Entry), make(map[uint32]entry.Entry)
		seed := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"fill": func(t *rapid.T) {
				slot := rapid.Uint32Range(0, 5).Draw(t, "slot")
				seed++
				delete(synced, slot)
				filled[slot] = fill(t, j, slot, rapid.IntRange(1, 16).Draw(t, "blocks")*512, seed)
			},
			"sync": func(t *rapid.T) {
				var some []entry.Entry
				for slot := range uint32(6) {
					if e, ok := filled[slot]; ok && rapid.Bool().Draw(t, "this") {
						some = append(some, e)
						synced[slot] = e
					}
				}
				require.NoError(t, j.Sync(some))
			},
			"cut the power": func(t *rapid.T) {
				s.Fail(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
				clear(filled)
			},
			"kill": func(*rapid.T) {},
			"": func(t *rapid.T) {
				j, err = Open(s, layout)
				require.NoError(t, err)
				for _, e := range synced {
					_, err := j.Data(&e)
					require.NoError(t, err)
				}
			},
		})
	})
}
