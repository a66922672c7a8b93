// Package world runs the programs of package program by seeds.
package world

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/check/world/host"
	"godat/check/world/program"
)

var (
	first    = flag.Uint64("world.first", 1, "the first seed")
	seeds    = flag.Int("world.seeds", 10, "how many seeds are run, of each provider")
	provider = flag.String("world.provider", "loop,iwarp", "the providers")
	twice    = flag.Bool("world.twice", true, "run each seed twice: both runs must be the same to the step")
	aloud    = flag.Bool("world.aloud", false, "print each step")
	troubles = flag.Int("world.troubles", 12, "troubles of a script")
	rounds   = flag.Int("world.rounds", 30, "rounds of each client")
)

// limits of a run.
var limits = host.Limits{Time: 2 * time.Hour, Spins: 1 << 22}

// load builds the guest, and compiles it.
func load(t *testing.T) *host.Program {
	t.Helper()
	name := filepath.Join(t.TempDir(), "guest.wasm")
	build := exec.Command("go", "build", "-o", name, "./guest")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	code, err := os.ReadFile(name)
	require.NoError(t, err)
	p, err := host.Load(t.Context(), code, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close(context.Background())) })
	return p
}

// command is a run of the guest.
type command struct {
	p        *host.Program
	seed     uint64
	provider string
	without  []int
}

func (c command) run(t *testing.T) host.Result {
	args := []string{strconv.FormatUint(c.seed, 10), c.provider, fmt.Sprintf("-troubles=%d", *troubles), fmt.Sprintf("-rounds=%d", *rounds)}
	if *aloud {
		args = append(args, "-v")
	}
	var left []string
	for _, n := range c.without {
		left = append(left, strconv.Itoa(n))
	}
	return c.p.Run(t.Context(), host.Run{
		Seed: c.seed, Limits: limits, Args: append(args, "-without="+strings.Join(left, ",")),
		Env: map[string]string{"GODAT_YIELD_SEED": args[0]}, // where the protocols let others run
	})
}

// shorten leaves out troubles without which the run fails, too.
func (c command) shorten(t *testing.T) (shortest command, failed host.Result) {
	failed = c.run(t)
	for n := range *troubles {
		less := c
		less.without = append(append([]int(nil), c.without...), n)
		if r := less.run(t); r.Err != "" {
			c, failed = less, r
		}
	}
	return c, failed
}

func TestASeedIsAHistoryAndAllIsRightInIt(t *testing.T) {
	p := load(t)
	for _, provider := range strings.Split(*provider, ",") {
		t.Run(provider, func(t *testing.T) {
			histories, took := make(map[string]bool), time.Duration(0)
			for i := range *seeds {
				c := command{p: p, seed: *first + uint64(i), provider: provider}
				r := c.run(t)
				if r.Err != "" {
					short, failed := c.shorten(t)
					t.Fatalf("seed %d, without the troubles %v: %s\n%s", c.seed, short.without, failed.Err, failed.Output)
				}
				if *twice {
					require.Equal(t, r, c.run(t), "seed %d", c.seed)
				}
				histories[r.Output] = true
				took += r.Time
				if *aloud {
					t.Log(r.Output)
				}
			}
			assert.Len(t, histories, *seeds, "each seed is a history of its own")
			t.Logf("%d seeds, %v of the world's time", *seeds, took.Round(time.Second))
		})
	}
}

// The same programs on real processors: any order of goroutines, and the race detector.
func TestTheProgramsRunOnRealProcessorsToo(t *testing.T) {
	for _, provider := range strings.Split(*provider, ",") {
		for i := range 3 {
			seed := *first + uint64(i)
			t.Run(fmt.Sprintf("%s/%d", provider, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, err := program.New(seed, provider, nil)
					require.NoError(t, err)
					p := program.Calls{Servers: 3, Clients: 5, Rounds: *rounds, Troubles: *troubles}
					require.NoError(t, p.Run(w))
					_, err = w.End()
					require.NoError(t, err)
				})
			})
		}
	}
}
