package driver

import (
	"context"
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/check/world/model"
	"godat/check/world/program"
	dat "godat/runtime"
)

var (
	programs = flag.Int("model.programs", 1000, "random programs to run on loop")
	seed     = flag.Uint64("model.seed", 1, "what the programs come from")
	steps    = flag.Int("model.steps", 70, "commands of a random program, on average")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

func TestRandomProgramsDoWhatTheModelSays(t *testing.T) {
	seen := runPrograms(t, *programs, false)
	t.Logf("\n%s", seen)
	if *programs < 1000 {
		return // too few programs to reach everything
	}
	length, called, reached := 30, 0.95, 0.75
	if testing.Short() { // a fifth of the programs
		called, reached = 0.9, 0.55
	}
	calls, cells := seen.shares()
	assert.GreaterOrEqual(t, seen.median(), length)
	assert.GreaterOrEqual(t, calls, called)
	assert.GreaterOrEqual(t, cells, reached)
}

func TestRandomProgramsWithLongTransfersDoWhatTheModelSays(t *testing.T) {
	runPrograms(t, max(1, *programs/2), true)
}

// programsPerWorld are as many as one adapter has.
const programsPerWorld = 50

// open opens an adapter for a world.
func open(string) (*dat.IA, error) { return dat.Open(context.Background(), "loop") }

// runPrograms runs so many random programs, and returns what they have reached.
func runPrograms(t *testing.T, n int, long bool) *coverage {
	t.Helper()
	require.Positive(t, min(n, *steps), "-model.programs and -model.steps")
	if testing.Short() {
		n = (n + 4) / 5
	}
	seen := newCoverage()
	for at := 0; at < n; at += programsPerWorld {
		w := program.Over(*seed+uint64(at), open, nil)
		m := &Model{Programs: min(programsPerWorld, n-at), Steps: *steps, Long: long, seen: seen}
		require.NoError(t, m.Run(w))
		_, err := w.End()
		require.NoError(t, err, "-model.seed=%d", w.Seed)
	}
	return seen
}

// replay runs a script.
func replay(t *testing.T, script string) {
	t.Helper()
	cmds, err := model.Parse(script)
	require.NoError(t, err)
	ia, err := open("")
	require.NoError(t, err)
	defer func() { _ = ia.Close() }()
	p := begin(ia, false, newCoverage())
	for _, c := range cmds {
		require.NoError(t, p.do(c), "in\n%s", p)
	}
	require.NoError(t, p.finish(), "in\n%s", p)
	require.NoError(t, ia.CloseGraceful())
}
