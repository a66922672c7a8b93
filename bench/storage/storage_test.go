package storage

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/bench/host"
	"godat/bench/load"
	"godat/examples/nvmeof/intake"
)

// TestMain is an end, too, in processes that tests start: one that obeys, or one whose rows are mistaken.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && (os.Args[1] == "end" || os.Args[1] == "mistaken") {
		list := rows()
		if os.Args[1] == "mistaken" {
			list = mistaken()
		}
		if err := serve(os.Stdin, os.Stdout, func() { os.Exit(1) }, list); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// mistaken are rows of which each runs another's loop.
func mistaken() []Row {
	list := rows()
	other := map[string]int{channel: 1, batches: 2, poll: 0, adaptive: 0}
	ways := rows()
	for i, r := range list {
		if j, ok := other[r.Name]; ok {
			list[i].Intake, list[i].Rounds = ways[j].Intake, ways[j].Rounds
		}
	}
	return list
}

func command(how string) []string { return []string{os.Args[0], how} }

func undisturbed() host.Disturbed { return func(time.Duration) bool { return false } }

// aStudy is a short one.
func aStudy(t *testing.T, how string, places ...Place) *Study {
	s := &Study{
		Places: places, Host: "127.0.0.1", Rates: []load.Rate{500, 1000}, Depths: []int{1, 4}, Repeats: 2,
		Duration: 10 * time.Millisecond, Command: command(how), Line: "go run ./bench storage", Watch: undisturbed,
	}
	require.NoError(t, s.Run(t.Context()))
	return s
}

var everywhere = []Place{{"iwarp:127.0.0.1", 2}, {simulated, 2}}

func TestAStudyMeasuresEachCellAndItsPageHasThem(t *testing.T) {
	s := aStudy(t, "end", everywhere...)
	require.Empty(t, s.Refused())
	for _, c := range s.cells {
		require.Len(t, c.samples, 2, "%v", c.key)
		if !c.load.Idle {
			assert.Positive(t, c.latency.TotalCount(), "%v", c.key)
		}
	}
	folder := filepath.Join(t.TempDir(), "bench")
	require.NoError(t, os.Mkdir(folder, 0o755))
	above := filepath.Join(folder, "..", "README.md")
	require.NoError(t, os.WriteFile(above, []byte("# x\n"+marks.Begin+"old\n"+marks.End+"\n"), 0o644))
	p, err := NewPage(s)
	require.NoError(t, err)
	require.NoError(t, Writable(folder))
	require.NoError(t, p.Write(folder))
	text, err := os.ReadFile(filepath.Join(folder, "STORAGE.md"))
	require.NoError(t, err)
	for _, r := range rows() {
		assert.Contains(t, string(text), "\n| "+r.Name+" | ")
	}
	for _, part := range []string{"## What was asked", "## What not to conclude", "## How to repeat it", "--provider ibv:DEVICE", "## Where the lines cross", "expected", "reads, depth 4, saturation", "writes, depth 1, 500/s", "p50 from its beginning", "\n- **pacer**: ", host.Describe().String()} {
		assert.Contains(t, string(text), part)
	}
	for _, place := range everywhere {
		svg, err := os.ReadFile(filepath.Join(folder, plotName(place)))
		require.NoError(t, err)
		assert.True(t, bytes.Contains(svg, []byte("<svg")) && bytes.Contains(svg, []byte("processor time of a read")))
	}
	logs, err := os.Open(filepath.Join(folder, "STORAGE.hlog"))
	require.NoError(t, err)
	defer logs.Close()
	first, err := hdrhistogram.NewHistogramLogReader(logs).NextIntervalHistogram()
	require.NoError(t, err)
	assert.Positive(t, first.TotalCount())
	quoted, err := os.ReadFile(above)
	require.NoError(t, err)
	assert.Contains(t, string(quoted), "polling takes less processor time")
	assert.NotContains(t, string(quoted), "old")
}

func TestAFolderThatTakesNoFileIsToldBeforeAnythingRuns(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, Writable(folder))
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Empty(t, left)
	if runtime.GOOS == "linux" {
		require.ErrorContains(t, Writable("/proc/self"), "nothing can be written in /proc/self")
	}
}

