package main

import (
	"bytes"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/check/world"
)

func TestThePageIsAsItWasWritten(t *testing.T) {
	page, err := os.ReadFile("../RESULTS.md")
	require.NoError(t, err)
	at := bytes.LastIndex(page, []byte("\n<!-- "))
	require.Positive(t, at)
	require.Equal(t, summed(page[:at]), string(page[at:]), "RESULTS.md was changed by hand: write it anew, as the command's doc says")
	require.NotContains(t, string(page), world.Changed, "nobody else has the code that RESULTS.md is of: write it anew at a commit")
}

// A rename would put a page in the place of a device, and leave the file that a link names as it was.
func TestWhatAPageWouldDestroyIsRefusedBeforeAnythingRuns(t *testing.T) {
	t.Chdir("..")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("kept"), []byte("read me"), 0o400))
	require.NoError(t, os.Symlink("nosuch", at("link")))
	before, err := os.ReadDir(dir)
	require.NoError(t, err)
	for path, want := range map[string]string{
		dir: "is no regular file", dir + "/": "is no regular file", os.DevNull: "is no regular file",
		at("link"): "is no regular file", at("kept"): "may not be written to", at("kept") + "/page": "not a directory",
	} {
		c := campaign{seeds: 1}
		_, err := c.write(t.Context(), path, []string{"nosuch.txt"})
		require.ErrorContains(t, err, want, path)
		require.Equal(t, 2, world.Status(err), path)
	}
	after, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestAPageOfNoSeedIsNone(t *testing.T) {
	c := campaign{seeds: 1, most: time.Nanosecond, end: time.Now()}
	require.ErrorContains(t, c.play(t.Context(), []*row{{}}), "no seed has run in 1ns: give -for more")
	c.seeds = 0
	require.NoError(t, c.play(t.Context(), []*row{{}}), "none was asked for")
}

func TestAPageThatCanNotBeWrittenLeavesTheOneBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "PAGE.md")
	put := func(text string, room bool) error {
		next, err := os.CreateTemp(filepath.Dir(path), "PAGE.md.*")
		require.NoError(t, err)
		defer os.Remove(next.Name())
		if !room {
			require.NoError(t, next.Close())
		}
		return replace(path, next, []byte(text))
	}
	require.NoError(t, put("old", true))
	require.Error(t, put("new", false))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
	require.NoError(t, put("new", true))
	names, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	require.Equal(t, []string{path}, names)
}

func TestProgramsShareTheTimeThatNotAllSeedsHave(t *testing.T) {
	c, costs := campaign{seeds: 50}, []time.Duration{time.Second, 10 * time.Second, 20 * time.Second}
	rows := []*row{{}, {}, {}}
	play := func() (r *row) {
		if r = c.next(rows); r != nil {
			r.seeds++
			for i := range rows {
				if rows[i] == r {
					r.had += costs[i]
				}
			}
		}
		return r
	}
	for rows[0].seeds < 40 {
		require.NotNil(t, play())
	}
	for i, r := range rows {
		assert.InDelta(t, 40, r.had.Seconds(), costs[i].Seconds(), "a program has had its time, but for a seed")
	}
	for play() != nil {
	}
	assert.Equal(t, []int{50, 50, 50}, []int{rows[0].seeds, rows[1].seeds, rows[2].seeds})
}

