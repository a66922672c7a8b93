package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/alecthomas/kong"
)

// command is the command line.
type command struct {
	Repeats  int           `help:"How often all take turns (default 7; of targets, iwarp, stream and ratios 9)."`
	Duration time.Duration `help:"How long one turn is (default 180ms; of targets, iwarp, stream and ratios 40ms)." aliases:"slice"`

	Delivery  deliveryCommand  `cmd:"" default:"withargs" help:"What does each way of delivery cost? This is what runs without a command."`
	Latency   latencyCommand   `cmd:"" help:"Round trips between two goroutines."`
	Bandwidth bandwidthCommand `cmd:"" help:"RDMA writes of several sizes."`
	Scale     scaleCommand     `cmd:"" help:"Messages over many connections in turns."`
	Serve     serveCommand     `cmd:"" help:"Answer messages of dial, in another process or on another host."`
	Dial      dialCommand      `cmd:"" help:"Round trips to a process that runs serve."`
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
	kong.UsageOnError(),
}

func main() {
	var c command
	ctx := kong.Parse(&c, options...)
	ctx.BindTo(os.Stdout, (*io.Writer)(nil))
	ctx.FatalIfErrorf(ctx.Run(&c))
}

type (
	ratiosCommand  struct{}
	targetsCommand struct{}
	iwarpCommand   struct{}
	streamCommand  struct{}
)

// Run prints how the ways of delivery compare.
func (*ratiosCommand) Run(c *command, out io.Writer) error { return c.contests(out, delivery) }

// Run prints the project's targets.
func (*targetsCommand) Run(c *command, out io.Writer) error { return c.contests(out, targets) }

// Run prints the targets of iWARP.
func (*iwarpCommand) Run(c *command, out io.Writer) error { return c.contests(out, overTCP) }

// Run prints the targets of byte streams.
func (*streamCommand) Run(c *command, out io.Writer) error { return c.contests(out, streams) }

// contests runs f with one processor and with two. The error is that of the heading; the
// parser of the command line runs no command that returns none.
func (c *command) contests(out io.Writer, f func(io.Writer, contest)) error {
	x := contest{repeats: or(c.Repeats, 9), slice: or(c.Duration, 40*time.Millisecond)}
	_, err := fmt.Fprintf(out, "%s/%s, %d cores, %s; medians of %d repeats\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), x.repeats)
	if err != nil {
		return err
	}
	// One core first, because its figures are the steady ones.
	for _, x.procs = range []int{1, 2} {
		if x.procs <= runtime.NumCPU() {
			f(out, x)
		}
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
