// Package world runs the programs of package program by seeds.
package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"godat/check/world/driver"
	"godat/check/world/host"
)

// Providers are those that programs run over. The devices of sim must be polled.
var Providers = []string{"loop", "iwarp", Polled}

// Polled is the provider whose devices must be polled. A volume's nodes listen at addresses that it has not.
const Polled = "sim"

// limits of a run.
var limits = host.Limits{Time: 2 * time.Hour, Spins: 1 << 22}

// ticks are the seeds' by turns. With a coarse one more goroutines wake at the same moment, and meet.
var ticks = []time.Duration{0, time.Millisecond, 100 * time.Microsecond}

// Build builds a guest in the module's directory, and loads it. An overlay changes the code that it is built
// of, as go build -overlay does; "" changes nothing. dir is for files.
func Build(ctx context.Context, module, guest, dir, overlay string) (*host.Program, error) {
	name := filepath.Join(dir, "guest.wasm")
	args := []string{"build", "-o", name}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	build := Go(ctx, dir, append(args, guest)...)
	build.Dir = module
	build.Env = append(build.Env, "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	out, err := build.CombinedOutput()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the guest can't be built: %w\n%s", err, out)
	}
	return load(ctx, name)
}

// load loads a guest from its file. The linker does not tell that a full disk has taken only a part of it.
func load(ctx context.Context, name string) (*host.Program, error) {
	code, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	p, err := host.Load(ctx, code, filepath.Dir(name))
	if err != nil {
		return nil, fmt.Errorf("the guest that was built can't be loaded (has %s room for it?): %w", filepath.Dir(name), err)
	}
	return p, nil
}

// Go is a command of go whose files are in a directory, which the caller removes. When ctx ends it is interrupted.
func Go(ctx context.Context, dir string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", args...)
	c.Env = append(os.Environ(), "GOTMPDIR="+dir)
	c.Cancel, c.WaitDelay = func() error { return c.Process.Signal(os.Interrupt) }, 10*time.Second
	return c
}

// Changed stands behind the commit of a tree that has other code than its commit.
const Changed = ", with changes"

// Commit is the commit of the tree that dir is in, and says if the tree has other code. Pages and what runs have printed are none.
func Commit(ctx context.Context, dir string) (string, error) {
	git := func(args ...string) (string, error) {
		c := exec.CommandContext(ctx, "git", args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("git does not tell the commit of %s: %w\n%s", dir, err, out)
		}
		return strings.TrimSpace(string(out)), nil
	}
	commit, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "", err
	}
	others, err := git("status", "--porcelain", "--untracked-files=all", "--", ":(top)*.go", ":(top)*.s", ":(top)*.mod", ":(top)*.sum", ":(top)*.work", ":(top)*.patch")
	if others != "" {
		commit += Changed
	}
	return commit, err
}

// Run is one run of a program.
type Run struct {
	Program, Provider string
	Seed              uint64
	Troubles, Rounds  int
	Without           []int         // troubles that are left out
	Aloud             bool          // print each step
	Pause             time.Duration // the most that a writer of a volume pauses; 0 is as the program has it
}

// The size of a run.
const (
	Troubles = 12
	Rounds   = 30
)

// The size of a short run, most of which is the beginning and the end of connections.
const (
	ShortTroubles = 1
	ShortRounds   = 2
)

// Short is the run with less to do.
func (r Run) Short() Run {
	r.Troubles, r.Rounds = ShortTroubles, ShortRounds
	return r
}

// The guests: that of a volume has a larger program.
const (
	Guest       = "./guest"
	VolumeGuest = "./nodes/guest"
)

// All are all programs of a guest over all providers that they run over.
func All(guest string) (all []Run) {
	names, providers := driver.Names, Providers
	if guest == VolumeGuest {
		names = []string{"volume"}
		providers = slices.DeleteFunc(slices.Clone(providers), func(provider string) bool { return provider == Polled })
	}
	for _, name := range names {
		for _, provider := range providers {
			if name == driver.Name && provider != "loop" {
				continue // its calls have had all their effects when they return
			}
			all = append(all, Run{Program: name, Provider: provider, Troubles: Troubles, Rounds: Rounds})
		}
	}
	return all
}

// String names the run.
func (r Run) String() string {
	text := fmt.Sprintf("%s over %s, seed %d", r.Program, r.Provider, r.Seed)
	if r.Troubles != Troubles || r.Rounds != Rounds {
		text += fmt.Sprintf(" (-world.rounds %d -world.troubles %d)", r.Rounds, r.Troubles)
	}
	return text
}

// In runs it.
func (r Run) In(ctx context.Context, p *host.Program) host.Result {
	seed := strconv.FormatUint(r.Seed, 10)
	args := []string{seed, r.Provider, r.Program, fmt.Sprintf("-troubles=%d", r.Troubles), fmt.Sprintf("-rounds=%d", r.Rounds)}
	if r.Aloud {
		args = append(args, "-v")
	}
	if r.Pause != 0 {
		args = append(args, "-pause="+r.Pause.String())
	}
	left := make([]string, len(r.Without))
	for i, n := range r.Without {
		left[i] = strconv.Itoa(n)
	}
	return p.Run(ctx, host.Run{
		Seed: r.Seed, Limits: limits, Tick: ticks[r.Seed%uint64(len(ticks))], Args: append(args, "-without="+strings.Join(left, ",")),
		Env: map[string]string{
			"GODAT_YIELD_SEED": seed, // where the protocols let others run
			// For a profile of memory Go's runtime walks stacks, and ends the program by "invalid runtime symbol table"
			// when a timer of the scheduler's allocates (go1.26.8, wasm).
			"GODEBUG": "memprofilerate=0",
		},
	})
}

// Why is the first line that says what was wrong in a run: one that is not its history.
func Why(result host.Result) string {
	for line := range strings.Lines(result.Output) {
		if line = strings.TrimSpace(line); line != "" && !history.MatchString(line) {
			return line[:min(len(line), 200)]
		}
	}
	return result.Err
}

// history matches the line that a run ends with, whatever was wrong in it.
var history = regexp.MustCompile(`^\d+ steps in `)

// Shorten leaves out troubles without which the run fails, too.
func (r Run) Shorten(ctx context.Context, p *host.Program) (shortest Run, failed host.Result) {
	failed = r.In(ctx, p)
	for n := range r.Troubles {
		less := r
		less.Without = append(append([]int(nil), r.Without...), n)
		if result := less.In(ctx, p); result.Err != "" {
			r, failed = less, result
		}
	}
	return r, failed
}

// Misuse is an error of a command line.
type Misuse struct{ Err error }

// Error implements error.
func (m Misuse) Error() string { return m.Err.Error() }

// Unwrap returns the reason.
func (m Misuse) Unwrap() error { return m.Err }

// Status is what a command ends with: 0, 2 for a command line that makes no sense, and 1 for all else that failed.
func Status(err error) int {
	if _, ok := errors.AsType[Misuse](err); ok {
		return 2
	}
	if err != nil {
		return 1
	}
	return 0
}

// Ends are the signals that end a command in order. A command that nohup has started goes on when its terminal is gone.
func Ends() []os.Signal {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	return ends
}

// Matching are the programs over providers of a guest, such as calls/loop, that match a regular expression.
func Matching(guest, text string) (some []Run, err error) {
	match, err := regexp.Compile(text)
	if err != nil {
		return nil, Misuse{Err: err}
	}
	for _, r := range All(guest) {
		if match.MatchString(r.Program + "/" + r.Provider) {
			some = append(some, r)
		}
	}
	return some, nil
}
