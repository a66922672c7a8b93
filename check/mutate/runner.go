package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"godat/check/mutate/patch"
)

// verdict is the outcome of a mutation.
type verdict string

// The verdicts. All but killed fail the run, unless it only measures.
const (
	killed   verdict = "killed"   // the named test failed, as it must
	survived verdict = "SURVIVED" // the named test passed
	stale    verdict = "STALE"    // the old text does not occur exactly once
	broken   verdict = "BROKEN"   // it does not compile, or the test could not run
)

// result is the verdict on a mutation, and how it came about.
type result struct {
	verdict verdict
	tries   int // how often its test ran
	passed  int // and how often it passed
	took    time.Duration
	detail  string // output or error; empty for killed
}

// String returns the verdict; if some tries passed and others killed, it counts
// them.
func (r result) String() string {
	if r.chance() {
		return fmt.Sprintf("killed in %d of %d", r.tries-r.passed, r.tries)
	}
	return string(r.verdict)
}

// chance reports whether the mutation was killed, but not at every try: its test
// leaves the kill to chance.
func (r result) chance() bool { return r.verdict == killed && r.passed > 0 }

// runner compiles and runs the tests of a module, and of the modules below its directory.
type runner struct {
	root    string        // directory of the module
	temp    string        // for overlays and test binaries
	timeout time.Duration // for one run of a test
	kills   int           // how often each mutation must be killed
	passes  int           // how often its test must pass for the mutation to survive
}

// errNoTest says that a pattern matches no test.
var errNoTest = errors.New("no test has that name")

// baseline compiles the package of ms without a change and runs the named test of
// each, and notes what that takes. The test must exist and pass; otherwise its failure
// would show nothing.
func (r *runner) baseline(ctx context.Context, ms []*mutation) error {
	dir, err := os.MkdirTemp(r.temp, "base")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, out, err := r.compile(ctx, dir, *ms[0], "")
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", ms[0].where, err, out)
	}
	for _, m := range ms {
		start := time.Now()
		// Of a test that runs many times to lose a race, one pass is enough here.
		out, err = r.runTest(ctx, bin, *m, "-test.count=1")
		m.usual = time.Since(start)
		if err != nil {
			return fmt.Errorf("%s: %s %s must pass without the change: %w\n%s", m.where, m.pkg, m.test, err, tail(out))
		}
		if !ranLine(m.test).Match(out) {
			return fmt.Errorf("%s: %s %s: %w", m.where, m.pkg, m.test, errNoTest)
		}
	}
	return nil
}

// try applies m, runs its test and returns the result.
func (r *runner) try(ctx context.Context, m mutation) result {
	start := time.Now()
	res := r.judge(ctx, m)
	res.took = time.Since(start)
	return res
}

func (r *runner) judge(ctx context.Context, m mutation) result {
	dir, err := os.MkdirTemp(r.temp, "mut")
	if err != nil {
		return result{verdict: broken, detail: err.Error()}
	}
	defer os.RemoveAll(dir)
	overlay, err := patch.Overlay(r.root, dir, m.changes)
	switch {
	case errors.Is(err, patch.ErrStale):
		return result{verdict: stale, detail: err.Error()}
	case err != nil:
		return result{verdict: broken, detail: err.Error()}
	}
	bin, out, err := r.compile(ctx, dir, m, overlay)
	if err != nil {
		return result{verdict: broken, detail: "does not compile:\n" + tail(out)}
	}
	// A race may be won by chance, so the test runs until it has failed r.kills
	// times or passed r.passes times. One hang counts as neither: a machine that pauses makes
	// a test late, too.
	var res result
	hung := false
	for res.passed < r.passes && res.tries-res.passed < r.kills && res.verdict != broken {
		out, err = r.runTest(ctx, bin, m)
		if !hung && hangLine.Match(out) {
			hung = true
			continue
		}
		res.tries++
		res.verdict, res.detail = judgeRun(ctx, out, err)
		if res.verdict == survived {
			res.passed++
		}
	}
	return res
}

// maxPasses is how often a test must pass for its mutation to survive. A mutation
// whose kill is left to chance is printed and fails no run: most changes have
// nothing to do with it.
const maxPasses = 20

// judgeRun returns the verdict of one run of the named test.
func judgeRun(ctx context.Context, out []byte, err error) (verdict, string) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return survived, tail(out)
	case ctx.Err() != nil, !errors.As(err, &exit):
		return broken, err.Error() + "\n" + tail(out)
	case !failLine.Match(out):
		return broken, "ended without a failing test:\n" + tail(out)
	}
	return killed, ""
}

