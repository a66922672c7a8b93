// Command results runs seeds of all programs, for a number of seeds or for some time, and writes a page: how much was
// run, whether two runs of a seed are the same, which troubles came, and what was found. It ends with status 1 if
// anything was. The page names its commit, and says if the tree had changes. The page's last line is a sum of the others, so that a test sees what was changed by hand. Behind the
// table are the campaigns that the command is given, each as a file of what runs of command plant have printed at the same commit:
//
//	cd check/world && go run ./plant -run '^faults/' -seeds 100 > faults.txt
//	cd check/world && go run ./results -seeds 100 -o RESULTS.md faults.txt
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"godat/check/world"
	"godat/check/world/host"
	"godat/check/world/spent"
)

func main() {
	var c campaign
	flag.IntVar(&c.seeds, "seeds", 10, "seeds of each program over each provider")
	flag.Uint64Var(&c.first, "first", 1, "the first seed")
	flag.DurationVar(&c.most, "for", 0, "end after this time, of the machine's clock, which the programs share, whatever is left; 0 is no limit")
	flag.IntVar(&c.short, "short", 0, "before the others so many short seeds of each program over each provider, for half of the time at most")
	flag.BoolVar(&c.twice, "twice", false, "run each seed twice: both must be the same to the step")
	flag.BoolVar(&c.hour, "hour", false, "run an hour of a volume over each provider, too, and say what it takes of a processor")
	flag.StringVar(&c.programs, "programs", "", "only programs over providers, such as calls/loop, that match this regular expression")
	file := flag.String("o", "", "the page's file, which is written when all has run; standard output if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), world.Ends()...)
	found, err := c.write(ctx, *file, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
		os.Exit(world.Status(err))
	}
	if found {
		os.Exit(1)
	}
}

// write runs the campaign and writes its page to a file, or to standard output. The file is as it was if there is no
// whole page, or no room for it; then standard output has the page, since it took long.
func (c *campaign) write(ctx context.Context, path string, plants []string) (found bool, err error) {
	if err := c.check(); err != nil {
		return false, err
	}
	var next *os.File
	if path != "" { // before an hour of seeds
		if next, err = beside(path); err != nil {
			return false, world.Misuse{Err: err}
		}
		defer os.Remove(next.Name()) // which is not there when it has got its name
		defer next.Close()
	}
	var page bytes.Buffer
	if found, err = c.run(ctx, &page, plants); err != nil {
		return found, err
	}
	page.WriteString(summed(page.Bytes()))
	if next != nil {
		if err = replace(path, next, page.Bytes()); err == nil {
			return found, nil
		}
	}
	_, second := page.WriteTo(os.Stdout)
	return found, errors.Join(err, second)
}

// beside makes the file that is to take the place of the page's. What is no page it does not replace.
func beside(path string) (*os.File, error) {
	was, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !was.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file: give -o a page's, or one that is not there yet", path)
	case was.Mode().Perm()&0o200 == 0:
		return nil, fmt.Errorf("%s may not be written to: chmod u+w it if it is to be replaced", path)
	}
	return os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
}

