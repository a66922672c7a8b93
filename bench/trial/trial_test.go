package trial

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/bench/lane"
	"godat/bench/load"
	"godat/bench/report"
	"godat/bench/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// measured is a repeat of count messages, each of which took latency.
func measured(count int64, latency time.Duration) load.Result {
	h := hdrhistogram.New(1, int64(time.Second), 2)
	_ = h.RecordValues(int64(latency), count)
	return load.Result{Latency: h, Count: count, Took: time.Second, Processor: time.Second / 2}
}

// contended has a turn for each result, beside probes that took so long.
func contended(probes []float64, results ...load.Result) *contender {
	c := &contender{}
	for i, r := range results {
		c.turns = append(c.turns, turn{Result: r, probe: probes[i]})
	}
	return c
}

func TestADisturbedRepeatIsDropped(t *testing.T) {
	c := contended([]float64{10, 25, 11}, measured(200, 20), measured(200, 900), measured(200, 22))
	require.NoError(t, c.conclude(10))
	p50, ok := c.Row.Median()
	require.True(t, ok)
	assert.InDelta(t, 21, p50.Median, 0.1)
	assert.Equal(t, 2, c.Row.Kept)
	assert.Equal(t, 1, c.Row.Dropped)
	assert.True(t, c.Row.Samples[1].Dropped, "the raw data keep what was dropped")
	assert.InDelta(t, 0.5, c.Row.Cores.Median, 1e-9)
	assert.InDelta(t, 22, c.Row.Max, 0.1)
}

func TestARowWithoutEnoughUndisturbedRepeatsIsRefused(t *testing.T) {
	c := contended([]float64{25, 30, 10}, measured(100, 20), measured(100, 21), measured(100, 22))
	require.NoError(t, c.conclude(10))
	assert.Contains(t, c.Row.Refused, "2 of 3 repeats")
	assert.Empty(t, c.Row.Latency)
}

// quiet is the probe of a machine that does nothing else.
func quiet() (took float64, starved bool) { return 1, false }

func TestTheProbeOfAMachineTakesTime(t *testing.T) {
	took, _ := probeMachine()
	assert.Positive(t, took)
}

func TestARepeatBesideAStarvedProbeIsDroppedThoughAllTookAsLong(t *testing.T) {
	c := contended([]float64{30, 31, 30}, measured(100, 20), measured(100, 900), measured(100, 22))
	c.turns[1].starved = true
	require.NoError(t, c.conclude(30))
	assert.Equal(t, 1, c.Row.Dropped)
	assert.True(t, c.Row.Samples[1].Dropped)
}

func TestAPercentileIsToldWithAHundredMessagesBeyondIt(t *testing.T) {
	for name, c := range map[string]struct {
		messages []int64 // of each repeat
		all      float64 // the greatest percentile of all together
		each     float64 // and of each repeat
	}{
		"a repeat of ten thousand": {[]int64{10_000}, 99, 99},
		"a message less":           {[]int64{9_949}, 90, 90},
		"together":                 {[]int64{5000, 5000}, 99, 90},
		"one short repeat":         {[]int64{1_000_000, 1000}, 99.99, 90},
		"very few":                 {[]int64{150, 150}, 50, 0},
		"none":                     {[]int64{100}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var probes []float64
			var results []load.Result
			for _, n := range c.messages {
				probes, results = append(probes, 1), append(results, measured(n, 20))
			}
			x := contended(probes, results...)
			require.NoError(t, x.conclude(1))
			all, each := 0.0, 0.0
			for _, p := range x.Row.Latency {
				all = p.Percent
				if p.Repeats.Repeats > 0 {
					each = p.Percent
				}
			}
			assert.InDelta(t, c.all, all, 0)
			assert.InDelta(t, c.each, each, 0)
		})
	}
}

