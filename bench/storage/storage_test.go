package storage

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
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
	require.NoError(t, p.Write(folder, true))
	text, err := os.ReadFile(filepath.Join(folder, "STORAGE.md"))
	require.NoError(t, err)
	for _, r := range rows() {
		assert.Contains(t, string(text), "\n| "+r.Name+" | ")
	}
	for _, part := range []string{"## What was asked", "## What not to conclude", "## How to repeat it", "--provider ibv:DEVICE", "## Where the lines cross", "expected", "reads, depth 4, saturation", "writes, depth 1, 500/s", host.Describe().String()} {
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

func TestARowThatRunsTheLoopOfAnotherIsRefused(t *testing.T) {
	for _, place := range everywhere {
		s := aStudy(t, "mistaken", place)
		said := strings.Join(s.Refused(), "\n")
		for _, name := range []string{channel, batches, poll} {
			assert.Contains(t, said, name+" at "+place.String())
		}
		p, err := NewPage(s)
		require.NoError(t, err)
		require.ErrorContains(t, p.Write(t.TempDir(), true), "stay as they are")
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
	spins.Polls.Empty = 1_000_000
	slept.Polls.Arms = commands
	few.Channel = commands - 1
	for name, c := range map[string]struct {
		intake intake.Way
		counts loops
	}{"spins": {intake.Channel, spins}, "sleeps": {intake.Poll, slept}, "took 999 events": {intake.Channel, few}} {
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
	x := at(made(9, map[string][]float64{poll: {1000, 200, 50}, channel: {100, 100, 100}}))
	assert.InDelta(t, 31_623, x.at.Median, 1, "halfway between 10k and 100k, as the ratios are 2 and 1/2")
	assert.Equal(t, "from 31.62k commands/s on (95 % interval 31.62k to 31.62k; 9 of 9 turns cross)", x.String())
	assert.Equal(t, "below at every rate in 9 of 9 turns", at(made(9, map[string][]float64{poll: {10, 20, 50}, channel: {100, 100, 100}})).String())
	assert.Equal(t, "not below at the highest rate in 9 of 9 turns", at(made(9, map[string][]float64{poll: {10, 20, 500}, channel: {100, 100, 100}})).String())
	assert.Contains(t, at(made(9, map[string][]float64{poll: {10, 20, 50}})).String(), "not measured")
}

func TestAnAdapterBeyondItsBoundsIsNamed(t *testing.T) {
	within := map[string][]float64{poll: {1000, 200, 50}, channel: {100, 100, 100}, adaptive: {110, 110, 55}}
	s := made(9, within)
	assert.Contains(t, s.dominated(s.Places[0]), "of 3 loads, none is beyond")
	within[adaptive] = []float64{110, 130, 55}
	s = made(9, within)
	said := s.dominated(s.Places[0])
	assert.Contains(t, said, "reads, depth 32, 10k/s: 1.30 (1.30–1.30) times the processor time of the better")
	assert.Equal(t, 1, strings.Count(said, "\n- "))
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
