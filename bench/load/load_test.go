package load

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/bench/lane"
)

func TestMain(m *testing.M) {
	threadClockCost() // which a test whose clock stands still would find to be 0
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

func TestARateIsReadAndWrittenAlike(t *testing.T) {
	for text, want := range map[string]Rate{"closed": Closed, "max": Max, "10k": 10_000, "1.5M": 1_500_000, "250": 250, "2.5k": 2500} {
		var r Rate
		require.NoError(t, r.UnmarshalText([]byte(text)), text)
		assert.InDelta(t, float64(want), float64(r), 0, text)
		assert.Equal(t, text, r.String())
	}
	for _, text := range []string{"", "k", "-1", "0", "0.1", "NaN", "Inf", "2000M", "10kk", "fast"} {
		var r Rate
		assert.ErrorContains(t, r.UnmarshalText([]byte(text)), "no rate", text)
	}
}

// stalling is a channel whose consumer takes a long time with one message.
type stalling struct {
	*lane.Channel
	at, taken int
	long      time.Duration
}

func (s *stalling) Take(f func(int) bool) error {
	return s.Channel.Take(func(slot int) bool {
		if s.taken == s.at {
			time.Sleep(s.long)
		}
		s.taken++
		return f(slot)
	})
}

// asleep is a driver that sleeps where others spin, so that a test's clock advances.
func asleep(l lane.Lane, producers int) *Driver {
	d := NewDriver(l, producers)
	d.pace = func(base time.Time, until time.Duration) { time.Sleep(until - time.Since(base)) }
	d.yield = func() { time.Sleep(time.Microsecond) }
	return d
}

// At 1000 a second, a stall of 10 ms delays the ten messages that were to be posted
// meanwhile, by 10 ms, 9 ms, ….
func TestAStallCountsForAllMessagesThatWereToBePostedMeanwhile(t *testing.T) {
	for name, depth := range map[string]int{"room for all": 64, "the poster waits for room": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stalling{Channel: lane.NewChannel(depth), at: 5, long: 10 * time.Millisecond}
				r, err := asleep(s, 1).Run(Load{Rate: 1000, Depth: depth, Duration: 100 * time.Millisecond})
				require.NoError(t, err)
				assert.EqualValues(t, 100, r.Count)
				assert.False(t, r.Saturated)
				assert.InDelta(t, 10*time.Millisecond, r.Latency.Max(), float64(100*time.Microsecond))
				assert.InDelta(t, time.Millisecond, r.Latency.ValueAtQuantile(91), float64(100*time.Microsecond))
				assert.Less(t, r.Latency.ValueAtQuantile(90), int64(100*time.Microsecond))
			})
		})
	}
}

func TestIntendedTimesDontDependOnTheMessagesBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stalling{Channel: lane.NewChannel(1), at: 0, long: 20 * time.Millisecond}
		r, err := asleep(s, 1).Run(Load{Rate: 1000, Depth: 1, Duration: 50 * time.Millisecond})
		require.NoError(t, err)
		assert.EqualValues(t, 50, r.Count, "the poster catches up")
		assert.InDelta(t, 49*time.Millisecond, r.Took, float64(time.Millisecond))
	})
}

func TestALoadAboveWhatTheConsumerTakesIsSaturated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slow{lane.NewChannel(4)}
		r, err := asleep(slow, 1).Run(Load{Rate: 10_000, Depth: 4, Duration: 50 * time.Millisecond})
		require.NoError(t, err)
		assert.True(t, r.Saturated)
		assert.Less(t, r.Took, 150*time.Millisecond, "an overloaded run ends all the same")
	})
}

// slow is a channel whose consumer takes a millisecond with each message.
type slow struct{ *lane.Channel }

func (s *slow) Take(f func(int) bool) error {
	return s.Channel.Take(func(slot int) bool {
		time.Sleep(time.Millisecond)
		return f(slot)
	})
}

func TestEachRunTakesWhatItHasPosted(t *testing.T) {
	d := NewDriver(lane.NewChannel(4), 1)
	for _, rate := range []Rate{Closed, Max, Closed, Max} {
		r, err := d.Run(Load{Rate: rate, Depth: 4, Duration: 2 * time.Millisecond})
		require.NoError(t, err)
		assert.Positive(t, r.Count)
		assert.Equal(t, r.Count, r.Latency.TotalCount())
	}
}

func TestAnOpenLoopNeedsAProcessorForEachProducerAndTheConsumer(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l := lane.NewChannel(2)
	one, two := NewDriver(l, 1), NewDriver(l, 2)
	open := Load{Rate: 1000, Depth: 2}
	require.ErrorIs(t, one.Refuse(open), ErrProcessors)
	require.NoError(t, one.Refuse(Load{Rate: Closed, Depth: 1}))
	runtime.GOMAXPROCS(2)
	require.NoError(t, one.Refuse(open))
	require.ErrorIs(t, two.Refuse(open), ErrProcessors)
	require.NoError(t, two.Refuse(Load{Rate: Max, Depth: 2}), "at max a producer yields when it has no room")
}

func TestALaneWhosePostWaitsIsNotMeasuredInClosedLoop(t *testing.T) {
	pipe := lane.NewPipe(lane.Config{Size: 64, Depth: 1})
	defer pipe.Close()
	d := NewDriver(pipe, 1)
	require.ErrorIs(t, d.Refuse(Load{Rate: Closed, Depth: 1}), ErrPostWaits)
	require.NoError(t, d.Refuse(Load{Rate: Max, Depth: 1}))
}

