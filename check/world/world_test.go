package world

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/check/world/driver"
	"godat/check/world/nodes"
	"godat/check/world/program"
)

var (
	first    = flag.Uint64("world.first", 1, "the first seed")
	seeds    = flag.Int("world.seeds", 0, "how many seeds are run, of each program over each provider; 0 is one of each program over one of them, in the world a short one")
	provider = flag.String("world.provider", strings.Join(Providers, ","), "the providers")
	names    = flag.String("world.program", strings.Join(driver.Names, ",")+",volume", "the programs")
	twice    = flag.Bool("world.twice", true, "run each seed twice: both runs must be the same to the step")
	shorten  = flag.Bool("world.shorten", true, "look for the troubles without which a failing run fails, too")
	aloud    = flag.Bool("world.aloud", false, "print each step")
	troubles = flag.Int("world.troubles", 12, "troubles of a script, at most 1000")
	rounds   = flag.Int("world.rounds", 30, "rounds of each client, at most 10000")
	pause    = flag.Duration("world.pause", 0, "the most that a writer of a volume pauses, from 10ms to 1m; 0 is as the program has it")
)

// The bounds of the flags. Behind them a run takes hours: a writer pauses for days, or not at all.
const (
	mostTroubles = 1000
	mostRounds   = 10000
	leastPause   = 10 * time.Millisecond
	mostPause    = time.Minute
)

// mischosen is an error if the flags choose a run that there is not, or one that does not end.
func mischosen() error {
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("%q is no flag, and what stands behind it was not read", flag.Arg(0))
	case *seeds < 0:
		return errors.New("-world.seeds is not negative")
	case *first > math.MaxUint64-uint64(max(1, *seeds)):
		return fmt.Errorf("-world.first: there are no %d seeds from %d on", max(1, *seeds), *first)
	case *troubles < 0 || *troubles > mostTroubles:
		return fmt.Errorf("-world.troubles is from 0 to %d", mostTroubles)
	case *rounds < 1 || *rounds > mostRounds:
		return fmt.Errorf("-world.rounds is from 1 to %d", mostRounds)
	case *pause != 0 && (*pause < leastPause || *pause > mostPause):
		return fmt.Errorf("-world.pause is 0, or from %v to %v", leastPause, mostPause)
	}
	runs := append(All(Guest), All(VolumeGuest)...)
	programs, providers := strings.Split(*names, ","), strings.Split(*provider, ",")
	for _, name := range programs {
		if !slices.ContainsFunc(runs, func(r Run) bool { return r.Program == name }) {
			return fmt.Errorf("-world.program: no program is %q", name)
		}
	}
	for _, at := range providers {
		if !slices.Contains(Providers, at) {
			return fmt.Errorf("-world.provider: no provider is %q", at)
		}
	}
	runs = slices.DeleteFunc(runs, func(r Run) bool {
		return !slices.Contains(programs, r.Program) || !slices.Contains(providers, r.Provider)
	})
	for _, name := range programs {
		if chooses("world.program") && !slices.ContainsFunc(runs, func(r Run) bool { return r.Program == name }) {
			return fmt.Errorf("no run: %s does not run over %s", name, *provider)
		}
	}
	for _, at := range providers {
		if chooses("world.provider") && !slices.ContainsFunc(runs, func(r Run) bool { return r.Provider == at }) {
			return fmt.Errorf("no run: %s does not run over %s", *names, at)
		}
	}
	return nil
}

// chooses reports whether a flag has a value that is not its default.
func chooses(name string) bool {
	f := flag.Lookup(name)
	return f.Value.String() != f.DefValue
}

// chosen are the runs that the flags choose, without a seed.
func chosen(t *testing.T, guest string) (all []Run) {
	require.NoError(t, mischosen())
	for _, r := range All(guest) {
		if slices.Contains(strings.Split(*names, ","), r.Program) && slices.Contains(strings.Split(*provider, ","), r.Provider) {
			r.Troubles, r.Rounds, r.Pause, r.Aloud = *troubles, *rounds, *pause, *aloud
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		t.Skipf("the flags choose no program of %s", guest)
	}
	if *seeds == 0 {
		return brief(all)
	}
	return all
}

// brief has each program over one of its providers, not all over the same.
func brief(all []Run) (some []Run) {
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Program == all[0].Program {
			n++
		}
		some, all = append(some, all[(len(some)+1)%n]), all[n:]
	}
	return some
}

