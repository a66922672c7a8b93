package ring

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bounded is what SPSC and MPSC have in common.
type bounded interface {
	Push(*int) bool
	PushAll([]int) int
	Pop(*int) bool
	PopAll([]int) int
}

// Push and Pop are PushAll and PopAll of one value.
func (r *SPSC[T]) Push(v *T) bool { return r.PushAll([]T{*v}) == 1 }

func (r *SPSC[T]) Pop(v *T) bool {
	var buf [1]T
	if r.PopAll(buf[:]) == 0 {
		return false
	}
	*v = buf[0]
	return true
}

var boundedRings = map[string]func(capacity int) bounded{
	"SPSC": func(n int) bounded { return NewSPSC[int](n) },
	"MPSC": func(n int) bounded { return NewMPSC[int](n) },
}

func TestARingHoldsAsManyValuesAsItWasMadeFor(t *testing.T) {
	for name, make := range boundedRings {
		for _, capacity := range []int{1, 2, 31, 32, 33, 64, 1000} {
			r := make(capacity)
			n := 0
			for r.Push(&n) {
				n++
			}
			assert.GreaterOrEqual(t, n, capacity, name)
			assert.LessOrEqual(t, n, capacity+spare, name)
			assert.Zero(t, r.PushAll([]int{1}), "%s is full", name)
			for want := range n {
				got := -1
				require.True(t, r.Pop(&got))
				require.Equal(t, want, got, name)
			}
			var x int
			assert.False(t, r.Pop(&x), "%s is empty", name)
		}
	}
}

func TestEmptyRingHasAllPlacesBack(t *testing.T) {
	const capacity = 8
	for name, make := range boundedRings {
		r := make(capacity)
		all := 0
		for r.Push(&all) {
			all++
		}
		// However the places were taken, all are free once Pop has found nothing.
		for round := range 100 {
			var x int
			for r.Pop(&x) {
			}
			n := 0
			for r.Push(&n) {
				n++
			}
			require.Equal(t, all, n, "%s, round %d", name, round)
		}
	}
}

func TestPushAllTakesWhatFits(t *testing.T) {
	for name, make := range boundedRings {
		r := make(10)
		all := [1000]int{}
		for i := range all {
			all[i] = i
		}
		n := r.PushAll(all[:])
		assert.GreaterOrEqual(t, n, 10, name)
		assert.Less(t, n, len(all), name)
		assert.Zero(t, r.PushAll(all[n:]), name)
		out := [1000]int{}
		assert.Equal(t, 3, r.PopAll(out[:3]), name)
		assert.Equal(t, n-3, r.PopAll(out[3:]), name)
		assert.Equal(t, all[:n], out[:n], name)
		assert.Zero(t, r.PopAll(out[:]), name)
		assert.Zero(t, r.PushAll(nil), name)
	}
}

func TestSPSCSaysHowMuchItWouldTake(t *testing.T) {
	r := NewSPSC[int](4)
	assert.True(t, r.Empty())
	free := r.Free()
	x := 1
	require.True(t, r.Push(&x))
	assert.False(t, r.Empty())
	assert.Equal(t, free-1, r.Free())
	assert.Equal(t, free-1, r.PushAll(make([]int, free+5)))
	assert.Zero(t, r.Free())
	r.PopAll(make([]int, free))
	assert.True(t, r.Empty())
	assert.Equal(t, free, r.Free())
}

func TestUnpublishedValueHoldsUpThoseBehindIt(t *testing.T) {
	r := NewReserved[int](8)
	first := r.tail.Add(1) - 1 // claimed, not published
	r.PutAll([]int{2})
	r.PutAll([]int{3, 4})
	assert.EqualValues(t, 4, r.Tail())
	assert.Zero(t, r.Ready(1))
	assert.Zero(t, r.Take(make([]int, 4)))
	batch := r.ClaimAll(2)
	r.At(batch).Value, r.At(batch+1).Value = 5, 6
	r.At(batch).PublishAll(batch, 2)
	assert.Zero(t, r.Ready(1))
	r.publishAll(first, []int{1})
	assert.EqualValues(t, 1, r.Ready(1))
	assert.EqualValues(t, 4, r.Ready(3), "a batch counts as a whole")
	out := make([]int, 3)
	assert.Equal(t, 3, r.Take(out))
	assert.Equal(t, []int{1, 2, 3}, out)
	assert.EqualValues(t, 3, r.Next())
	assert.Equal(t, 3, r.Take(out), "the rest of a batch, and values that were filled where they lie")
	assert.Equal(t, []int{4, 5, 6}, out)
}

