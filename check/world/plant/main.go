// Command plant puts faults into the library, one at a time, and says which the seeded world finds: by programs
// that know nothing of them. It runs in the module's directory, as its README shows.
//
// A fault is a patch of check/mutate's form: those of the mutations, and those below faults. What plant prints begins with the
// commit and ends with a sum; command results makes a table of it.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"godat/check/mutate/patch"
	"godat/check/world"
	"godat/check/world/spent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), world.Ends()...)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "plant:", err)
		os.Exit(world.Status(err))
	}
}

func misusedf(format string, args ...any) error {
	return world.Misuse{Err: fmt.Errorf(format, args...)}
}

// campaign is what a run is asked for.
type campaign struct {
	seeds int
	every int           // of the faults, each so manieth is planted
	limit time.Duration // of processors, for one fault: no run begins behind it
	guest string        // the programs
	runs  string        // a regular expression: the programs and providers, such as calls/loop

	commit string                                        // which the report begins with
	try    func(ctx context.Context, path string) string // plants one fault, and says what became of it
}

func run(ctx context.Context, out io.Writer, args []string) error {
	var c campaign
	c.try = func(ctx context.Context, path string) string { return c.apart(ctx, path) }
	flags := flag.NewFlagSet("plant", flag.ExitOnError)
	only := flags.String("run", "", "only faults whose path, such as token/NAME.patch, matches this regular expression")
	one := flags.String("one", "", "plant this patch alone, in this process")
	flags.IntVar(&c.seeds, "seeds", 20, "seeds of each program over each provider, in short runs and in whole ones, which share the time")
	flags.IntVar(&c.every, "every", 1, "plant each so manieth")
	flags.DurationVar(&c.limit, "limit", 5*time.Minute, "time of processors for one fault, behind which no run begins")
	flags.StringVar(&c.guest, "guest", "", "the guest: "+world.Guest+" or "+world.VolumeGuest+"; without it the second for faults of the volume, the first for all others")
	flags.StringVar(&c.runs, "programs", "", "only programs over providers, such as calls/loop, that match this regular expression")
	if err := flags.Parse(args); err != nil {
		return err
	}
	given := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case flags.NArg() > 0:
		return misusedf("%q is no flag: -run chooses faults", flags.Arg(0))
	case given["one"] && (*one == "" || given["run"] || given["every"]):
		return misusedf("-one takes the path of a patch, and has no -run or -every beside it")
	}
	if err := c.check(); err != nil {
		return err
	}
	if *one != "" {
		found, err := c.plant(ctx, *one, func(line any) { fmt.Fprintln(out, line) })
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, found)
		return err
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return world.Misuse{Err: err}
	}
	var all []string
	for _, where := range []string{"../mutate/mutations/*/*.patch", "faults/*.patch"} {
		paths, err := filepath.Glob(where)
		if err != nil {
			return err
		}
		all = append(all, paths...)
	}
	if len(all) == 0 {
		return misusedf("no faults are here: run it in check/world")
	}
	all = slices.DeleteFunc(all, func(path string) bool { return !match.MatchString(named(path)) })
	if len(all) == 0 {
		return misusedf("no fault matches %q", match)
	}
	if c.commit, err = world.Commit(ctx, "."); err != nil {
		return err
	}
	return c.run(ctx, out, all)
}

// named is a fault's path as it is printed, such as token/NAME.patch.
func named(path string) string { return filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path) }

// check refuses what would plant nothing.
func (c campaign) check() error {
	if c.seeds < 1 || c.every < 1 || c.limit < time.Second {
		return misusedf("seeds and every are at least 1, and limit is at least a second")
	}
	guests := []string{world.Guest, world.VolumeGuest}
	if c.guest != "" {
		if !slices.Contains(guests, c.guest) {
			return misusedf("no guest is %q: one of %s", c.guest, strings.Join(guests, ", "))
		}
		guests = []string{c.guest}
	}
	var runs []world.Run
	for _, c.guest = range guests {
		some, err := world.Matching(c.guest, c.runs)
		if err != nil {
			return err
		}
		runs = append(runs, some...)
	}
	if len(runs) == 0 {
		return misusedf("no program matches %q", c.runs)
	}
	return nil
}

// run plants faults. It says the commit first, which command results looks for.
func (c campaign) run(ctx context.Context, out io.Writer, all []string) error {
	if _, err := fmt.Fprintf(out, "commit %s\n", c.commit); err != nil {
		return err
	}
	counts := make(map[string]*count)
	for i, path := range all {
		if i%c.every != 0 {
			continue
		}
		name, says := named(path), c.try(ctx, path)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		of := counts[filepath.Dir(name)]
		if of == nil {
			of = new(count)
			counts[filepath.Dir(name)] = of
		}
		of.add(says)
		if _, err := fmt.Fprintf(out, "%-70s %s\n", name, says); err != nil {
			return err
		}
	}
	var sum count
	for _, dir := range slices.Sorted(maps.Keys(counts)) {
		if _, err := fmt.Fprintf(out, "%s: %v\n", dir, *counts[dir]); err != nil {
			return err
		}
		sum.found += counts[dir].found
		sum.planted += counts[dir].planted
		sum.absent += counts[dir].absent
		sum.failed += counts[dir].failed
	}
	if _, err := fmt.Fprintf(out, "%v, by %d seeds\n", sum, c.seeds); err != nil {
		return err
	}
	if sum.failed > 0 {
		return fmt.Errorf("%d could not be planted", sum.failed)
	}
	return nil
}

// count is what became of faults.
type count struct{ found, planted, absent, failed int }