func TestFlagsThatChooseNothingAreAnError(t *testing.T) {
	for want, set := range map[string]map[string]string{
		`no program is "cals"`:                 {"world.program": "calls,cals"},
		`no provider is "lop"`:                 {"world.provider": "lop"},
		"volume does not run over sim":         {"world.program": "volume", "world.provider": "sim"},
		"model does not run over sim":          {"world.program": "calls,model", "world.provider": "sim"},
		"no run: volume does not run over sim": {"world.program": "volume", "world.provider": "loop,sim"},
		"-world.seeds is not negative":         {"world.seeds": "-1"},
		"no 1 seeds from 18446744073709551":    {"world.first": "18446744073709551615"},
		"no 9 seeds from 18446744073709551":    {"world.first": "18446744073709551610", "world.seeds": "9"},
		"-world.troubles is from 0 to 1000":    {"world.troubles": "1001"},
		"-world.troubles is from 0 to":         {"world.troubles": "-1"},
		"-world.rounds is from 1 to 10000":     {"world.rounds": "10001"},
		"-world.rounds is from 1":              {"world.rounds": "0"},
		"-world.pause is 0, or from 10ms to":   {"world.pause": "1ns"},
		"-world.pause is 0, or from":           {"world.pause": "100h"},
		"-world.pause is 0, or":                {"world.pause": "-1s"},
	} {
		require.ErrorContains(t, with(t, set, mischosen), want, set)
	}
	for _, set := range []map[string]string{
		{},
		{"world.program": "volume", "world.rounds": "1800", "world.troubles": "300", "world.pause": "4s"}, // an hour, as command results has it
		{"world.provider": "sim"}, // of all programs those that run over it
		{"world.program": "calls,model", "world.provider": "sim,loop"},
	} {
		require.NoError(t, with(t, set, mischosen), set)
	}
	before := flag.Args()
	defer func() { require.NoError(t, flag.CommandLine.Parse(before)) }()
	require.NoError(t, flag.CommandLine.Parse([]string{"calls", "-world.seeds=7"}))
	require.ErrorContains(t, mischosen(), `"calls" is no flag`)
}

// with calls f with flags set, and all others at their defaults.
func with(t *testing.T, set map[string]string, f func() error) error {
	before := make(map[string]string)
	flag.VisitAll(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, "world.") {
			before[f.Name] = f.Value.String()
			require.NoError(t, flag.Set(f.Name, cmp.Or(set[f.Name], f.DefValue)))
		}
	})
	err := f()
	for name, value := range before {
		require.NoError(t, flag.Set(name, value))
	}
	return err
}

// A page of a tree with changes is of no commit.
func TestACommitIsSaidWithItsChanges(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	says := func(want string) {
		commit, err := Commit(t.Context(), dir)
		require.NoError(t, err)
		require.Regexp(t, "^[0-9a-f]{12}"+want+"$", commit)
	}
	git("init", "-q")
	_, err := Commit(t.Context(), dir)
	require.ErrorContains(t, err, "git does not tell the commit")
	put("a.go", "package a\n")
	put("page.md", "before\n")
	git("add", ".")
	git("commit", "-qm", "all")
	put("page.md", "what a run writes\n")
	put("faults.txt", "what a run has printed\n")
	says("")
	put("b.go", "package a\n")
	says(Changed)
	git("add", ".")
	git("commit", "-qm", "more")
	says("")
	put("a.go", "package b\n")
	says(Changed)
	put("a.go", "package a\n")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	put("c.patch", "a fault\n")
	commit, err := Commit(t.Context(), filepath.Join(dir, "sub"))
	require.NoError(t, err)
	require.Contains(t, commit, Changed, "beside the folder where it runs, too")
}

