package storage

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/host"
	"godat/bench/load"
)

func TestAPageOfCountsHasEachRowAndWhatItDid(t *testing.T) {
	s := &Study{
		Places: everywhere, Host: "127.0.0.1", Rates: []load.Rate{500}, Depths: []int{1, 4}, Repeats: 1,
		Duration: 10 * time.Millisecond, Command: command("end"), Line: "go run ./bench storage --counts", Watch: undisturbed, Counts: true,
	}
	require.NoError(t, s.Run(t.Context()))
	p, err := NewPage(s)
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, p.Write(folder))
	text, err := os.ReadFile(filepath.Join(folder, "STORAGE-guest.md"))
	require.NoError(t, err)
	for _, part := range []string{
		"| channel 1 : channel ", "| batches 1 : batches ", "| dequeued 1 : dequeued ", "| answered 1 : – |",
		"#### idle", "#### writes, depth 4, saturation", "it does so at ", "| sim, GOMAXPROCS=2 | reads, depth 1, 500/s | ", "## What not to conclude", host.Describe().String(),
	} {
		assert.Contains(t, string(text), part)
	}
	assert.NotContains(t, string(text), inKernel+"**", "there is no verbs device")
}

func TestARowThatRunsTheLoopOfAnotherHasNoCounts(t *testing.T) {
	s := &Study{Places: everywhere[1:], Rates: []load.Rate{500}, Depths: []int{1}, Repeats: 1, Duration: 5 * time.Millisecond, Command: command("mistaken"), Watch: undisturbed, Counts: true}
	require.NoError(t, s.Run(t.Context()))
	assert.GreaterOrEqual(t, s.again, 3*4*mostTimes, "three rows are mistaken at four loads, and each was taken again in vain")
	p, err := NewPage(s)
	require.NoError(t, err)
	text := p.String()
	for _, name := range []string{channel, batches, poll} { // idle, loops differ in less
		assert.GreaterOrEqual(t, strings.Count(text, "| "+name+" | refused: the "), 4, name)
	}
	assert.Contains(t, text, "Of 0 loads 0 are judged, and it does so at 0 of these.")
}

func TestAPageOfCountsOfWhichARowFailedIsNotWritten(t *testing.T) {
	s := &Study{Places: everywhere[:1], Host: "nowhere", Rates: []load.Rate{500}, Depths: []int{1}, Repeats: 1, Duration: time.Millisecond, Command: command("end"), Watch: undisturbed, Counts: true}
	require.NoError(t, s.Run(t.Context()))
	p, err := NewPage(s)
	require.NoError(t, err)
	folder := t.TempDir()
	require.ErrorContains(t, p.Write(folder), "stay as they are")
	assert.NoFileExists(t, filepath.Join(folder, "STORAGE-guest.md"))
}

// counted is a study of one turn of 10 commands, in which each end of a row woke up so often.
func counted(l Load, waits map[string]uint64) *Page {
	s := &Study{Places: []Place{{simulated, 2}}, Depths: []int{l.Depth}, Rates: []load.Rate{500}, at: map[key]*cell{}}
	for name, n := range waits {
		c := &cell{key: key{s.Places[0], name, l}, samples: []sample{{turned: turned{Count: 10, Took: time.Second}}}}
		c.samples[0].Server.Polls.Waits, c.samples[0].Client.Polls.Waits = n, n
		s.at[c.key] = c
	}
	return &Page{study: s}
}

func TestAProgramThatSetsNothingIsJudgedByItsWakeUps(t *testing.T) {
	low, full := Load{Depth: 1, Rate: 500}, Load{Depth: 1, Rate: load.Closed}
	for _, c := range []struct {
		load    Load
		waits   map[string]uint64
		verdict string
	}{
		{low, map[string]uint64{channel: 10, adaptive: 12, poll: 0}, "| 2 | 2.4 | 0 | 2.4 | within | 0, 0, 0 |"},
		{low, map[string]uint64{channel: 10, adaptive: 13, poll: 0}, "| 2 | 2.6 | 0 | 2.4 | beyond |"},
		{full, map[string]uint64{channel: 10, adaptive: 2, poll: 2}, "| 2 | 0.4 | 0.4 | 0.5 | within |"},
		{full, map[string]uint64{channel: 10, adaptive: 10, poll: 0}, "| 2 | 2 | 0 | 0.1 | beyond |"},
	} {
		said := counted(c.load, c.waits).judged()
		assert.Contains(t, said, c.verdict)
		assert.Contains(t, said, "Of 1 loads 1 are judged, and it does so at ")
		assert.NotContains(t, strings.ToLower(said), "not judged")
	}
	refused := counted(full, map[string]uint64{channel: 10, adaptive: 2, poll: 8})
	refused.study.at[key{refused.study.Places[0], poll, full}].refused = unproven{errors.New("it sleeps")}
	said := refused.judged()
	assert.Contains(t, said, "| 2 | 0.4 | refused | at least 0.1 | not judged | 0, 0, refused |", "what did not prove itself is no measure")
	assert.Contains(t, said, "Of 1 loads 0 are judged, and it does so at 0 of these. Not judged: 1, because")
	assert.Contains(t, said, "at 0 of all 1, and polls in vain more often than a loop that polls at 0 of the 0 where")
	assert.Contains(t, counted(low, map[string]uint64{channel: 10, adaptive: 10}).judged(), "Of 0 loads 0 are judged", "nothing is compared with what there is none of")
}

