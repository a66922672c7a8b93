package guest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// watched has a clock read at a rate until it has a judgement. Each message takes up to
// delay, to the host and to the guest.
func watched(t *testing.T, rate float64, delay time.Duration, seed uint64) (verdict string, took time.Duration, c *clock) {
	t.Helper()
	c = &clock{}
	rnd := rand.New(rand.NewPCG(seed, 1))
	wait := func() time.Duration { return time.Duration(rnd.Int64N(int64(delay) + 1)) }
	guest := func(host time.Duration) string { return fmt.Sprintf("%.2f", 3+rate*host.Seconds()) }
	host, after := time.Duration(0), ""
	for range 10000 {
		before := guest(host)
		host += wait()
		verdict, err := c.read(host, before+after)
		require.NoError(t, err)
		if verdict != clockAgain {
			return verdict, host, c
		}
		host += wait()
		after = " " + guest(host)
		host += 500 * time.Millisecond
	}
	t.Fatal("no judgement")
	return "", 0, nil
}

func TestAClockIsJudgedByItsRateWhateverTheDelays(t *testing.T) {
	for _, delay := range []time.Duration{0, 5 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond} {
		for _, w := range []struct {
			rate float64
			want string
		}{{1, clockRight}, {1.005, clockRight}, {0.995, clockRight}, {12, clockWrong}, {1.0 / 12, clockWrong}, {1.05, clockWrong}, {0.95, clockWrong}} {
			for seed := range uint64(20) {
				verdict, took, c := watched(t, w.rate, delay, seed)
				assert.Equal(t, w.want, verdict, "rate %g, delays up to %v: %v", w.rate, delay, c)
				assert.LessOrEqual(t, c.low, w.rate)
				assert.GreaterOrEqual(t, c.high, w.rate)
				assert.LessOrEqual(t, took, clockTime)
			}
		}
	}
}

func TestAClockIsNeverJudgedAgainstItsRate(t *testing.T) {
	for seed := range uint64(300) {
		rate := 0.9 + 0.2*float64(seed)/300
		verdict, took, c := watched(t, rate, time.Duration(seed)*10*time.Millisecond, seed)
		switch verdict {
		case clockRight:
			assert.InDelta(t, 1, rate, clockLimit, "%v", c)
		case clockWrong:
			assert.Greater(t, math.Abs(rate-1), clockLimit, "%v", c)
		default:
			assert.Equal(t, clockUnknown, verdict)
			assert.Greater(t, took, clockTime)
		}
	}
}

func TestAReadingThatIsNoneIsAnError(t *testing.T) {
	for _, reports := range [][]string{{""}, {"x"}, {"1.0 2.0"}, {"1.0", "2.0"}, {"1.0", "2.0 x"}, {"1.0", "x 1.5"}} {
		c := &clock{}
		var err error
		for i, r := range reports {
			require.NoError(t, err)
			_, err = c.read(time.Duration(i)*time.Second, r)
		}
		require.Error(t, err, "%q", reports)
	}
}

func TestTheCountersRateIsTheSameEachTime(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		assert.Zero(t, readCounter().rate())
		return
	}
	first := readCounter().rate()
	assert.Greater(t, first, 100_000)
	for range 3 {
		assert.InEpsilon(t, first, readCounter().rate(), clockLimit/4)
	}
}