func (n *count) add(says string) {
	if strings.HasPrefix(says, failed) {
		n.failed++
		return
	}
	n.planted++
	switch {
	case says == absent:
		n.absent++
	case !strings.HasPrefix(says, lives):
		n.found++
	}
}

// String says how many were found.
func (n count) String() string {
	text := fmt.Sprintf("%d of %d found", n.found, n.planted)
	if n.absent > 0 {
		text += fmt.Sprintf(", %d of them in files that no program of the world has", n.absent)
	}
	return text
}

const (
	// lives begins the line of a fault that is not found.
	lives = "lives"
	// absent is the line of one that no seed can find.
	absent = lives + ": the guest has none of its files"
	// failed begins the line of one that nobody could plant.
	failed = "not planted"
	// bounded begins the line of the time of processors, its children's too, behind which the system ends the process.
	bounded = "bound "
)

// apart plants one fault in a process of its own, since it may spin. Its files are in a directory that this
// process removes, since it may be killed.
func (c campaign) apart(ctx context.Context, path string) string {
	self, err := os.Executable()
	if err != nil {
		return not(err)
	}
	dir, err := os.MkdirTemp("", "plant")
	if err != nil {
		return not(err)
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(ctx, self, "-one", path, fmt.Sprintf("-seeds=%d", c.seeds), fmt.Sprintf("-limit=%v", c.limit), "-programs="+c.runs, "-guest="+c.guest)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 10*time.Second
	var said, complained bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &complained
	err = cmd.Run()
	return became(err, cmd.ProcessState, said.String(), complained.String())
}

// not is the line of a fault that nobody could plant.
func not(why error) string { return fmt.Sprintf("%s: %v", failed, why) }

// became is what became of a fault, by the end of its process and what that has said.
func became(err error, state *os.ProcessState, said, complained string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	last := lines[len(lines)-1]
	switch {
	case err == nil:
		return last
	case state == nil || state.ExitCode() >= 0:
		return not(errors.New(cmp.Or(strings.TrimSpace(complained), err.Error())))
	}
	for _, line := range lines {
		text, ok := strings.CutPrefix(line, bounded)
		if bound, bad := time.ParseDuration(text); ok && bad == nil && state.UserTime()+state.SystemTime() > bound-slack {
			return fmt.Sprintf("%s: it spins: %v of a processor were not enough", last, most)
		}
	}
	return not(fmt.Errorf("%w, and not for its time of processors", err))
}

// slack is how far the system's two counts of the time of processors may be apart: the one of the bound, and what it says at the end.
const slack = 10 * time.Second

// most is what one run may take of a processor. Without a fault none takes a third.
const most = 2 * time.Minute

// plant plants one fault, and runs seeds until one finds it. It says its bound, and each run before it begins.
func (c campaign) plant(ctx context.Context, path string, says func(line any)) (found string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	_, changes, err := patch.Read(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	dir, err := os.MkdirTemp("", "plant")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	overlay, err := patch.Overlay(root, dir, changes)
	if err != nil {
		return "", err
	}
	if c.guest == "" {
		c.guest = world.Guest
		if slices.ContainsFunc(changes, func(x patch.Change) bool { return strings.HasPrefix(x.File, "examples/volume/") }) {
			c.guest = world.VolumeGuest
		}
	}
	if has, err := has(ctx, c.guest, root, changes); err != nil || !has {
		return absent, err
	}
	all, err := world.Matching(c.guest, c.runs)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", misusedf("no program of %s matches %q: give -guest, or other -programs", c.guest, c.runs)
	}
	p, err := world.Build(ctx, ".", c.guest, dir, overlay)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.Close(ctx)) }()
	begun := spent.Time()
	bound := begun + c.limit + most
	if err := spent.Most(bound); err != nil {
		return "", err
	}
	says(fmt.Sprint(bounded, bound+spent.Children()))
	lanes, runs := lanesOf(all), 0
	for {
		l := next(lanes, c.seeds)
		if l == nil {
			return fmt.Sprintf("%s: %d seeds", lives, c.seeds), nil
		}
		now := spent.Time()
		if now-begun > c.limit {
			return fmt.Sprintf("%s: %d runs in %v of processors", lives, runs, c.limit), nil
		}
		l.Seed++
		says(l.Run)
		result := l.In(ctx, p)
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if result.Err != "" {
			return fmt.Sprintf("%v: %s", l.Run, world.Why(result)), nil
		}
		l.had += spent.Time() - now
		runs++
	}
}

// lane is a program over a provider, in short runs or in whole ones.
type lane struct {
	world.Run
	had time.Duration // of processors
}

// lanesOf are the lanes of programs, the short ones first.
func lanesOf(all []world.Run) (lanes []*lane) {
	for _, r := range all {
		lanes = append(lanes, &lane{Run: r.Short()})
	}
	for _, r := range all {
		lanes = append(lanes, &lane{Run: r})
	}
	return lanes
}

// next is the lane that has had the least time, of those that have seeds left; nil if none has.
func next(lanes []*lane, seeds int) (least *lane) {
	for _, l := range lanes {
		if l.Seed < uint64(seeds) && (least == nil || l.had < least.had) {
			least = l
		}
	}
	return least
}

// has reports whether a guest is built of a file that a patch changes.
func has(ctx context.Context, guest, root string, changes []patch.Change) (bool, error) {
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-f", `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`, guest)
	list.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	files, err := list.Output()
	if err != nil {
		return false, fmt.Errorf("the guest's files can't be listed: %w", err)
	}
	return slices.ContainsFunc(changes, func(x patch.Change) bool {
		return slices.Contains(strings.Split(filepath.ToSlash(string(files)), "\n"), filepath.ToSlash(root)+"/"+x.File)
	}), nil
}
