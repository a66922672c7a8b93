package world

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
	troubles = flag.Int("world.troubles", 12, "troubles of a script")
	rounds   = flag.Int("world.rounds", 30, "rounds of each client")
	pause    = flag.Duration("world.pause", 0, "the most that a writer of a volume pauses; 0 is as the program has it")
)

// mischosen is an error if the flags choose a run that there is not, since nothing would run.
func mischosen() error {
	if *seeds < 0 || *troubles < 0 || *pause < 0 || *rounds < 1 {
		return errors.New("-world.seeds, -world.troubles and -world.pause are not negative, and -world.rounds is at least 1")
	}
	runs, some := append(All(Guest), All(VolumeGuest)...), false
	for _, name := range strings.Split(*names, ",") {
		if !slices.ContainsFunc(runs, func(r Run) bool { return r.Program == name }) {
			return fmt.Errorf("-world.program: no program is %q", name)
		}
		for _, at := range strings.Split(*provider, ",") {
			if !slices.ContainsFunc(runs, func(r Run) bool { return r.Provider == at }) {
				return fmt.Errorf("-world.provider: no provider is %q", at)
			}
			some = some || slices.ContainsFunc(runs, func(r Run) bool { return r.Program == name && r.Provider == at })
		}
	}
	if !some {
		return fmt.Errorf("no run: %s does not run over %s", *names, *provider)
	}
	return nil
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
		`no program is "cals"`:              {"world.program": "calls,cals"},
		`no provider is "lop"`:              {"world.provider": "lop"},
		"volume does not run over sim":      {"world.program": "volume", "world.provider": "sim"},
		"and -world.pause are not negative": {"world.pause": "-1s"},
		"-world.rounds is at least 1":       {"world.rounds": "0"},
	} {
		before := make(map[string]string)
		for name, value := range set {
			before[name] = flag.Lookup(name).Value.String()
			require.NoError(t, flag.Set(name, value))
		}
		err := mischosen()
		for name, value := range before {
			require.NoError(t, flag.Set(name, value))
		}
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, mischosen())
}

// A page of a tree with changes is of no commit.
func TestACommitIsSaidWithItsChanges(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
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
