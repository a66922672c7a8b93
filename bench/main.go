package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// command is the command line.
type command struct {
	line  string // what repeats the run
	again rerun

	Repeats  int           `help:"How often all take turns (default 7; of targets, iwarp, stream and ratios 9)."`
	Duration time.Duration `help:"How long one turn is (default 150ms; of targets, iwarp, stream and ratios 40ms)." aliases:"slice"`

	Delivery  deliveryCommand  `cmd:"" default:"withargs" help:"What does each way of delivery cost? This is what runs without a command."`
	Latency   latencyCommand   `cmd:"" help:"Round trips between two goroutines."`
	Bandwidth bandwidthCommand `cmd:"" help:"RDMA writes of several sizes."`
	Scale     scaleCommand     `cmd:"" help:"Messages over many connections in turns."`
	Connect   connectCommand   `cmd:"" help:"Connections made in a second."`
	Serve     serveCommand     `cmd:"" help:"Answer messages of dial, in another process or on another host."`
	Dial      dialCommand      `cmd:"" help:"Round trips to a process that runs serve."`
	Peers     peersCommand     `cmd:"" help:"The same work by others: gRPC, QUIC, and programs in C that are installed."`
	Results   resultsCommand   `cmd:"" help:"Write bench/RESULTS.md: this machine's tables, and the figures in README.md. It takes a quarter of an hour."`
	Agree     agreeCommand     `cmd:"" help:"Run a command in pairs, and count in how many both runs agree within their intervals. It takes six minutes."`
	Show      showCommand      `cmd:"" help:"Show a run that was saved with --format json."`
	Ratios    ratiosCommand    `cmd:"" help:"Compare the ways of delivery by the time of a pair and a round trip."`
	Targets   targetsCommand   `cmd:"" help:"Measure the ratios that the project promises itself."`
	Iwarp     iwarpCommand     `cmd:"" help:"Measure the ratios of iWARP to plain TCP."`
	Stream    streamCommand    `cmd:"" help:"Measure the ratios of byte streams to net.Conn and net.Pipe."`
	Idle      idleCommand      `cmd:"" help:"Measure what idle connections between two processes cost."`
}

var options = []kong.Option{
	kong.Name("bench"),
	kong.Description("What does a channel cost me? Measures the ways of delivery on this machine, beside what a program would use instead."),
}

func main() {
	err := runWith(process, os.Args[1:], os.Stdout)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	if errors.Is(err, errMissed) {
		os.Exit(statusMissed)
	}
	os.Exit(1)
}

// run runs a command line, and what it reruns in this process.
func run(args []string, out io.Writer) error { return runWith(run, args, out) }

func runWith(again rerun, args []string, out io.Writer) error {
	c := command{line: strings.TrimSpace("go run ./bench " + strings.Join(args, " ")), again: again}
	parser, err := kong.New(&c, options...)
	if err != nil {
		return err
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		return err
	}
	ctx.BindTo(out, (*io.Writer)(nil))
	return ctx.Run(&c)
}

type (
	ratiosCommand  struct{}
	targetsCommand struct{}
	iwarpCommand   struct{}
	streamCommand  struct{}
)

// Run prints how the ways of delivery compare.
func (*ratiosCommand) Run(c *command, out io.Writer) error {
	return c.contests(out, func(w io.Writer, x contest) (missed int) {
		delivery(w, x)
		return 0
	})
}

// Run prints the project's targets. One that was missed is an error.
func (*targetsCommand) Run(c *command, out io.Writer) error { return c.contests(out, targets) }

// Run prints the targets of iWARP. One that was missed is an error.
func (*iwarpCommand) Run(c *command, out io.Writer) error { return c.contests(out, overTCP) }

// Run prints the targets of byte streams. One that was missed is an error.
func (*streamCommand) Run(c *command, out io.Writer) error { return c.contests(out, streams) }

var errMissed = errors.New("missed")

// contests runs f with one processor and with two. f returns how many targets were
// missed.
func (c *command) contests(out io.Writer, f func(io.Writer, contest) (missed int)) error {
	x := contest{repeats: or(c.Repeats, 9), slice: or(c.Duration, 40*time.Millisecond)}
	fmt.Fprintf(out, "%s/%s, %d cores, %s; medians of %d repeats\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), x.repeats)
	missed := 0
	// One core first, because its figures are the steady ones.
	for _, x.procs = range []int{1, 2} {
		if x.procs <= runtime.NumCPU() {
			missed += f(out, x)
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d targets %w", missed, errMissed)
	}
	return nil
}

// or returns a value, or if it is not set another one.
func or[T comparable](value, other T) T {
	var unset T
	if value == unset {
		return other
	}
	return value
}