func TestSeveralProducersNeedRoomAndALoadOfTheirOwn(t *testing.T) {
	d := NewDriver(lane.NewChannel(4), 3)
	require.ErrorIs(t, d.Refuse(Load{Rate: Closed, Depth: 4}), ErrProducers)
	require.ErrorIs(t, d.Refuse(Load{Rate: Max, Depth: 2}), ErrDepth)
	require.NoError(t, d.Refuse(Load{Rate: Max, Depth: 4}))
}

func TestEveryMessageOfSeveralProducersIsTaken(t *testing.T) {
	d := NewDriver(lane.NewChannel(6), 3)
	for range 2 {
		r, err := d.Run(Load{Rate: Max, Depth: 6, Duration: 2 * time.Millisecond})
		require.NoError(t, err)
		assert.GreaterOrEqual(t, r.Count, int64(3))
		assert.Equal(t, r.Count, r.Latency.TotalCount())
	}
}

// 1000 a second by two producers is 500 a second by each, in turns.
func TestProducersShareARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := asleep(lane.NewChannel(4), 2)
		r, err := d.Run(Load{Rate: 1000, Depth: 4, Duration: 100 * time.Millisecond})
		require.NoError(t, err)
		assert.EqualValues(t, 100, r.Count)
		assert.InDelta(t, 99*time.Millisecond, r.Took, float64(time.Millisecond))
		assert.Less(t, r.Latency.Max(), int64(100*time.Microsecond))
		assert.Equal(t, []int64{50, 50}, d.posted)
	})
}

// counting is a channel that counts the messages that are outstanding.
type counting struct {
	*lane.Channel
	now, most atomic.Int64
}

func (c *counting) Post(slot int) error {
	c.most.Store(max(c.most.Load(), c.now.Add(1))) // one goroutine posts
	return c.Channel.Post(slot)
}

func (c *counting) Take(f func(int) bool) error {
	return c.Channel.Take(func(slot int) bool {
		c.now.Add(-1)
		return f(slot)
	})
}

func TestAsManyMessagesAreOutstandingAsTheDepthSays(t *testing.T) {
	for _, rate := range []Rate{Closed, Max} {
		c := &counting{Channel: lane.NewChannel(6)}
		_, err := NewDriver(c, 1).Run(Load{Rate: rate, Depth: 6, Duration: 2 * time.Millisecond})
		require.NoError(t, err)
		assert.LessOrEqual(t, c.most.Load(), int64(6), rate)
		if rate == Closed { // in which nobody takes meanwhile
			assert.EqualValues(t, 6, c.most.Load())
		}
	}
}

func TestTheErrorOfAConsumerEndsProducersWithoutRoom(t *testing.T) {
	broken := errors.New("broken")
	_, err := NewDriver(&failing{lane.NewChannel(2), broken}, 2).Run(Load{Rate: Max, Depth: 2, Duration: time.Hour})
	require.ErrorIs(t, err, broken)
}

func TestTheErrorOfAConsumerEndsTheRun(t *testing.T) {
	broken := errors.New("broken")
	_, err := NewDriver(&failing{lane.NewChannel(2), broken}, 1).Run(Load{Rate: Closed, Depth: 2, Duration: time.Second})
	require.ErrorIs(t, err, broken)
}

type failing struct {
	*lane.Channel
	err error
}

func (f *failing) Take(func(int) bool) error { return f.err }

func TestALatencyLiesWithinTheWidthOfItsEntry(t *testing.T) {
	for _, ns := range []int64{1, 2, 128, 255, 256, 257, 511, 512, 1023, 1024, 99_999, 1 << 30} {
		h := newHistogram()
		require.NoError(t, h.RecordValue(ns))
		told := h.ValueAtQuantile(50)
		assert.LessOrEqual(t, ns, told)
		assert.Greater(t, float64(ns), float64(told)-Width(float64(told)), ns)
		assert.LessOrEqual(t, Width(float64(told)), max(1, float64(told)/127), "two digits")
	}
}

// fragile is a connection whose post with a number fails.
type fragile struct {
	*lane.Conn
	posts atomic.Int64
	last  int64
}

var errFragile = errors.New("no room")

func (f *fragile) Post(slot int) error {
	if f.posts.Add(1) > f.last {
		return errFragile
	}
	return f.Conn.Post(slot)
}

func TestAPostThatFailsRefusesTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		rate      Rate
		producers int
		last      int64
	}{
		"the first of a closed loop":     {Closed, 1, 0},
		"a later one of a closed loop":   {Closed, 1, 20},
		"the first of an open loop":      {100_000, 1, 0},
		"a later one of an open loop":    {100_000, 1, 20},
		"one of several producers":       {Max, 3, 20},
		"the first of several producers": {Max, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := lane.NewTCP(lane.Config{Size: 64, Depth: 6, Producers: c.producers})
			require.NoError(t, err)
			d := NewDriver(&fragile{Conn: conn, last: c.last}, c.producers)
			ld := Load{Rate: c.rate, Depth: 6, Duration: time.Hour}
			_, err = d.Run(ld)
			var refusal Refusal
			require.ErrorAs(t, err, &refusal)
			require.EqualError(t, err, "a post failed: no room")
			require.ErrorAs(t, d.Refuse(ld), &refusal, "the lane is closed, and measures nothing any more")
			_, err = d.Run(ld)
			require.ErrorAs(t, err, &refusal)
			require.NoError(t, d.Close())
		})
	}
}