func TestAStrangerAtThePortOfThePlainServerTakesNobodysPlace(t *testing.T) {
	disk, err := newStore()
	require.NoError(t, err)
	defer disk.Close()
	s, err := listenNet(disk.Memory())
	require.NoError(t, err)
	stranger, err := net.Dial("tcp", s.ln.Addr().String())
	require.NoError(t, err)
	defer stranger.Close()
	c, err := dialNet(s.ln.Addr().String(), 1)
	require.NoError(t, err)
	require.NoError(t, c.(*onConn).conn.SetDeadline(time.Now().Add(10*time.Second)))
	b := newBook(Load{Depth: 1, Rate: load.Closed}, 10*time.Millisecond, 1, blocks)
	_, err = c.run(b)
	require.NoError(t, err)
	assert.Positive(t, b.ended)
	assert.Equal(t, b.ended, s.served())
	require.NoError(t, c.close())
	require.NoError(t, s.close(), "the stranger has not gone")
}

func TestARowThatRunsTheLoopOfAnotherIsRefused(t *testing.T) {
	for _, place := range everywhere {
		s := aStudy(t, "mistaken", place)
		said := strings.Join(s.Refused(), "\n")
		for _, name := range []string{channel, batches, poll} {
			assert.Contains(t, said, name+" at "+place.String())
		}
		p, err := NewPage(s)
		require.NoError(t, err)
		require.ErrorContains(t, p.Write(t.TempDir()), "stay as they are")
	}
}

func TestWhatALoopCountedProvesItsRowAlone(t *testing.T) {
	const commands = 1000
	asleep := loops{Provider: "sim"}
	asleep.Polls.Arms, asleep.Polls.Waits, asleep.Polls.Found, asleep.Polls.Empty = 900, 900, 1000, 1000
	byChannel, inBatches := asleep, asleep
	byChannel.Channel, inBatches.Batches = commands, commands
	polls := loops{Provider: "sim", Dequeued: commands}
	polls.Polls.Consumers, polls.Polls.Empty = 1_000_000, 999_000
	counted := map[string]loops{channel: byChannel, batches: inBatches, poll: polls}
	for _, r := range rows() {
		if counted[r.Name].Provider == "" {
			continue
		}
		for name, l := range counted {
			err := r.prove(commands, l, l)
			assert.Equal(t, r.Name == name, err == nil, "%s by what %s counted: %v", r.Name, name, err)
		}
	}
	spins, slept, few := byChannel, polls, byChannel
	polledOn, spun := inBatches, byChannel
	polledOn.Polls.Spun, spun.Polls.Spun = time.Microsecond, time.Microsecond
	for _, r := range rows() {
		if r.Name == adaptive {
			require.NoError(t, r.prove(commands, polledOn, polledOn))
			require.NoError(t, r.provePolling(2*soon, polledOn, polledOn))
			require.ErrorContains(t, r.provePolling(2*soon, polledOn, inBatches), "sleeps at 40000 commands a second")
			require.NoError(t, r.provePolling(soon/2, inBatches, inBatches), "it may sleep while commands come late")
			busy := inBatches
			busy.Polls.Arms, busy.Polls.Empty = 1, 2
			require.NoError(t, r.provePolling(2*soon, busy, busy), "a device that is never empty is not polled on")
		}
	}
	uncounted := byChannel
	uncounted.Channel = commands - late
	for _, r := range rows() {
		if r.Name == channel {
			require.NoError(t, r.prove(commands, uncounted, uncounted), "a completer has not counted the last events that it has sent")
			require.Error(t, r.prove(4, loops{Provider: "sim"}, loops{Provider: "sim"}), "few commands prove themselves, too")
		}
	}
	spins.Polls.Empty = 1_000_000
	slept.Polls.Arms = commands / 4
	few.Channel = commands - late - 1
	for name, c := range map[string]struct {
		intake intake.Way
		counts loops
	}{"spins": {intake.Channel, spins}, "target spins": {intake.Channel, spun}, "sleeps": {intake.Poll, slept}, "took 991 events": {intake.Channel, few}} {
		for _, r := range rows() {
			if r.Intake == c.intake && r.Name != adaptive {
				assert.ErrorContains(t, r.prove(commands, c.counts, c.counts), name)
			}
		}
	}
}

