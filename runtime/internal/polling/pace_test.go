package polling

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

const testPrice = 10 * time.Microsecond

// gapped is a pace to which gaps happen, in a bubble of synctest, whose clock stands still but
// for what the test sleeps. A poll takes pollTime.
type gapped struct {
	pace
	counts counts
	paid   time.Duration // for polls in vain and for sleeps
	late   time.Duration // how much longer a wake-up takes than was measured
}

// learning is how many short gaps it takes at most until the pace polls on.
const learning = mostGaps * probeEvery

const pollTime = 500 * time.Nanosecond

func newGapped() *gapped { return &gapped{pace: pace{price: testPrice, each: pollTime}} }

// gap lets the device be empty for a while. It reports whether the pace slept.
func (g *gapped) gap(d time.Duration) (slept bool) {
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		if !g.again(&g.counts) {
			g.sleeps(&g.counts)
			time.Sleep(max(0, time.Until(end)) + testPrice + g.late) // it runs again later
			g.paid += testPrice
			slept = true
			break
		}
		time.Sleep(pollTime)
		g.paid += pollTime
	}
	g.found(1, &g.counts)
	return slept
}

func TestADeviceWithShortGapsIsPolledOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGapped()
		sleeps := 0
		for range learning {
			if g.gap(testPrice / 2) {
				sleeps++
			}
		}
		assert.False(t, g.gap(testPrice/2))
		assert.Equal(t, time.Duration(g.counts.spun.Load()), g.paid-time.Duration(sleeps)*testPrice)
	})
}

func TestPollsThatNeverEndAreCountedMeanwhile(t *testing.T) {
	var c counts
	p := newPace(math.MaxInt)
	for n := range 10 * toldEvery {
		assert.InDelta(t, time.Duration(n)*leastEach, time.Duration(c.spun.Load()), float64(toldEvery*leastEach), n)
		p.again(&c)
	}
	p.found(1, &c)
	assert.Equal(t, 10*toldEvery*leastEach, time.Duration(c.spun.Load()), "each is counted once")
}

func TestADeviceWithLongGapsSleepsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGapped()
		for range learning {
			g.gap(testPrice / 2)
		}
		for range 16 {
			before := g.paid
			g.gap(time.Millisecond)
			assert.LessOrEqual(t, g.paid-before, 2*testPrice, "it polls in vain for as long as a sleep costs, and no longer")
		}
		before := time.Duration(g.counts.spun.Load())
		for range 100 * probeEvery {
			g.gap(time.Millisecond)
		}
		assert.InDelta(t, 100*testPrice, time.Duration(g.counts.spun.Load())-before, float64(40*testPrice), "it looks at one gap of sixteen")
	})
}

func TestASleeperSeesThatGapsBecomeShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGapped()
		for range 100 {
			g.gap(time.Millisecond)
		}
		for range learning {
			g.gap(testPrice / 2)
		}
		for range 2 * probeEvery {
			assert.False(t, g.gap(testPrice/2), "it sleeps still")
		}
	})
}

// Where a wake-up takes longer than was measured, and the next completion comes only after
// the last one was seen to, each gap looks long to a sleeper.
func TestASleeperWhoWakesLateSeesThatGapsAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGapped()
		for range 100 {
			g.gap(time.Millisecond)
		}
		g.late = 5 * testPrice
		sleeps := 0
		for range 100 * probeEvery {
			if g.gap(testPrice / 2) {
				sleeps++
			}
		}
		assert.LessOrEqual(t, sleeps, 2*probeEvery)
	})
}

// A gap that outlasts the polls is long, however soon the sleep behind them ends.
func TestGapsALittleLongerThanASleepAreLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGapped()
		for range learning {
			g.gap(testPrice / 2)
		}
		for range 64 {
			g.gap(testPrice + testPrice/4)
		}
		before := g.counts.spun.Load()
		for range 100 * probeEvery {
			g.gap(testPrice + testPrice/4)
		}
		assert.LessOrEqual(t, time.Duration(g.counts.spun.Load()-before), (140+2*longGaps*5/4)*testPrice, "one look in sixteen gaps, and two long ones")
	})
}

func TestCompletionsThatCameDuringASleepShortenTheGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGapped()
		g.probe = learning
		for range mostGaps {
			g.again(&g.counts)
			g.sleeps(&g.counts)
			time.Sleep(50 * testPrice)
			g.found(64, &g.counts)
		}
		assert.True(t, g.again(&g.counts))
	})
}

func TestPollsInVainEndBesideOthersThatHaveTheProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGapped()
		for range 16 {
			g.found(1, &g.counts)
		}
		polls := 0
		for g.again(&g.counts) {
			time.Sleep(time.Millisecond) // others run
			polls++
		}
		assert.EqualValues(t, testPrice/pollTime-1, polls, "what others use is not its own")
	})
}

func TestRoundsOfTheProgramsReplaceTheGaps(t *testing.T) {
	for rounds, want := range map[int]int{-1: 0, 1: 1, 20: 20} {
		p := newPace(rounds)
		for range 3 {
			polls := 0
			for p.again(new(counts)) {
				polls++
			}
			assert.Equal(t, want, polls)
			p.sleeps(new(counts))
			assert.False(t, p.again(new(counts)), "a wake-up in vain begins no polls")
			p.found(1, new(counts))
		}
	}
}

// A pace that knew each gap before it begins would pay for the gap or for a sleep, whichever is less. A
// tenth more than twice that is for chance, and for looks at gaps that are expected to be long.
func TestNoMixOfGapsCostsMuchMoreThanTwiceTheBest(t *testing.T) {
	for _, short := range []int{0, 10, 30, 45, 50, 55, 70, 90, 100} { // percent
		for seed := range uint64(2) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, uint64(short)))
				g := newGapped()
				var best time.Duration
				for range 1000 {
					d := testPrice + time.Duration(rng.ExpFloat64()*1e6)
					if rng.IntN(100) < short {
						d = time.Duration(rng.IntN(int(testPrice)-1) + 1)
					}
					best += min(d, testPrice)
					g.gap(d)
				}
				assert.Less(t, float64(g.paid), 2.2*float64(best), "%d %% of the gaps are short", short)
			})
		}
	}
}

// Two ends take turns. An end that sleeps answers late, so its peer, which pays more for polls than for a sleep
// meanwhile, has no reason to poll on: each sleeps because the other does, until both look at once.
func TestTwoEndsThatWaitForEachOtherComeToPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const answer, wake = testPrice / 4, 3 * testPrice
		ends := [2]*gapped{newGapped(), newGapped()}
		var empty [2]time.Time // since when
		var polls [2]bool
		for i, e := range ends {
			for range 100 {
				e.gap(time.Millisecond)
			}
			empty[i], polls[i] = time.Now(), e.again(&e.counts)
		}
		const exchanges = 100 * probeEvery * probeEvery
		slept := 0 // in the last tenth
		for i := range exchanges {
			e, at := ends[i%2], i%2
			for n := time.Since(empty[at]) / pollTime; polls[at] && n > 1; n-- {
				polls[at] = e.again(&e.counts)
			}
			if !polls[at] {
				e.sleeps(&e.counts)
				time.Sleep(wake)
				if i > exchanges*9/10 {
					slept++
				}
			}
			e.found(1, &e.counts)
			time.Sleep(answer)
			empty[at], polls[at] = time.Now(), e.again(&e.counts)
		}
		assert.Less(t, slept, exchanges/100)
	})
}
