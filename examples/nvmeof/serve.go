package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
	"godat/examples/nvmeof/target"
	dat "godat/runtime"
)

// serve serves until ctx is done.
func serve(ctx context.Context, ia *dat.IA, o *serveOptions, out, log io.Writer) error {
	level := slog.LevelInfo
	if o.Verbose {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))
	ids, err := o.controllers()
	if err != nil {
		return err
	}
	d, err := openDisks(o, logger)
	if err != nil {
		return err
	}
	t, err := target.New(ctx, ia, target.Config{
		Addr: o.Listen[0], Subsystem: d.subsystem, Namespaces: d.all, Hosts: o.Host, Queues: o.Queues, Depth: o.Depth, ControllerIDs: ids, Log: logger,
	})
	if err != nil {
		return errors.Join(err, closeDisks(d.all))
	}
	addrs, err := prepare(ctx, t, ia, o)
	if err != nil {
		stopped, stop := context.WithCancel(ctx)
		stop()
		return errors.Join(err, t.Run(stopped)) // which closes all
	}
	fmt.Fprintf(out, "serving %s on %s\n", d.subsystem, strings.Join(addrs, ", "))
	for _, line := range d.about {
		fmt.Fprintln(out, line)
	}
	op := newOperator(t, d.all, o.ANA, out, logger)
	go op.run()
	err = t.Run(ctx)
	op.stop()
	printStats(out, t.Stats())
	return err
}

// prepare makes a target ready to run: its other addresses, those of other targets, and the state
// of its disks, and the page of --inspect. It returns the addresses on which the target listens.
func prepare(ctx context.Context, t *target.Target, ia *dat.IA, o *serveOptions) ([]string, error) {
	addrs := []string{t.Addr()}
	for _, addr := range o.Listen[1:] {
		listens, err := t.Listen(ctx, ia, addr)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, listens)
	}
	if err := list(ia, t); err != nil {
		return nil, err
	}
	if err := t.SetElsewhere(o.Elsewhere...); err != nil {
		return nil, err
	}
	return addrs, setANA(t, o.ANA)
}

// setANA sets the state of the disks to that in a file, if there is one.
func setANA(t *target.Target, file string) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--ana: %w", err)
	}
	state, err := nvme.ParseANAState(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("--ana %s: %w", file, err)
	}
	return t.SetANAState(1, state) // the group of all disks
}

// operator does what signals ask for.
type operator struct {
	target  *target.Target
	disks   []target.Namespace // as they are served; run's
	ana     string             // the file with their state, or ""
	out     io.Writer
	log     *slog.Logger
	signals chan os.Signal
	ended   chan struct{}
}

func newOperator(t *target.Target, disks []target.Namespace, ana string, out io.Writer, log *slog.Logger) *operator {
	op := &operator{target: t, disks: disks, ana: ana, out: out, log: log, signals: make(chan os.Signal, 1), ended: make(chan struct{})}
	signal.Notify(op.signals, operatorSignals...)
	return op
}

// run waits for signals until stop.
func (op *operator) run() {
	defer close(op.ended)
	for s := range op.signals {
		if s == syscall.SIGHUP {
			op.grow()
			if err := setANA(op.target, op.ana); err != nil {
				op.log.Error("the state of the disks", "error", err)
			}
		} else {
			printStats(op.out, op.target.Stats())
		}
	}
}

// stop ends run.
func (op *operator) stop() {
	signal.Stop(op.signals)
	close(op.signals)
	<-op.ended
}

// grow serves the disks whose files have grown at their new size.
func (op *operator) grow() {
	for i := range op.disks {
		if err := op.growDisk(uint32(i+1), &op.disks[i]); err != nil {
			op.log.Error("grow a disk", "namespace", i+1, "error", err)
		}
	}
}

func (op *operator) growDisk(nsid uint32, d *target.Namespace) error {
	g, ok := d.Store.(store.Grower)
	if !ok {
		return nil
	}
	larger, err := g.Grown()
	if larger == nil || err != nil {
		return err
	}
	next := *d
	next.Store = larger
	if err := op.target.Set(nsid, next); err != nil {
		return errors.Join(err, larger.Close())
	}
	*d = next
	return nil
}

// printStats prints a line for each kind of command of each queue, and lines for all
// together, those of queues that have ended included.
func printStats(out io.Writer, s target.Stats) {
	sortQueues(s.Queues)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "queue\tcommands\tcount\tmean\tmedian\t99 %\t99.9 %\tlongest")
	for _, q := range s.Queues {
		printLatencies(w, fmt.Sprintf("%s %s queue %d", q.Host, q.Address, q.Queue), q.Read, q.Write, q.Other)
	}
	printLatencies(w, "all", s.Read, s.Write, s.Other)
	_ = w.Flush() // as for all that is printed
	fmt.Fprintf(out, "queues %d, reads %d of %d bytes, writes %d of %d bytes, others %d, failures %d\n",
		s.Counters.Queues, s.Reads, s.BytesRead, s.Writes, s.BytesWritten, s.Others, s.Failures)
}

func printLatencies(w io.Writer, queue string, read, write, other target.Latency) {
	for i, l := range []target.Latency{read, write, other} {
		if l.Count != 0 {
			fmt.Fprintf(w, "%s\t%s\t%d\t%v\t%v\t%v\t%v\t%v\n", queue, [...]string{"reads", "writes", "others"}[i],
				l.Count, l.Mean, l.Median, l.P99, l.P999, l.Longest)
		}
	}
}
