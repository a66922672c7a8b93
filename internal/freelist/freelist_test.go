package freelist

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryNumberIsHandedOutOnce(t *testing.T) {
	var l List
	l.Init(3)
	for want := range uint32(3) {
		n, ok := l.Take()
		require.True(t, ok)
		assert.Equal(t, want, n)
	}
	_, ok := l.Take()
	assert.False(t, ok, "none is left")
	l.Give(1)
	n, ok := l.Take()
	require.True(t, ok)
	assert.EqualValues(t, 1, n)
}

func TestAnEmptyListHasNothing(t *testing.T) {
	var l List
	l.Init(0)
	_, ok := l.Take()
	assert.False(t, ok)
}

func TestManyNumbersAreTakenAtOnce(t *testing.T) {
	var l List
	l.Init(4)
	buf := make([]uint32, 3)
	require.Equal(t, 3, l.TakeAll(buf))
	assert.Equal(t, []uint32{0, 1, 2}, buf)
	assert.Equal(t, 1, l.TakeAll(buf), "as many as there are")
	assert.EqualValues(t, 3, buf[0])
	assert.Zero(t, l.TakeAll(buf))
	l.Give(2)
	l.Give(0)
	require.Equal(t, 2, l.TakeAll(buf))
	assert.Equal(t, []uint32{0, 2}, buf[:2])
	assert.Zero(t, l.TakeAll(nil))
}

func TestNoNumberHasTwoHoldersAtATime(t *testing.T) {
	const numbers, goroutines, rounds = 3, 4, 3000
	var (
		l    List
		held [numbers]atomic.Int32
		wg   sync.WaitGroup
	)
	l.Init(numbers)
	for range goroutines {
		wg.Go(func() {
			for range rounds {
				// Each goroutine takes two numbers at a time, so that the order of
				// the free numbers changes.
				var buf [2]uint32
				taken := buf[:l.TakeAll(buf[:])]
				for _, n := range taken {
					assert.EqualValues(t, 1, held[n].Add(1))
				}
				if n, ok := l.Take(); ok {
					assert.EqualValues(t, 1, held[n].Add(1))
					taken = append(taken, n)
				}
				for _, n := range taken {
					held[n].Add(-1)
					l.Give(n)
				}
			}
		})
	}
	wg.Wait()
	for range numbers {
		_, ok := l.Take()
		assert.True(t, ok, "a number was lost")
	}
}

// If a head could come back with another list behind it, a goroutine that was held
// up in Take after loading it would put the wrong number first.
func TestAHeadNeverComesBack(t *testing.T) {
	var l List
	l.Init(3)
	seen := make(map[uint64]bool)
	for range 5 {
		a, _ := l.Take()
		b, _ := l.Take()
		l.Give(a)
		require.False(t, seen[l.head.Load()])
		seen[l.head.Load()] = true
		c, _ := l.Take()
		require.Equal(t, a, c)
		l.Give(b)
		l.Give(a)
	}
	for range 5 { // at once
		var two [2]uint32
		require.Equal(t, 2, l.TakeAll(two[:]))
		l.Give(two[0])
		require.False(t, seen[l.head.Load()])
		seen[l.head.Load()] = true
		require.Equal(t, 1, l.TakeAll(two[:1]))
		l.Give(two[1])
		l.Give(two[0])
	}
}
