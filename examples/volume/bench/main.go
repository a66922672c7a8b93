// Command bench measures a volume beside the same engine on TCP: three processes each on one machine, whose nodes
// commit writes of a program at the leader. It is given turns: a row for the volume, then for TCP, and so on.
//
//	go run ./bench                  a table of ratios, of 7 turns
//	go run ./bench --stay 10m       1 MiB writes of 64 writers at the volume; it fails at an election
//	go run ./bench --away 3s        64 KiB writes of 24 writers, while a follower is stopped for so long: what it copies, and
//	                                for how long no write was answered; --size 1G fills a disk of that size first
//
// On TCP the data of each write is in its entry, and goes with it. Log, disk and engine are the same. In memory
// means that all files are in --memory, where a sync costs nothing.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"

	"godat/examples/internal/usage"
)

// options is the command line.
type options struct {
	turns        int
	time, stay   time.Duration
	away         time.Duration
	size         length
	memory, disk string
	rows         string
	provider     string
}

func main() {
	if text := os.Getenv(asNode); text != "" {
		exit(serveNode(text))
	}
	o := &options{size: diskLen}
	flag.IntVar(&o.turns, "turns", 7, "turns of each row")
	flag.DurationVar(&o.time, "time", 500*time.Millisecond, "time of a turn")
	flag.DurationVar(&o.stay, "stay", 0, "count elections for so long, and measure nothing")
	flag.DurationVar(&o.away, "away", 0, "stop a follower for so long, and measure nothing else")
	flag.Var(&o.size, "size", "length of the disk that --away fills first, such as 1G")
	flag.StringVar(&o.memory, "memory", "/dev/shm", "directory of files in memory")
	flag.StringVar(&o.disk, "disk", os.TempDir(), "directory of files on a disk")
	flag.StringVar(&o.rows, "rows", "", "regular expression of the rows' names")
	flag.StringVar(&o.provider, "provider", "iwarp", "the volume's provider")
	usage.Flags(flag.CommandLine, "bench measures a volume beside the same engine on TCP")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "bench: what is %q? --help lists the flags\n", flag.Args())
		os.Exit(usage.Status)
	}
	switch {
	case o.stay != 0:
		exit(stay(o, os.Stdout))
	case o.away != 0:
		exit(away(o, os.Stdout))
	}
	exit(measure(o, os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// row is a load.
type row struct {
	durable        bool
	bytes, writers int
}

// rows are the loads. The smallest write of a disk is a block of 512 bytes.
var rows = []row{
	{false, 512, 16},
	{false, 4 << 10, 1},
	{false, 4 << 10, 16},
	{false, 4 << 10, 64},
	{false, 64 << 10, 1},
	{false, 64 << 10, 16},
	{false, 64 << 10, 64},
	{false, 1 << 20, 16},
	{true, 4 << 10, 1},
	{true, 64 << 10, 64},
}

func (r row) String() string {
	where, size := "memory", fmt.Sprintf("%dB", r.bytes)
	if r.durable {
		where = "durable"
	}
	if r.bytes >= 1<<10 {
		size = fmt.Sprintf("%dK", r.bytes>>10)
	}
	return fmt.Sprintf("%s/%s/%d", where, size, r.writers)
}

// result is what a turn has measured.
type result struct {
	Commits   int           `json:"commits"` // in a second
	Longest   time.Duration `json:"longest"` // of 99 % of the writes
	Processor time.Duration `json:"processor"`
}

// measure measures the rows, and prints a table.
func measure(o *options, out io.Writer) error {
	chosen, err := regexp.Compile(o.rows)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "row\tcommits/s\tTCP\tratio\tCPU\tp99\t\n")
	var errs []error
	for _, durable := range []bool{false, true} {
		some := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.durable != durable || !chosen.MatchString(r.String()) })
		if len(some) == 0 {
			continue
		}
		dir := o.memory
		if durable {
			dir = o.disk
		}
		errs = append(errs, measureIn(o, dir, some, w))
	}
	return errors.Join(append(errs, w.Flush())...)
}

// measureIn measures rows whose files are in a directory.
func measureIn(o *options, dir string, some []row, w io.Writer) (err error) {
	var both [2]*system
	for i, kind := range []string{kindVolume, kindTCP} {
		if both[i], err = newSystem(kind, dir, o.provider, slog.LevelError, diskLen); err != nil {
			return err
		}
		defer func(s *system) { err = errors.Join(err, s.end()) }(both[i])
	}
	results := make([][2][]result, len(some))
	for turn := range o.turns {
		for i, r := range some {
			for j := range both {
				k := (j + turn) % 2
				x, err := both[k].turn(r, o.time)
				if err != nil {
					return fmt.Errorf("%s: %w", r, err)
				}
				results[i][k] = append(results[i][k], x)
			}
		}
	}
	for i, r := range some {
		report(r, results[i][0], results[i][1], w)
	}
	return nil
}

// report prints the medians of a row's turns: rates, and the volume's figures divided by TCP's of the same turn.
func report(r row, ours, theirs []result, w io.Writer) {
	over := func(f func(result) float64) float64 {
		var all []float64
		for i := range ours {
			all = append(all, f(ours[i])/f(theirs[i]))
		}
		return median(all)
	}
	rate := func(all []result) float64 {
		var rates []float64
		for _, x := range all {
			rates = append(rates, float64(x.Commits))
		}
		return median(rates)
	}
	ratio, cpu := over(func(x result) float64 { return float64(x.Commits) }), over(func(x result) float64 { return float64(x.Processor) })
	p99 := over(func(x result) float64 { return float64(x.Longest) })
	fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t\n", r, rate(ours), rate(theirs), ratio, cpu, p99)
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

var errElection = errors.New("the leader changed")

// stay writes for a time, and counts elections.
func stay(o *options, out io.Writer) (err error) {
	s, err := newSystem(kindVolume, o.disk, o.provider, slog.LevelInfo, diskLen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	_, first, err := s.leader()
	if err != nil {
		return err
	}
	term := first
	const step = 10 * time.Second
	for begun := time.Now(); time.Since(begun) < o.stay; {
		x, err := s.turn(row{bytes: 1 << 20, writers: 64}, min(step, o.stay))
		if err == nil {
			_, term, err = s.leader()
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%v: %d commits/s, p99 %v, %d elections\n", time.Since(begun).Round(time.Second), x.Commits, x.Longest.Round(time.Millisecond), term-first)
	}
	if term != first {
		return errElection
	}
	return nil
}