// replace writes a page into a file beside the one before, and puts it in its place.
func replace(path string, next *os.File, page []byte) error {
	_, err := next.Write(page)
	if err = errors.Join(err, next.Chmod(0o644), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}

// campaign is what a run is asked for.
type campaign struct {
	seeds int
	short int
	first uint64
	most  time.Duration
	twice bool
	hour  bool

	programs string
	end      time.Time
}

// row is a line of the table of programs.
type row struct {
	world.Run
	program  *host.Program
	seeds    int
	same     int // that were run twice, and were the same
	took     time.Duration
	spent    time.Duration // of a processor
	had      time.Duration // of the machine's clock
	troubles map[string]int
	findings []string
}

// check refuses what would run nothing.
func (c *campaign) check() error {
	switch {
	case c.seeds < 1 || c.short < 0 || c.most < 0:
		return world.Misuse{Err: errors.New("seeds is at least 1, and short and for are not negative")}
	case c.first > math.MaxUint64-uint64(max(c.seeds, c.short)):
		return world.Misuse{Err: fmt.Errorf("there are no %d seeds from %d on", max(c.seeds, c.short), c.first)}
	}
	some := 0
	for _, guest := range guests {
		runs, err := world.Matching(guest, c.programs)
		if err != nil {
			return err
		}
		some += len(runs)
		if c.hour && guest == world.VolumeGuest && len(runs) == 0 {
			return world.Misuse{Err: fmt.Errorf("no volume matches %q, and hour is of a volume", c.programs)}
		}
	}
	if some == 0 {
		return world.Misuse{Err: fmt.Errorf("no program matches %q", c.programs)}
	}
	if _, err := os.Stat(world.VolumeGuest); err != nil {
		return world.Misuse{Err: fmt.Errorf("no programs are here: run it in check/world: %w", err)}
	}
	return nil
}

// guests are those that have the programs; the volume's is last.
var guests = []string{world.Guest, world.VolumeGuest}

func (c *campaign) run(ctx context.Context, out io.Writer, plants []string) (found bool, err error) {
	commit, err := world.Commit(ctx, ".")
	if err != nil {
		return false, err
	}
	var tables bytes.Buffer
	faults := campaigns{commit: commit, faults: make(map[string]string)}
	for _, path := range plants { // before an hour of seeds
		if err := faults.planted(&tables, path); err != nil {
			return false, err
		}
	}
	dir, err := os.MkdirTemp("", "results")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	rows, err := c.load(ctx, dir)
	if err != nil {
		return false, err
	}
	hour := filepath.Join(dir, "world.test")
	if c.hour { // of the same tree as the guests
		built, err := world.Go(ctx, dir, "test", "-c", "-o", hour, ".").CombinedOutput()
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if err != nil {
			return false, fmt.Errorf("the test of a volume can't be built: %w\n%s", err, built)
		}
	}
	short := shortened(rows)
	begun := time.Now()
	brief := *c
	brief.seeds, brief.end = c.short, begun.Add(c.most/2)
	err = brief.play(ctx, short)
	c.end = begun.Add(c.most)
	err = errors.Join(err, c.play(ctx, rows))
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil {
		return false, err
	}
	args := quoted(slices.Clone(os.Args[1:]))
	fmt.Fprintf(out, "# What the seeded world has run\n\nCommit %s, by `cd check/world && go run ./results %s`. What a seed did in the world depends on the seed and the commit alone, so it repeats there; other work beside a run lengthens its processor times.\n\n", commit, args)
	if c.most > 0 {
		fmt.Fprintf(out, "The run ended when %v were over, which the programs shared, so not all seeds may have run.\n\n", c.most)
	}
	c.table(out, rows)
	if c.short > 0 {
		fmt.Fprintf(out, "\n## Short runs\n\nMost of such a run is the beginning and the end of connections: it has %d rounds and %d trouble (-world.rounds and -world.troubles), where the others have %d and %d.\n\n",
			world.ShortRounds, world.ShortTroubles, world.Rounds, world.Troubles)
		c.table(out, short)
	}
	if c.hour {
		if err := c.volumeHour(ctx, out, hour, rows); err != nil {
			return false, err
		}
	}
	found = slices.ContainsFunc(slices.Concat(rows, short), func(r *row) bool { return len(r.findings) > 0 })
	_, err = tables.WriteTo(out)
	return found, err
}

// shortened are the programs again, for short runs.
func shortened(rows []*row) (short []*row) {
	for _, r := range rows {
		short = append(short, &row{Run: r.Short(), program: r.program, troubles: make(map[string]int)})
	}
	return short
}

// load builds the guests that have the programs.
func (c *campaign) load(ctx context.Context, dir string) (rows []*row, err error) {
	for _, guest := range guests {
		runs, err := world.Matching(guest, c.programs)
		if err != nil {
			return nil, err
		}
		if len(runs) == 0 {
			continue
		}
		p, err := world.Build(ctx, ".", guest, dir, "")
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			rows = append(rows, &row{Run: r, program: p, troubles: make(map[string]int)})
		}
	}
	return rows, nil
}

