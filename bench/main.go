package main

import (
	"errors"
	"fmt"
	"io"
	"os"
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
	Targets   targetsCommand   `cmd:"" help:"Measure the figures that the project promises itself: T1 to T13, T15 and T16; bench/ibv.sh measures T14. A miss is an error."`
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

func runWith(again rerun, args []string, out io.Writer) (err error) {
	defer recovered(&err)
	c := command{line: strings.TrimSpace("go run ./bench " + strings.Join(args, " ")), again: again}
	parser, err := kong.New(&c, options...)
	if err != nil {
		return err
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		return err
	}
	if c.Repeats < 0 || c.Duration < 0 {
		return fmt.Errorf("%d repeats of %v: neither may be negative", c.Repeats, c.Duration)
	}
	ctx.BindTo(out, (*io.Writer)(nil))
	return ctx.Run(&c)
}

type (
	ratiosCommand  struct{}
	targetsCommand struct{ gateFlags }
	iwarpCommand   struct{ gateFlags }
	streamCommand  struct{ gateFlags }
)

// Run prints how the ways of delivery compare.
func (*ratiosCommand) Run(c *command, out io.Writer) error {
	return gateFlags{Runs: 1}.judge(c, out, func(w io.Writer, x contest) []target {
		delivery(w, x)
		return nil
	})
}

// Run prints the project's targets. One that was missed is an error.
func (t *targetsCommand) Run(c *command, out io.Writer) error { return t.judge(c, out, targets) }

// Run prints the targets of iWARP. One that was missed is an error.
func (t *iwarpCommand) Run(c *command, out io.Writer) error { return t.judge(c, out, overTCP) }

// Run prints the targets of byte streams. One that was missed is an error.
func (t *streamCommand) Run(c *command, out io.Writer) error { return t.judge(c, out, streams) }

var errMissed = errors.New("missed")

// or returns a value, or if it is not set another one.
func or[T comparable](value, other T) T {
	var unset T
	if value == unset {
		return other
	}
	return value
}