func TestAGuestThatIsNotWholeIsToldFromOneThatIsWrong(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "guest.wasm")
	require.NoError(t, os.WriteFile(name, []byte("\x00asm\x01\x00\x00\x00\x0a\x7f"), 0o600))
	_, err := load(t.Context(), name)
	require.ErrorContains(t, err, "has "+dir+" room for it?")
}

func TestACommandGoesOnWithoutItsTerminalIfNohupHasStartedIt(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	require.NotContains(t, Ends(), os.Signal(syscall.SIGHUP))
	require.Contains(t, Ends(), os.Signal(syscall.SIGTERM))
}

func TestAnEndedBuildIsNoGuestThatCanNotBeBuilt(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	end(errors.New("somebody ends it"))
	_, err := Build(ctx, ".", Guest, t.TempDir(), "")
	require.EqualError(t, err, "somebody ends it")
}

func TestASeedIsAHistoryAndAllIsRightInIt(t *testing.T) { histories(t, Guest, max(1, *seeds)) }

// A minute of a volume takes seconds.
func TestASeedOfAVolumeIsAHistoryAndAllIsRightInIt(t *testing.T) {
	histories(t, VolumeGuest, max(1, *seeds/5))
}

func histories(t *testing.T, guest string, each int) {
	runs := chosen(t, guest)
	p, err := Build(t.Context(), ".", guest, t.TempDir(), "")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close(context.Background())) })
	for _, r := range runs {
		if *seeds == 0 {
			r = r.Short()
		}
		t.Run(r.Program+"/"+r.Provider, func(t *testing.T) {
			t.Parallel() // each run has one thread
			histories, took := make(map[string]bool), time.Duration(0)
			for i := range each {
				r.Seed = *first + uint64(i)
				result := r.In(t.Context(), p)
				if result.Err != "" && !*shorten {
					t.Errorf("%v: %s\n%s", r, result.Err, result.Output)
					continue
				}
				if result.Err != "" {
					short, failed := r.Shorten(t.Context(), p)
					t.Fatalf("%v, without the troubles %v: %s\n%s", r, short.Without, failed.Err, failed.Output)
				}
				if *twice {
					require.Equal(t, result, r.In(t.Context(), p), r)
				}
				histories[result.Output] = true
				took += result.Time
				if *aloud {
					t.Log(result.Output)
				}
			}
			assert.Len(t, histories, each, "each seed is a history of its own")
			t.Logf("%d seeds, %v of the world's time", each, took.Round(time.Second))
		})
	}
}

// The same programs on real processors: any order of goroutines, and the race detector. A poller that waits for a
// descriptor would hold synctest's clock; package posts runs on real processors and over polled devices.
func TestTheProgramsRunOnRealProcessorsToo(t *testing.T) { onProcessors(t, Guest, driver.Named) }

// An hour of a volume takes less than a minute here, which is how command results runs one.
func TestAVolumeRunsOnRealProcessorsToo(t *testing.T) { onProcessors(t, VolumeGuest, nodes.Named) }

func onProcessors(t *testing.T, guest string, named func(string, program.Size) (program.Program, error)) {
	runs := slices.DeleteFunc(chosen(t, guest), func(r Run) bool { return r.Provider == Polled })
	if len(runs) == 0 {
		t.Skipf("the flags choose none but %s, which does not run on real processors", Polled)
	}
	for _, r := range runs {
		for i := range max(1, *seeds) {
			r.Seed = *first + uint64(i)
			t.Run(fmt.Sprintf("%s/%s/%d", r.Program, r.Provider, r.Seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, err := program.New(r.Seed, r.Provider, nil)
					require.NoError(t, err)
					p, err := named(r.Program, program.Size{Servers: 3, Clients: 5, Rounds: r.Rounds, Troubles: r.Troubles, Pause: r.Pause})
					require.NoError(t, err)
					require.NoError(t, p.Run(w))
					history, err := w.End()
					t.Log(history)
					require.NoError(t, err)
				})
			})
		}
	}
}