// play runs seeds of the programs until there are no more, or the time is over, which the programs share. It is an
// error if that was no time for any.
func (c *campaign) play(ctx context.Context, rows []*row) error {
	for ctx.Err() == nil && (c.most == 0 || time.Now().Before(c.end)) {
		r := c.next(rows)
		if r == nil {
			break
		}
		began := time.Now()
		r.Seed = c.first + uint64(r.seeds)
		r.once(ctx, c.twice)
		if ctx.Err() != nil {
			break
		}
		r.had += time.Since(began)
		fmt.Fprintf(os.Stderr, "%v has run\n", r.Run)
	}
	if c.seeds > 0 && !slices.ContainsFunc(rows, func(r *row) bool { return r.seeds > 0 }) {
		return fmt.Errorf("no seed has run in %v: give -for more", c.most)
	}
	return nil
}

// next is the program that has had the least time, of those that have seeds left; nil if none has.
func (c *campaign) next(rows []*row) (least *row) {
	for _, r := range rows {
		if r.seeds < c.seeds && (least == nil || r.had < least.had) {
			least = r
		}
	}
	return least
}

// once runs one seed, or twice, beside each other.
func (r *row) once(ctx context.Context, twice bool) {
	runs, before := make([]host.Result, 1, 2), spent.Time()
	if twice {
		runs = runs[:2]
	}
	var both sync.WaitGroup
	for i := range runs {
		both.Go(func() { runs[i] = r.In(ctx, r.program) })
	}
	both.Wait()
	r.spent += (spent.Time() - before) / time.Duration(len(runs))
	if ctx.Err() != nil {
		return
	}
	result := runs[0]
	r.took += result.Time
	r.seeds++
	for _, m := range brought.FindAllStringSubmatch(ran.FindString(result.Output), -1) {
		n, _ := strconv.Atoi(m[1])
		r.troubles[m[2]] += n
	}
	if result.Err != "" {
		r.findings = append(r.findings, fmt.Sprintf("seed %d: %s", r.Seed, world.Why(result)))
		fmt.Fprintf(os.Stderr, "%v: %s\n%s\n", r.Run, result.Err, result.Output)
	}
	switch {
	case !twice:
	case runs[1] == result:
		r.same++
	default:
		r.findings = append(r.findings, fmt.Sprintf("seed %d: two runs differ", r.Seed))
	}
}

// brought matches the troubles in the line of a history.
var brought = regexp.MustCompile(`\b(\d+) ([a-z]+), `)

// volumeHour runs an hour of a volume with faults over each provider, on one real processor and by testing/synctest, where it
// takes a tenth of what the world takes. The troubles are the seed's, the order of goroutines is not. test is the binary.
func (c *campaign) volumeHour(ctx context.Context, out io.Writer, test string, rows []*row) error {
	fmt.Fprintf(out, "\n## An hour of a volume\n\nThree to five nodes, three writers, two clients of registers, a trouble about every ten seconds, on one real processor. The troubles repeat by the seed; the order of goroutines does not, nor what follows from it.\n\n")
	fmt.Fprintf(out, "| program | seed | of the processor, user time | history |\n|---|---|---|---|\n")
	for _, r := range rows {
		if r.Program != "volume" {
			continue
		}
		run := exec.CommandContext(ctx, test, "-test.v", "-test.run=^TestAVolumeRunsOnRealProcessorsToo$", "-test.timeout=1h",
			"-world.program=volume", "-world.provider="+r.Provider, fmt.Sprintf("-world.first=%d", c.first),
			"-world.seeds=1", "-world.rounds=1800", "-world.troubles=300", "-world.pause=4s")
		run.Env = append(os.Environ(), "GOMAXPROCS=1")
		printed, err := run.CombinedOutput()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if run.ProcessState == nil {
			return fmt.Errorf("the test of a volume does not start: %w", err)
		}
		history := ran.Find(printed)
		if err != nil || history == nil {
			fmt.Fprintf(os.Stderr, "%s", printed)
			history = fmt.Append(nil, "failed: ", err)
			r.findings = append(r.findings, string(history))
		}
		fmt.Fprintf(out, "| %s over %s | %d | %v | %s |\n", r.Program, r.Provider, c.first, run.ProcessState.UserTime().Round(100*time.Millisecond), history)
	}
	return nil
}

// ran matches the history that the test logs.
var ran = regexp.MustCompile(`\d+ steps in .*`)