func TestWhatMakesNoSenseIsRefusedBeforeAnythingRuns(t *testing.T) {
	_, err := (&campaign{seeds: 1}).write(t.Context(), "", nil)
	require.ErrorContains(t, err, "run it in check/world")
	require.Equal(t, 2, world.Status(err))
	t.Chdir("..")
	for want, c := range map[string]campaign{
		"seeds is at least 1":       {},
		"for are not negative":      {seeds: 1, most: -time.Second},
		"short and for are not":     {seeds: 1, short: -1},
		"no 2 seeds from":           {seeds: 2, first: math.MaxUint64 - 1},
		`no program matches "cals"`: {seeds: 1, programs: "cals"},
		`no volume matches "calls"`: {seeds: 1, programs: "calls", hour: true},
		"missing closing":           {seeds: 1, programs: "("},
	} {
		_, err := c.write(t.Context(), "", nil)
		require.ErrorContains(t, err, want)
		require.Equal(t, 2, world.Status(err), want)
	}
	c := campaign{seeds: 1}
	_, err = c.write(t.Context(), filepath.Join(t.TempDir(), "nosuch", "PAGE.md"), nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Equal(t, 2, world.Status(err))
	err = new(campaigns).planted(io.Discard, "nosuch.txt")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Equal(t, 1, world.Status(err))
}

func TestThePageHasItsCommandAsAShellTakesIt(t *testing.T) {
	require.Equal(t, `-for 1m -programs '^(a|b)$' 'it'\''s'`, quoted([]string{"-for", "1m", "-programs", "^(a|b)$", "it's"}))
}

// The page would say of a file that is empty, that ends in the middle, or that somebody has put together, what is not so.
func TestAFileOfFaultsIsWholeAndOfThisCommit(t *testing.T) {
	t.Chdir("..")
	const commit, fault, other = "0123456789ab", "faults/a-request-is-its-slots.patch", "faults/a-log-says-no-volume.patch"
	const begins, lost, sum = "commit " + commit + "\n", fault + "   calls over loop, seed 1: lost\n", "1 of 1 found, by 4 seeds\n"
	const whole = begins + lost + "faults: 1 of 1 found\n" + sum
	for text, want := range map[string]string{
		"":                                    "has no fault",
		begins:                                "not all of a run's lines",
		begins + "0 of 0 found, by 4 seeds\n": "has no fault",
		begins + lost:                         "not all of a run's lines",
		begins + lost + "1 of 1 found, by 4":  "no line of command plant's",
		begins + lost + "1 of 2 found, by 4 seeds\n":        `says "1 of 2 found, by 4 seeds", and has 1 of 1`,
		begins + lost + "0 of 1 found, by 4 seeds\n":        "and has 1 of 1",
		begins + lost + "faults: 0 of 1 found\n" + sum:      "and has 1 of 1",
		begins + lost + "token: 1 of 1 found\n" + sum:       "and has 0 of 0",
		begins + lost + lost + "2 of 2 found, by 4 seeds\n": "was planted before",
		lost + sum:                     "which is by its commit",
		whole + lost + sum:             "which is by its commit",
		begins + lost + whole:          "no line of command plant's",
		"commit ba9876543210\n" + lost: "is of commit ba9876543210, and this is 0123456789ab: plant the faults anew",
		"commit " + commit + world.Changed + "\n" + lost:                                     "is of commit 0123456789ab, with changes",
		begins + fault + "\n":                                                                "no line of command plant's",
		begins + fault + " \n":                                                               "no line of command plant's",
		begins + fault + " lost\n":                                                           "nothing that becomes of a fault",
		begins + fault + " lives for ever\n":                                                 "nothing that becomes of a fault",
		begins + fault + " calls over loop, seed 1:\n":                                       "nothing that becomes of a fault",
		begins + "faults/nosuch.patch lives: 1 seeds\n":                                      "a fault that is gone",
		begins + "../faults/x.patch lives: 1 seeds\n":                                        "no line of command plant's",
		begins + "faults/../faults/x.patch lives: 1 seeds\n":                                 "no line of command plant's",
		begins + fault + " not planted: no space left on device\n0 of 0 found, by 4 seeds\n": "nobody could plant",
		whole: "",
		whole + begins + other + " lives: 517 runs in 3m0s of processors\nfaults: 0 of 1 found\n0 of 1 found, by 3 seeds\n":                                               "",
		begins + other + " lives: the guest has none of its files\nfaults: 0 of 1 found, 1 of them in files that no program of the world has\n0 of 1 found, by 3 seeds\n": "",
	} {
		name := filepath.Join(t.TempDir(), "faults.txt")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		var page bytes.Buffer
		c := campaigns{commit: commit, faults: make(map[string]string)}
		err := c.planted(&page, name)
		if want == "" {
			require.NoError(t, err, text)
			require.ErrorContains(t, c.planted(io.Discard, name), "was planted before")
			continue
		}
		require.ErrorContains(t, err, want, text)
		assert.Empty(t, page.String())
	}
}

func TestAPageHasNoMarkupOfWhatAProgramSays(t *testing.T) {
	t.Chdir("..")
	name := filepath.Join(t.TempDir(), "faults.txt")
	require.NoError(t, os.WriteFile(name, []byte(`commit 0123456789ab
faults/a-request-is-its-slots.patch calls over loop, seed 1 (-world.rounds 2 -world.troubles 1): a|b <img src="x"> &lt;
faults/a-log-says-no-volume.patch   lives: 100 seeds
faults: 1 of 2 found
1 of 2 found, by 100 seeds
`), 0o600))
	var page bytes.Buffer
	require.NoError(t, (&campaigns{commit: "0123456789ab", faults: make(map[string]string)}).planted(&page, name))
	require.Contains(t, page.String(), "1 of 2 are found.")
	require.Contains(t, page.String(), `| calls over loop, seed 1 (-world.rounds 2 -world.troubles 1): a/b &lt;img src="x"> &amp;lt; |`)
	require.Contains(t, page.String(), "| lives: 100 seeds |")
	r := row{findings: []string{"seed 1: <b>"}}
	page.Reset()
	r.write(&page)
	require.Contains(t, page.String(), "| seed 1: &lt;b> |")
}
