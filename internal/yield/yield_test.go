package yield

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"godat/internal/owner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPointsMayBePassedByManyGoroutinesAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				Point()
			}
		})
	}
	wg.Wait()
	assert.Zero(t, testing.AllocsPerRun(100, Point))
}

// On one processor a goroutine runs until it yields, so the number of turns of
// another goroutine tells how often the points yielded.
func TestPointsYieldUnderRaceAndNowhereElse(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var (
		turns atomic.Int64
		stop  atomic.Bool
		wg    sync.WaitGroup
	)
	wg.Go(func() {
		for !stop.Load() {
			turns.Add(1)
			runtime.Gosched()
		}
	})
	runtime.Gosched()
	before := turns.Load()
	Seed(1)
	for range 4096 {
		Point()
	}
	got := turns.Load() - before
	stop.Store(true)
	wg.Wait()
	if owner.Enabled {
		// 1 in 8, and some of them 16 times.
		assert.Greater(t, got, int64(300))
		assert.Less(t, got, int64(1600))
	} else {
		// Preemption only, if even that.
		assert.Less(t, got, int64(10))
	}
}

func TestInterleaveMeetsEveryPoint(t *testing.T) {
	var rounds []string
	Interleave(func() (first, second, check func()) {
		text := ""
		return func() {
				text += "a"
				Point()
				text += "b"
				Point()
				text += "c"
			},
			func() {
				text += "-"
				Point() // begins no round of its own
			},
			func() { rounds = append(rounds, text) }
	})
	want := []string{"abc-"}
	if owner.Enabled {
		want = []string{"a-bc", "ab-c", "abc-"}
	}
	assert.Equal(t, want, rounds)
}

func TestInterleaveTwoMeetsEveryPairOfPoints(t *testing.T) {
	var rounds []string
	InterleaveTwo(func() (first, second, third, check func()) {
		text := ""
		return func() {
				text += "a"
				Point()
				text += "b"
				Point()
				text += "c"
			},
			func() {
				text += "-"
				Point() // counts for nothing
			},
			func() { text += "+" },
			func() { rounds = append(rounds, text) }
	})
	want := []string{"abc-+"}
	if owner.Enabled {
		want = []string{"a-+bc", "a-b+c", "a-bc+", "ab-+c", "ab-c+", "abc-+"}
	}
	assert.Equal(t, want, rounds)
}

func TestAMeetingWithoutTimeEndsAfterARoundOfBoth(t *testing.T) {
	first, second := 0, 0
	assert.True(t, Meet(1<<30, time.Millisecond, func() { first++ }, func() { second++ }))
	assert.Equal(t, first, second)
}