// failLine matches the line in which a test binary reports a failure. A panic, a
// crash, the time limit and a leak found by TestMain have no FAIL line.
var failLine = regexp.MustCompile(`(?m)^(--- FAIL: |panic: |fatal error: |unexpected fault address|SIG[A-Z]+: |goleak: )`)

// hangLine matches the line of a test binary that its time limit ends.
var hangLine = regexp.MustCompile(`(?m)^panic: test timed out after `)

// ranLine matches the line in which a test binary reports that the named test, or a
// subtest at the depth of the name, ran and passed.
func ranLine(test string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\s*--- PASS: [^/\s]+` + strings.Repeat(`/\S+`, strings.Count(test, "/")) + ` \(`)
}

// runPattern anchors each part of a test's name, as -test.run splits it.
func runPattern(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^(" + p + ")$"
	}
	return strings.Join(parts, "/")
}

// quickly are the flags of a build that takes little time: a broken program needs no vet, no
// symbols for a debugger, and no optimization. A mutation whose test needs one (it counts
// allocations or instructions) has other flags of its own.
var quickly = []string{"-vet=off", "-ldflags=-s -w", "-gcflags=godat/...=-N -l -dwarf=false"}

// compile builds the test binary of m's package, with the overlay if any. It runs go in the
// package's directory, so the package may be one of another module below root.
func (r *runner) compile(ctx context.Context, dir string, m mutation, overlay string) (bin string, out []byte, err error) {
	bin = filepath.Join(dir, "mutated.exe") // Windows wants the ending, the others don't mind
	args := append([]string{"test", "-c", "-o", bin}, quickly...)
	args = append(args, m.build...)
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir = r.dir(m)
	cmd.Env = append(os.Environ(), "GOTMPDIR="+r.temp) // so that nothing is left when it is ended
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 10*time.Second
	out, err = cmd.CombinedOutput()
	if err == nil {
		if _, err = os.Stat(bin); err != nil {
			err = fmt.Errorf("%s: %w", m.pkg, errNoTest)
		}
	}
	return bin, out, err
}

// dir is the directory of the package of m's test.
func (r *runner) dir(m mutation) string { return filepath.Join(r.root, filepath.FromSlash(m.pkg)) }

// runTest runs the named test in its package's directory. The binary's own time
// limit is shorter than the one of its process, so that the output shows where it
// hung.
func (r *runner) runTest(ctx context.Context, bin string, m mutation, flags ...string) ([]byte, error) {
	limit := r.limit(m)
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	args := []string{"-test.v", "-test.failfast", "-test.run=" + runPattern(m.test), "-test.timeout=" + limit.String()}
	args = append(append(args, m.run...), flags...)
	if usesRapid(ctx, bin) {
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=1ms") // a failing example is not needed
	}
	cmd := testBinary(ctx, bin, args...)
	cmd.Dir = r.dir(m)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	return out.Bytes(), err
}

// A run that takes so much longer than without the change, and so long at least, hangs.
const (
	hangsFactor = 20
	leastHang   = 3 * time.Second
)

// limit is the time limit of a run of m's test. Many mutations are killed by it, so it is
// no longer than shows a hang.
func (r *runner) limit(m mutation) time.Duration {
	limit := cmp.Or(m.limit, r.timeout)
	if m.usual == 0 {
		return limit
	}
	return min(limit, max(leastHang, hangsFactor*time.Duration(max(1, m.times))*m.usual))
}

// testBinary is a call of a test binary. One for the race detector would sleep for a second
// when it ends.
func testBinary(ctx context.Context, bin string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env = append(os.Environ(), "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	return cmd
}

// usesRapid reports whether a test binary has rapid's flags. A rapid test that
// fails would otherwise leave a file in the tree.
func usesRapid(ctx context.Context, bin string) bool {
	usage, _ := testBinary(ctx, bin, "-help").CombinedOutput() // ends with an error by design
	return bytes.Contains(usage, []byte("-rapid.nofailfile"))
}

// tail returns the last lines of out.
func tail(out []byte) string {
	const most = 25
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) > most {
		lines = append([]string{"..."}, lines[len(lines)-most:]...)
	}
	return strings.Join(lines, "\n")
}