func TestWhereTheLoopThatPollsWasRefusedTheBoundIsAtLeastWhatItIsWithoutIt(t *testing.T) {
	full := Load{Depth: 1, Rate: load.Closed}
	p := counted(full, map[string]uint64{channel: 10, adaptive: 0, poll: 8})
	p.study.at[key{p.study.Places[0], poll, full}].refused = unproven{errors.New("it sleeps")}
	said := p.judged()
	assert.Contains(t, said, "| 2 | 0 | refused | at least 0.1 | within | 0, 0, refused |")
	assert.Contains(t, said, "Of 1 loads 1 are judged, and it does so at 1 of these. It wakes up")
}

func TestAPageSaysHowManyTurnsRanAnotherLoop(t *testing.T) {
	for again, want := range map[int]string{
		0: "No turn ran another loop than its row names",
		1: "1 turn ran another loop than its row names",
		2: "2 turns ran another loop than their rows name",
	} {
		assert.Equal(t, want, (&Study{again: again}).mistaken())
	}
}

func TestTurnsOfACellAreCountedTogether(t *testing.T) {
	one := loops{Provider: "ibv", Channel: 2, Served: 3}
	one.Polls.Found, one.Polls.Empty, one.Polls.Waits = 4, 5, 6
	c := cell{samples: []sample{{Switches: 7, System: 8, Server: one}, {Switches: 7, System: 8, Server: one}}}
	sum := c.tally()
	one.Channel, one.Served, one.Polls.Found, one.Polls.Empty, one.Polls.Waits = 4, 6, 8, 10, 12
	assert.Equal(t, one, sum.server)
	assert.Equal(t, []int64{14, 16}, []int64{sum.switches, sum.system})
}

func TestEachRowInTheGuestHasAGuess(t *testing.T) {
	guesses, err := parseGuesses(countExpectations)
	require.NoError(t, err)
	place := Place{"ibv:rxe0", 2}
	for _, r := range append(rows(), kernelRow) {
		for _, l := range loads([]load.Rate{50}, []int{1, 32}) {
			g, ok := guessOf(guesses, key{place, r.Name, l})
			if r.Intake == "" && !l.Idle { // it has no snapshot
				continue
			}
			require.True(t, ok, "%v", key{place, r.Name, l}.words())
			assert.Len(t, g.values, map[bool]int{true: 1, false: 2}[l.Idle])
		}
	}
	assert.True(t, countMet(0, 0.05), "what is below a tenth is as good as none")
	assert.False(t, countMet(0, 0.2))
}

func TestLinuxsTargetProvesItselfByItsDisk(t *testing.T) {
	host := loops{Provider: "ibv", Batches: 2000}
	assert.NoError(t, kernelRow.prove(1000, loops{Served: 1000}, host))
	assert.ErrorContains(t, kernelRow.prove(1000, loops{Served: 999}, host), "answered 999 of 1000")
	host.Batches, host.Channel = 0, 2000
	assert.ErrorContains(t, kernelRow.prove(1000, loops{Served: 1000}, host), "the host took")
	assert.True(t, Place{"ibv:rxe0", 2}.has(kernelRow))
	assert.False(t, everywhere[0].has(kernelRow))
}

func TestTheDiskOfLinuxsTargetHasTheBlocksOfTheOthers(t *testing.T) {
	name := filepath.Join(t.TempDir(), "disk")
	require.ErrorIs(t, fillDisk(name), os.ErrNotExist, "it makes no disk")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	require.NoError(t, fillDisk(name))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Len(t, text, blocks*size)
	assert.EqualValues(t, 77, binary.LittleEndian.Uint64(text[77*size:]))
}