func TestEachCellHasAGuess(t *testing.T) {
	guesses, err := parseGuesses(expectations)
	require.NoError(t, err)
	for _, provider := range []string{"iwarp:127.0.0.1", simulated} {
		for _, processors := range []int{1, 2} {
			place := Place{provider, processors}
			for _, r := range rows() {
				for _, l := range loads([]load.Rate{1000, 10_000, 50_000, 100_000}, []int{1, 32}) {
					if !place.has(r) {
						continue
					}
					_, ok := guessOf(guesses, key{place, r.Name, l})
					assert.True(t, ok, "%v", key{place, r.Name, l}.words())
				}
			}
		}
	}
	for _, bad := range []string{"iwarp 1 poll", "iwarp 1 poll 1@1k | 3", "iwarp 1 poll idle | 3 | 4", "iwarp 1 poll idle | much"} {
		_, err := parseGuesses(bad)
		assert.ErrorContains(t, err, "no expectation", bad)
	}
}

// made is a study whose rows had processor times by rate, the same in each turn.
func made(turns int, times map[string][]float64) *Study {
	s := &Study{Places: []Place{{simulated, 1}}, Rates: []load.Rate{1000, 10_000, 100_000}, Depths: []int{32}, at: map[key]*cell{}}
	for name, list := range times {
		for i, ns := range list {
			c := &cell{key: key{s.Places[0], name, Load{Depth: 32, Rate: s.Rates[i]}}}
			for range turns {
				c.samples = append(c.samples, sample{turned: turned{Count: 1, Took: time.Second}, Target: time.Duration(ns), known: true})
			}
			s.at[c.key] = c
		}
	}
	return s
}

func TestLinesCrossWhereOneFallsBelowTheOther(t *testing.T) {
	at := func(s *Study) crossing { return s.cross(s.Places[0], false, 32, poll, channel, (*cell).processor) }
	of := func(polled ...float64) crossing {
		return at(made(9, map[string][]float64{poll: polled, channel: {100, 100, 100}}))
	}
	x := of(1000, 200, 50)
	assert.InDelta(t, 31_623, median(x.from), 1, "halfway between 10k and 100k, as the ratios are 2 and 1/2")
	assert.Equal(t, "above 31.62k/s (9 of 9 turns agree; 95 % interval 31.62k to 31.62k, by a line between the measured 10k and 100k)", x.String())
	assert.Equal(t, "at every rate (9 of 9 turns agree)", of(10, 20, 50).String())
	assert.Equal(t, "at no rate (9 of 9 turns agree)", of(200, 200, 500).String())
	assert.Equal(t, "below 31.62k/s (9 of 9 turns agree)", of(10, 50, 200).brief(), "below at rates is not at no rate")
	assert.Equal(t, "at rates that differ by turn", of(50, 200, 50).String())
	assert.Equal(t, "at rates that are not known, since both keep up with one at most", at(made(9, map[string][]float64{poll: {10, 20, 50}})).String())
}

func TestALoopProvesItselfWhileIdle(t *testing.T) {
	var asleep, polls, spins loops
	polls.Polls.Consumers, spins.Polls.Spun = 1000, time.Microsecond
	for _, r := range rows() {
		assert.Equal(t, r.Intake != intake.Poll, r.proveIdle(asleep, asleep) == nil, "%s, asleep", r.Name)
		assert.Equal(t, r.Intake == intake.Poll, r.proveIdle(polls, polls) == nil, "%s, polling", r.Name)
		assert.Equal(t, r.Intake == intake.Poll || r.Name == adaptive, r.proveIdle(spins, polls) == nil || r.proveIdle(spins, asleep) == nil, "%s, spinning", r.Name)
	}
}

