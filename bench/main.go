package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"godat/bench/host"
)

// command is the command line.
type command struct {
	line  string // what repeats the run
	again rerun
	watch func() host.Disturbed // begins to watch what other programs use of the processors

	Repeats  int           `help:"How often all take turns (default 9)."`
	Duration time.Duration `help:"How long one turn is (default 120ms)."`

	Delivery   deliveryCommand   `cmd:"" default:"withargs" help:"What does each way of delivery cost? This is what runs without a command."`
	Latency    latencyCommand    `cmd:"" help:"Round trips between two goroutines."`
	Bandwidth  bandwidthCommand  `cmd:"" help:"RDMA writes of several sizes."`
	Scale      scaleCommand      `cmd:"" help:"Messages over many connections in turns."`
	Connect    connectCommand    `cmd:"" help:"Connections made in a second."`
	Serve      serveCommand      `cmd:"" help:"Answer messages of dial, in another process or on another host."`
	Dial       dialCommand       `cmd:"" help:"Round trips to a process that runs serve."`
	Peers      peersCommand      `cmd:"" help:"The same work by others: gRPC, QUIC, and byte streams."`
	RPC        rpcCommand        `cmd:"" name:"rpc" help:"Calls of runtime/rpc beside those of gRPC, net/http, net/rpc and a plain server on net, in two processes each. It takes five minutes."`
	Storage    storageCommand    `cmd:"" help:"Interrupt or poll: 4 KiB reads and writes through a storage target and its host, from idle to saturation. It takes under twenty minutes."`
	Results    resultsCommand    `cmd:"" help:"Write bench/RESULTS.md: this machine's tables, and the figures in README.md. It takes ten minutes, and with --repeats 6 seven."`
	Idle       idleCommand       `cmd:"" help:"Measure what idle connections between two processes cost."`
	StorageEnd storageEndCommand `cmd:"" name:"storage-end" hidden:""`
	IdleEnd    idleEndCommand    `cmd:"" name:"idle-end" hidden:""`
}

var options = []kong.Option{
	kong.Name("bench"),
	kong.Description("What does a channel cost me? Measures the ways of delivery on this machine, beside what a program would use instead."),
}

func main() {
	err := runWith(process, host.WatchOthers, os.Args[1:], os.Stdout)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(status(err))
}

func runWith(again rerun, watch func() host.Disturbed, args []string, out io.Writer) (err error) {
	defer recovered(&err)
	c := command{line: strings.TrimSpace("go run ./bench " + strings.Join(args, " ")), again: again, watch: watch}
	parser, err := kong.New(&c, options...)
	if err != nil {
		return err
	}
	if err := empty(args); err != nil {
		return err
	}
	ctx, err := parser.Parse(args)
	if err == nil {
		err = once(ctx)
	}
	if err != nil {
		return misused(err)
	}
	if c.Repeats < 0 || c.Repeats > mostRepeats || c.Duration < 0 || c.Duration > longestTurn {
		return misusedf("%d repeats of %v: not negative, and up to %d of up to %v", c.Repeats, c.Duration, mostRepeats, longestTurn)
	}
	to := &sureWriter{to: out}
	ctx.BindTo(to, (*io.Writer)(nil))
	err = ctx.Run(&c)
	return errors.Join(to.err, unopened(err))
}

// A run of more would not end.
const (
	mostRepeats = 10_000
	longestTurn = time.Hour
)

// sureWriter notes that what was printed has not been written, as on a full disk, because many
// callers of Fprintf ignore its error.
type sureWriter struct {
	to  io.Writer
	err error
}

func (w *sureWriter) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("what was measured is not printed: %w", err)
	}
	return n, err
}

// or returns a value, or if it is not set another one.
func or[T comparable](value, other T) T {
	var unset T
	if value == unset {
		return other
	}
	return value
}
