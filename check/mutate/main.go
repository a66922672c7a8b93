package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup has it ignored
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(status(err))
	}
}

// misuse is an error of the command line.
type misuse struct{ error }

func misusef(format string, args ...any) error { return misuse{fmt.Errorf(format, args...)} }

// status is what mutate ends with: 0, 2 for a command line that makes no sense, and 1 for all else that failed.
func status(err error) int {
	if _, ok := errors.AsType[misuse](err); ok {
		return 2
	}
	if err != nil {
		return 1
	}
	return 0
}

// run is the program.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutate", flag.ExitOnError)
	only := flags.String("run", "", "only mutations whose name, after its directory's, matches this regular expression, as in ^loop:")
	parts := flags.Int("parts", 1, "divide the mutations into so many parts, and run one of them")
	part := flags.Int("part", 0, "the number of the part that runs, modulo parts")
	dir := flags.String("patches", "check/mutate/mutations", "directory of the directories of patches, from the module's root")
	parallel := flags.Int("j", min(2, runtime.GOMAXPROCS(0)), "mutations at a time")
	limit := flags.Duration("timeout", 20*time.Second, "time limit of one test run")
	kills := flags.Int("kills", 1, "how often each mutation is to be killed; more find the tests that leave it to chance")
	short := flags.Bool("short", false, "measure instead how many the inner loop kills: all tests of the named test's package, once, with -short, without -race")
	judge := flags.String("test", "", "measure instead how many this test kills, which runs once: PACKAGE REGEXP FLAGS, as in a patch")
	list := flags.Bool("list", false, "list the mutations and stop")
	if err := flags.Parse(args); err != nil {
		return err
	}
	judged := false
	flags.Visit(func(f *flag.Flag) { judged = judged || f.Name == "test" })
	switch {
	case flags.NArg() > 0:
		return misusef("%q is no flag: -run chooses mutations", flags.Arg(0))
	case *parts < 1 || *parallel < 1 || *kills < 1:
		return misusef("-parts, -j and -kills are at least 1")
	case *part < 0:
		return misusef("-part is not negative: it is taken modulo parts")
	case *limit < time.Second:
		return misusef("-timeout is at least a second")
	case judged && strings.TrimSpace(*judge) == "":
		return misusef("-test is PACKAGE REGEXP FLAGS, as in ./hw/loop TestASendMeetsItsReceiveAtAnyPoint -race")
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return misuse{err}
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all, err := loadPatches(filepath.Join(root, *dir))
	if err != nil {
		return err
	}
	var chosen []mutation
	for _, m := range all {
		if match.MatchString(m.title()) {
			chosen = append(chosen, m)
		}
	}
	chosen = partOf(chosen, *part, *parts)
	if len(chosen) == 0 {
		return misusef("no mutation matches %q in part %d of %d", *only, *part, *parts)
	}
	if *list {
		for _, m := range chosen {
			fmt.Printf("%-60s %-72s %s %s\n", m.where, m.title(), m.pkg, m.test)
		}
		return nil
	}
	for i := range chosen {
		if *short {
			chosen[i] = chosen[i].inShort()
		}
		if *judge != "" {
			if chosen[i], err = chosen[i].by(*judge); err != nil {
				return misuse{err}
			}
		}
	}
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	c := campaign{
		runner: runner{root: root, temp: temp, timeout: *limit, kills: *kills, passes: maxPasses},
		all:    chosen, parallel: *parallel,
	}
	if *short || *judge != "" {
		c.runner.passes, c.runner.kills, c.measures = 1, 1, true
	}
	return c.run(ctx)
}

// partOf returns each mutation whose place is the part's, modulo parts. All parts together are
// all mutations, and neighbors, which are often of one file, are in different ones.
func partOf(all []mutation, part, parts int) []mutation {
	var chosen []mutation
	for i, m := range all {
		if i%parts == part%parts {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// campaign is one run of mutate over the chosen mutations.
type campaign struct {
	runner   runner
	all      []mutation
	parallel int
	measures bool // survivors are counted, and do not fail the run
	results  []result
}

// run tries all mutations, prints each result and reports the failures.
func (c *campaign) run(ctx context.Context) error {
	if err := c.baselines(ctx); err != nil {
		return err
	}
	c.results = make([]result, len(c.all))
	each(ctx, c.parallel, len(c.all), c.tryOne)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	bad, chance := 0, 0
	for i, r := range c.results {
		switch {
		case r.chance():
			chance++
			fmt.Printf("%s: %s: %s\n", c.all[i].where, c.all[i].title(), r)
		case r.verdict != killed:
			bad++
			if c.measures && r.verdict == survived {
				fmt.Printf("%s: %s\n", r.verdict, c.all[i].title())
				continue
			}
			fmt.Printf("\n%s: %s: %s\n%s\n", c.all[i].where, c.all[i].title(), r.verdict, r.detail)
		}
	}
	if chance > 0 {
		fmt.Printf("%d of %d mutations were not killed at every try: their tests leave it to chance\n", chance, len(c.all))
	}
	if c.measures {
		text, err := share(c.results)
		if text != "" {
			fmt.Println(text)
		}
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d mutations were not caught", bad, len(c.all))
	}
	return nil
}

// share says how many were killed, of those that could be tried. It is an error if some could not: nobody knows what a
// test would say of them.
func share(results []result) (text string, err error) {
	var kills, lives int
	for _, r := range results {
		if r.verdict == killed {
			kills++
		} else if r.verdict == survived {
			lives++
		}
	}
	if tried := kills + lives; tried > 0 {
		text = fmt.Sprintf("%d of %d mutations are killed: %d %%", kills, tried, 100*kills/tried)
	}
	if rest := len(results) - kills - lives; rest > 0 {
		err = fmt.Errorf("%d mutations could not be tried: mend what is %s or %s above", rest, stale, broken)
	}
	return text, err
}

// baselines runs each distinct test once without any change. Tests of the same
// binary are run by one call of baseline, which compiles it once. What each takes is
// known then.
func (c *campaign) baselines(ctx context.Context) error {
	first := make(map[string]*mutation)    // by trial
	shared := make(map[string][]*mutation) // by binary
	for i := range c.all {
		if m := &c.all[i]; first[m.trial()] == nil {
			first[m.trial()] = m
			shared[m.binary()] = append(shared[m.binary()], m)
		}
	}
	binaries := slices.Sorted(maps.Keys(shared))
	errs := make([]error, len(binaries))
	each(ctx, c.parallel, len(binaries), func(ctx context.Context, i int) {
		errs[i] = c.runner.baseline(ctx, shared[binaries[i]])
	})
	for i := range c.all {
		c.all[i].usual = first[c.all[i].trial()].usual
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}

func (c *campaign) tryOne(ctx context.Context, i int) {
	c.results[i] = c.runner.try(ctx, c.all[i])
	if ctx.Err() != nil {
		return // its verdict is of the end
	}
	fmt.Printf("%-15s %6.1fs  %s  (%s %s)\n", c.results[i], c.results[i].took.Seconds(), c.all[i].title(), c.all[i].pkg, c.all[i].test)
}

// each calls f for every index below n, at most parallel calls at a time, until ctx ends.
func each(ctx context.Context, parallel, n int, f func(context.Context, int)) {
	var calls errgroup.Group
	calls.SetLimit(parallel)
	for i := range n {
		calls.Go(func() error {
			if ctx.Err() == nil {
				f(ctx, i)
			}
			return nil
		})
	}
	_ = calls.Wait()
}
