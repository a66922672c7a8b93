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
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
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
	match, err := regexp.Compile(*only)
	if err != nil {
		return err
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
		return fmt.Errorf("no mutation matches %q", *only)
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
				return err
			}
		}
	}
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	c := campaign{
		runner: runner{root: root, temp: temp, timeout: *limit, kills: max(1, *kills), passes: maxPasses},
		all:    chosen, parallel: max(1, *parallel),
	}
	if *short || *judge != "" {
		c.runner.passes, c.runner.kills, c.measures = 1, 1, true
	}
	return c.run(ctx)
}

// partOf returns each mutation whose place is the part's, modulo parts. All parts together are
// all mutations, and neighbors, which are often of one file, are in different ones.
func partOf(all []mutation, part, parts int) []mutation {
	parts = max(1, parts)
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
	measures bool // survivors are counted, and no verdict fails the run
	results  []result
}

// run tries all mutations, prints each result and reports the failures.
func (c *campaign) run(ctx context.Context) error {
	if err := c.baselines(ctx); err != nil {
		return err
	}
	c.results = make([]result, len(c.all))
	each(ctx, c.parallel, len(c.all), c.tryOne)
	if err := ctx.Err(); err != nil {
		return err
	}
	bad, chance := 0, 0
	for i, r := range c.results {
		switch {
		case r.chance():
			chance++
			fmt.Printf("%s: %s: %s\n", c.all[i].where, c.all[i].title(), r)
		case r.verdict != killed:
			bad++
			if c.measures {
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
		fmt.Printf("%d of %d mutations are killed: %d %%\n", len(c.all)-bad, len(c.all), 100*(len(c.all)-bad)/len(c.all))
		return nil
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d mutations were not caught", bad, len(c.all))
	}
	return nil
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
	return errors.Join(append(errs, ctx.Err())...)
}

func (c *campaign) tryOne(ctx context.Context, i int) {
	c.results[i] = c.runner.try(ctx, c.all[i])
	fmt.Printf("%-15s %6.1fs  %s  (%s %s)\n", c.results[i], c.results[i].took.Seconds(), c.all[i].title(), c.all[i].pkg, c.all[i].test)
}

// each calls f for every index below n, at most parallel calls at a time.
func each(ctx context.Context, parallel, n int, f func(context.Context, int)) {
	var calls errgroup.Group
	calls.SetLimit(parallel)
	for i := range n {
		calls.Go(func() error {
			f(ctx, i)
			return nil
		})
	}
	_ = calls.Wait()
}
