package model_test

import (
	"flag"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"godat/check/model"
	"godat/hw/fault"
	"godat/hw/loop"
	dat "godat/runtime"
)

var (
	programs = flag.Int("model.programs", 1000, "random programs to run on loop")
	seed     = flag.Uint64("model.seed", 1, "what the programs come from; 0 is another one each time")
	steps    = flag.Int("model.steps", 70, "commands of a random program, on average")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// command draws the next command of a program. It draws inside a generator of
// rapid, so that rapid does not log the single draws.
func command(t *rapid.T, w *model.World) model.Command {
	return rapid.Custom(func(t *rapid.T) model.Command {
		rapid.Bool().Draw(t, "") // a generator has to draw something
		return w.Next(func(label string, n int) int { return int(below(n).Draw(t, label)) })
	}).Draw(t, "command")
}

var generators = map[int]*rapid.Generator[uint64]{}

func below(n int) *rapid.Generator[uint64] {
	g := generators[n]
	if g == nil {
		g = rapid.Uint64Range(0, uint64(n-1))
		generators[n] = g
	}
	return g
}

func TestRandomProgramsDoWhatTheModelSays(t *testing.T) {
	seen := runPrograms(t, *programs, &adapters{provider: "loop"})
	t.Logf("\n%s", seen)
	if *programs < 1000 {
		return // too few programs to reach everything
	}
	length, called, reached := 30, 0.95, 0.75
	if testing.Short() { // rapid runs a fifth of the programs, of half the length
		length, called, reached = length/2, 0.9, 0.55
	}
	calls, cells := seen.shares()
	assert.GreaterOrEqual(t, seen.median(), length)
	assert.GreaterOrEqual(t, calls, called)
	assert.GreaterOrEqual(t, cells, reached)
}

// The device completes in all ways that the contract allows, and programs post long transfers
// beside operations whose events go elsewhere: the waits and the CNOs that the events of the
// transfers end and trigger must not need an event behind them.
func TestRandomProgramsWithLongTransfersDoWhatTheModelSays(t *testing.T) {
	series := fault.Wrap(loop.Provider{}, fault.Config{Series: true})
	runPrograms(t, max(1, *programs/2), &adapters{
		provider: "loop", long: true, opts: func() []dat.Option { return []dat.Option{dat.WithProvider(series)} },
	})
}

// runPrograms runs so many random programs, and returns what they have reached.
func runPrograms(t *testing.T, n int, on *adapters) *coverage {
	require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(n)))
	if *seed != 0 {
		require.NoError(t, flag.Set("rapid.seed", strconv.FormatUint(*seed, 10)))
	}
	require.NoError(t, flag.Set("rapid.nofailfile", "true")) // the script is enough to repeat a failure
	require.NoError(t, flag.Set("rapid.steps", strconv.Itoa(*steps)))
	seen := newCoverage()
	rapid.Check(t, func(t *rapid.T) {
		p, err := on.begin(seen)
		require.NoError(t, err)
		passed := false
		defer func() {
			if !passed {
				t.Logf("replay(t, `\n%s\n`)", p)
				on.abandon()
			}
		}()
		t.Repeat(map[string]func(*rapid.T){"command": func(t *rapid.T) {
			if err := p.do(command(t, p.world)); err != nil {
				t.Fatal(err)
			}
		}})
		seen.lengths = append(seen.lengths, len(p.script))
		if err := p.finish(); err != nil {
			t.Fatal(err)
		}
		passed = true
	})
	assert.NoError(t, on.close())
	return seen
}

// replay runs a script.
func replay(t *testing.T, script string) {
	t.Helper()
	cmds, err := model.Parse(script)
	require.NoError(t, err)
	on := &adapters{provider: "loop"}
	defer on.abandon()
	p, err := on.begin(newCoverage())
	require.NoError(t, err)
	for _, c := range cmds {
		require.NoError(t, p.do(c), "in\n%s", p)
	}
	require.NoError(t, p.finish(), "in\n%s", p)
	require.NoError(t, on.close())
}