func TestTheCellsOfABatchLieInStretches(t *testing.T) {
	r := NewReserved[int](4)
	r.PutAll([]int{1, 2, 3})
	r.Take(make([]int, 3))
	first := r.ClaimAll(3)
	one := r.Stretch(first, 3)
	two := r.Stretch(first+uint64(len(one)), 3-len(one))
	assert.Len(t, one, 1)
	assert.Len(t, two, 2)
	for i, c := range []*Cell[int]{&one[0], &two[0], &two[1]} {
		assert.Same(t, r.At(first+uint64(i)), c)
	}
}

// A batch leaves the words of its later cells as they were, from an earlier round;
// the consumer must not take such a word for a new batch.
func TestWordsOfEarlierRoundsAnnounceNothing(t *testing.T) {
	r := NewReserved[int](4)
	out := make([]int, 4)
	for lap := range 100 {
		for n := 1; n <= 4; n++ {
			in := []int{lap, n, lap + n, 7}[:n]
			r.PutAll(in)
			require.Equal(t, n, r.Take(out))
			require.Equal(t, in, out[:n])
			require.Zero(t, r.Take(out))
			require.Zero(t, r.Ready(1))
			r.PutAll(out[:1])
			require.Equal(t, 1, r.Take(out))
			require.Zero(t, r.Take(out))
		}
	}
}

func TestPutAllSplitsWhatOneWordCantCount(t *testing.T) {
	const n = maxBatch + 10
	in := make([]byte, n)
	for i := range in {
		in[i] = byte(i)
	}
	r := NewReserved[byte](n)
	r.PutAll(in)
	out := make([]byte, n)
	require.Equal(t, n, r.Take(out))
	assert.Equal(t, in, out)
}

func TestBatchesAreFoundAtHighPositions(t *testing.T) {
	r := NewReserved[int](4)
	const far = 1<<48 - 2 // the positions of words wrap at 2^48
	r.tail.Store(far)
	r.next, r.avail = far, far
	out := make([]int, 4)
	for i := range 10 {
		r.PutAll([]int{i, i + 1})
		require.Equal(t, 2, r.Take(out), i)
		require.Equal(t, []int{i, i + 1}, out[:2])
	}
}

func TestSidesLieOnTheirOwnCacheLines(t *testing.T) {
	var r Reserved[int]
	assert.Less(t, unsafe.Offsetof(r.cells)/64, unsafe.Offsetof(r.tail)/64)
	assert.Less(t, unsafe.Offsetof(r.tail)/64, unsafe.Offsetof(r.next)/64)
	assert.Equal(t, unsafe.Offsetof(r.next)/64, unsafe.Offsetof(r.avail)/64)
	assert.Zero(t, unsafe.Sizeof(r)%64)
	var m MPSC[int]
	assert.Less(t, unsafe.Offsetof(m.limit)/64, unsafe.Offsetof(m.credit)/64)
	var s SPSC[int]
	for _, pair := range [][2]uintptr{
		{unsafe.Offsetof(s.limit), unsafe.Offsetof(s.tail)},
		{unsafe.Offsetof(s.room), unsafe.Offsetof(s.published)},
		{unsafe.Offsetof(s.published), unsafe.Offsetof(s.next)},
		{unsafe.Offsetof(s.avail), unsafe.Offsetof(s.credit)},
	} {
		assert.Less(t, pair[0]/64, pair[1]/64)
	}
	var c Cell[[7]uint64]
	assert.EqualValues(t, 64, unsafe.Sizeof(c))
}

func TestNothingAllocates(t *testing.T) {
	s, m, r := NewSPSC[int](8), NewMPSC[int](8), NewReserved[int](8)
	x, buf := 0, make([]int, 4)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		s.Push(&x)
		s.Pop(&x)
		s.PushAll(buf)
		s.PopAll(buf)
		m.Push(&x)
		m.Pop(&x)
		m.PushAll(buf)
		m.PopAll(buf)
		r.PutAll(buf[:1])
		r.PutAll(buf[:2])
		r.Take(buf)
	}))
}