func TestThePacerAloneAndACommandAreApart(t *testing.T) {
	b := newBook(Load{Rate: 1000, Depth: 1}, 20*time.Millisecond, 1, blocks)
	_, err := paced{}.run(b)
	require.NoError(t, err)
	got, err := b.turned(0)
	require.NoError(t, err)
	assert.EqualValues(t, 20, got.Count)
	assert.LessOrEqual(t, got.OwnP50, b.latency.ValueAtQuantile(50), "from its beginning is not earlier than from the intended time")
	for _, r := range rows() {
		if r.Name == pacing {
			require.NoError(t, r.prove(20, loops{}, loops{}))
			require.Error(t, r.prove(20, loops{Served: 20}, loops{}))
		}
	}
}

func TestAnAdapterBeyondItsBoundsIsNamed(t *testing.T) {
	within := map[string][]float64{poll: {1000, 200, 50}, channel: {100, 100, 100}, adaptive: {110, 110, 55}}
	s := made(9, within)
	assert.Contains(t, s.dominated(s.Places[0]), "of 3 loads, none is beyond")
	within[adaptive] = []float64{110, 130, 55}
	s = made(9, within)
	assert.Contains(t, (&Page{study: s}).Summary(), "| over 1.2 times the processor time of polling or of a channel, whichever takes less | 1, surely at 1 | none |")
	said := s.dominated(s.Places[0])
	assert.Contains(t, said, "reads, depth 32, 10k/s: 1.30 (1.30–1.30) times the processor time of the better")
	assert.Equal(t, 1, strings.Count(said, "\n- "))
}

func TestRatesAtWhichThePacerTakesMostAreCounted(t *testing.T) {
	said := func(pacer ...float64) string {
		s := made(9, map[string][]float64{poll: {100, 100, 100}, channel: {100, 100, 100}, adaptive: {100, 100, 100}, pacing: pacer})
		return (&Page{study: s}).Summary()
	}
	assert.Contains(t, said(10, 60, 90), "At 2 of the rates the load generator (*pacer*) alone takes over half of a channel's processor time")
	assert.NotContains(t, said(10, 20, 50), "(*pacer*) alone")
}

func TestAnAdapterIsJudgedAtSaturationToo(t *testing.T) {
	s := &Study{Places: []Place{{simulated, 1}}, Depths: []int{32}, at: map[key]*cell{}}
	for name, p50 := range map[string]float64{poll: 100, channel: 100, adaptive: 190} {
		c := &cell{key: key{s.Places[0], name, Load{Depth: 32, Rate: load.Closed}}}
		for range 9 {
			c.samples = append(c.samples, sample{turned: turned{Count: 1, Took: time.Second}, Target: 100, known: true, p50: p50})
		}
		s.at[c.key] = c
	}
	assert.Contains(t, s.dominated(s.Places[0]), "reads, depth 32, saturation: 1.90 (1.90–1.90) times the median latency of a channel")
	said := (&Page{study: s}).Summary()
	assert.Contains(t, said, "| target and host, as they come, take | at how many of 0 rates | at how many of 1 loads at saturation |")
	assert.Contains(t, said, "| over 1.2 times the processor time of polling or of a channel, whichever takes less | none | none |")
	assert.Contains(t, said, "| over 1.1 times a channel's median latency | none | 1, surely at 1; 1.9 times at most |")
	assert.Contains(t, said, "| sim, GOMAXPROCS=1 | at rates that are not known, since both keep up with one at most | at rates that are not known, since both keep up with one at most | 1.00 times | 1.00 times |")
}

func TestAPacerTicksAtItsTimesAndCountsItsSpinning(t *testing.T) {
	base := time.Now()
	p := startPacer(base, time.Millisecond, 20)
	for done := false; !done; {
		select {
		case <-p.ticks:
		case <-p.done:
			done = true
		case <-time.After(time.Minute):
			require.Fail(t, "the pacer has stopped")
		}
	}
	assert.GreaterOrEqual(t, time.Since(base), 19*time.Millisecond, "no tick is early")
	assert.LessOrEqual(t, p.end(), 20*time.Millisecond)
}

func TestAStudyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &Study{Places: everywhere, Host: "127.0.0.1", Rates: []load.Rate{1000}, Depths: []int{1}, Repeats: 1000, Duration: time.Millisecond, Command: command("end"), Watch: undisturbed}
	s.Step = func(int, int) { cancel() }
	require.ErrorIs(t, s.Run(ctx), context.Canceled)
}