// Medians of percentiles hide the repeat that stalled: its messages count in those of all.
func TestARepeatThatStalledIsInThePercentilesOfAllMessages(t *testing.T) {
	probes := make([]float64, 9)
	var results []load.Result
	for i := range probes {
		probes[i] = 1
		results = append(results, measured(10_000, 20))
	}
	results[4] = measured(10_000, time.Millisecond)
	c := contended(probes, results...)
	require.NoError(t, c.conclude(1))
	p50, ok := c.Row.Median()
	require.True(t, ok)
	assert.InDelta(t, 20, p50.Median, 0.1)
	p99, _ := c.Row.At(99)
	assert.InDelta(t, time.Millisecond, p99, 1e4)
	assert.Equal(t, stats.Stalled, p50.Shape)
	assert.True(t, p50.Steady())
}

func TestASaturatedRowHasNoLatencies(t *testing.T) {
	over := measured(1000, 20)
	over.Saturated = true
	c := contended([]float64{1}, over)
	require.NoError(t, c.conclude(1))
	assert.True(t, c.Row.Saturated)
	assert.Empty(t, c.Row.Latency)
	assert.InDelta(t, 1000, c.Row.PerSecond.Median, 1e-6)
}

func TestProcessorTimeThatIsUnknownOfARepeatIsNoFigure(t *testing.T) {
	known, unknown := measured(1000, 20), measured(1000, 20)
	unknown.Processor = -1
	c := contended([]float64{1, 1}, known, unknown)
	require.NoError(t, c.conclude(1))
	assert.Zero(t, c.Row.Processor.Repeats)
	assert.Zero(t, c.Row.Cores.Repeats)
}

// What a row tells can be found again in its log.
func TestTheHistogramsOfARowAreKeptAsALog(t *testing.T) {
	c := contended([]float64{1, 9, 1}, measured(10_000, 20), measured(10_000, 900), measured(10_000, 40))
	c.Row = report.Row{Name: "one, two", Rate: 10_000, Size: 64, Depth: 1, Producers: 2}
	require.NoError(t, c.conclude(1))
	var out bytes.Buffer
	r := report.Report{Kind: report.Delivery, Rows: []report.Row{c.Row, {Name: "told", Samples: []report.Sample{{Count: 1}}}}}
	require.NoError(t, r.WriteHistograms(&out))
	counts := map[string][]int64{}
	log := hdrhistogram.NewHistogramLogReader(&out)
	for {
		h, err := log.NextIntervalHistogram()
		require.NoError(t, err)
		if h == nil {
			break
		}
		counts[h.Tag()] = append(counts[h.Tag()], h.TotalCount())
		if strings.HasSuffix(h.Tag(), "/all") {
			p99, _ := c.Row.At(99)
			assert.InDelta(t, p99, h.ValueAtQuantile(99), 0.1)
			assert.InDelta(t, c.Row.Max, h.Max(), 0.1)
		}
	}
	const tag = "delivery/one-two/10k/64B/1/2producers"
	assert.Equal(t, map[string][]int64{tag: {10_000, 10_000}, tag + "/dropped": {10_000}, tag + "/all": {20_000}}, counts)
}

func TestEntriesTakeTurnsAndShareALane(t *testing.T) {
	opened, steps := 0, 0
	entry := func(rate load.Rate) Entry {
		return Entry{
			Row: report.Row{Name: "raw channel", Size: 64, Depth: 4, Rate: rate}, Key: "one",
			Open: func() (lane.Lane, error) { opened++; return lane.NewChannel(4), nil },
		}
	}
	p := Plan{probe: quiet, Entries: []Entry{entry(load.Closed), entry(load.Max)}, Repeats: 2, Duration: time.Millisecond, Step: func() { steps++ }}
	rows, err := p.Run()
	require.NoError(t, err)
	assert.Equal(t, 1, opened)
	assert.Equal(t, 6, steps, "two entries, twice and once to warm up")
	for _, r := range rows {
		assert.Len(t, r.Samples, 2)
	}
}

func TestAnEntryThatCannotBeMeasuredIsRefusedAndTheOthersAreMeasured(t *testing.T) {
	pipe := Entry{
		Row: report.Row{Name: "net.Pipe", Size: 64, Depth: 1, Rate: load.Closed}, Key: "pipe",
		Open: func() (lane.Lane, error) { return lane.NewPipe(lane.Config{Size: 64, Depth: 1}), nil },
	}
	channel := Entry{
		Row: report.Row{Name: "raw channel", Size: 64, Depth: 1, Rate: load.Closed}, Key: "channel",
		Open: func() (lane.Lane, error) { return lane.NewChannel(1), nil },
	}
	rows, err := Plan{probe: quiet, Entries: []Entry{pipe, channel}, Repeats: 1, Duration: time.Millisecond}.Run()
	require.NoError(t, err)
	assert.Equal(t, load.ErrPostWaits.Error(), rows[0].Refused)
	assert.Len(t, rows[1].Samples, 1)
}

func TestALaneThatCannotBeOpenedEndsTheTrial(t *testing.T) {
	no := errors.New("no")
	_, err := Plan{probe: quiet, Entries: []Entry{{Open: func() (lane.Lane, error) { return nil, no }}}}.Run()
	assert.ErrorIs(t, err, no)
}

// failing is a lane whose posts fail, or that takes nothing.
type failing struct {
	*lane.Channel
	post, take error
	closed     int
}

func (l *failing) Post(slot int) error {
	if l.post != nil {
		return l.post
	}
	return l.Channel.Post(slot)
}
func (l *failing) Take(func(int) bool) error { return l.take }
func (l *failing) Close() error              { l.closed++; return l.Channel.Close() }

func TestARefusalIsOfOneRow(t *testing.T) {
	dies := &failing{Channel: lane.NewChannel(1), post: errors.New("it died")}
	closed := report.Row{Depth: 1}
	rows, err := Plan{
		probe: quiet,
		Entries: []Entry{
			{Key: "missing", Open: func() (lane.Lane, error) { return OrRefusal(nil, errors.New("not installed")) }},
			{Key: "dies", Row: closed, Open: func() (lane.Lane, error) { return dies, nil }},
			{Key: "channel", Row: closed, Open: func() (lane.Lane, error) { return lane.NewChannel(1), nil }},
		},
		Repeats: 2, Duration: time.Millisecond,
	}.Run()
	require.NoError(t, err)
	assert.Equal(t, "not installed", rows[0].Refused)
	assert.Equal(t, "a post failed: it died", rows[1].Refused)
	assert.Len(t, rows[2].Samples, 2)
	assert.Equal(t, 1, dies.closed)
}

func TestAnErrorThatIsNoRefusalEndsTheTrial(t *testing.T) {
	l := &failing{Channel: lane.NewChannel(1), take: errors.New("no")}
	_, err := Plan{probe: quiet, Entries: []Entry{{Row: report.Row{Name: "it", Depth: 1}, Open: func() (lane.Lane, error) { return l, nil }}}, Repeats: 1}.Run()
	assert.ErrorContains(t, err, "it: no")
	assert.Equal(t, 1, l.closed)
}

func TestARowThatPollsWithLessThanAProcessorIsRefused(t *testing.T) {
	for name, want := range map[string]string{"poll": "had 0.50 of it", "poll over loop": "had 0.50 of it", lane.RawRing: "had 0.50 of it", "channel": ""} {
		c := contended([]float64{1, 1}, measured(1000, 20), measured(1000, 20)) // half a processor each
		c.Row = report.Row{Name: name, Rate: 1000}
		require.NoError(t, c.conclude(1))
		if want == "" {
			assert.Empty(t, c.Row.Refused)
			continue
		}
		assert.Contains(t, c.Row.Refused, want)
		assert.Zero(t, c.Row.Kept)
	}
}

// polling is a lane that says that it polls.
type polling struct{ *lane.Channel }

func (polling) Loop() string { return "poll" }

func TestARowThatIsNotWhatRanEndsTheTrial(t *testing.T) {
	for name, want := range map[string]string{"poll": "", "poll over loop": "", "channel": `the row "channel" is not what ran: its loop was "poll"`} {
		entry := Entry{
			Row: report.Row{Name: name, Depth: 1, Rate: load.Closed}, Key: name,
			Open: func() (lane.Lane, error) { return polling{lane.NewChannel(1)}, nil },
		}
		_, err := Plan{probe: quiet, Entries: []Entry{entry}, Repeats: 1, Duration: time.Millisecond}.Run()
		if want == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, want)
		}
	}
}
