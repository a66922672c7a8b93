package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"godat/bench/lane"
	"godat/bench/load"
	"godat/bench/report"
	"godat/bench/trial"
)

var (
	small     = []int{64}
	one       = []int{1}
	closed    = []load.Rate{load.Closed}
	allLoads  = []load.Rate{load.Closed, 10_000, 100_000, 1_000_000, load.Max}
	asManyAs  = []load.Rate{load.Max}
	bulkSizes = []int{4 << 10, 64 << 10, 1 << 20}
)

type (
	deliveryCommand struct {
		loadFlags
		Producers []int `help:"Goroutines that post, on one endpoint." default:"1"`
		Anchors   bool  `help:"Measure a raw channel and ring, a map of channels, net.Conn and net.Pipe, too." default:"true" negatable:""`
	}
	latencyCommand struct {
		loadFlags
		Anchors bool `help:"Measure round trips over raw channels and rings, net.Conn and net.Pipe, too." default:"true" negatable:""`
	}
	bandwidthCommand struct {
		loadFlags
		Anchors bool `help:"Measure a copy in memory and net.Conn, too." default:"true" negatable:""`
	}
	scaleCommand struct {
		loadFlags
		Conns []int `help:"Connections that the messages go over in turns." default:"1,10,100,1000"`
	}
	connectCommand struct {
		adapterFlags
		Depth int `help:"Connections being made at a time." default:"1"`
		output
	}
	serveCommand struct {
		adapterFlags
		Port uint64 `help:"Where to listen." default:"7471"`
	}
	dialCommand struct {
		loadFlags
		Addr string `arg:"" help:"Where serve listens: HOST:PORT."`
	}
)

// only returns the anchors if they are wanted.
func only(wanted bool, anchors []lane.Anchor) []lane.Anchor {
	if wanted {
		return anchors
	}
	return nil
}

// Run measures messages from one endpoint to another.
func (d *deliveryCommand) Run(c *command, out io.Writer) error {
	open := func(cfg lane.Config) (lane.Lane, error) { return lane.NewEndpoints(cfg) }
	return d.run(c, out, study{report.Delivery, "loop", open, only(d.Anchors, lane.Anchors()), one, d.Producers, small, allLoads})
}

// Run measures round trips between two goroutines.
func (l *latencyCommand) Run(c *command, out io.Writer) error {
	open := func(cfg lane.Config) (lane.Lane, error) { return lane.NewEcho(cfg) }
	return l.run(c, out, study{report.Latency, "loop", open, only(l.Anchors, lane.RoundTrips()), one, one, small, closed})
}

// Run measures RDMA writes.
func (b *bandwidthCommand) Run(c *command, out io.Writer) error {
	open := func(cfg lane.Config) (lane.Lane, error) { return lane.NewWrites(cfg) }
	return b.run(c, out, study{report.Bandwidth, "loop", open, only(b.Anchors, lane.Copies()), one, one, bulkSizes, asManyAs})
}

// Run measures messages over many connections.
func (s *scaleCommand) Run(c *command, out io.Writer) error {
	for _, n := range s.Conns {
		if n < 1 || n > 100_000 {
			return misusedf("%d connections: from 1 to 100000", n)
		}
	}
	open := func(cfg lane.Config) (lane.Lane, error) { return lane.NewEndpoints(cfg) }
	return s.run(c, out, study{report.Scale, "loop", open, nil, s.Conns, one, small, closed})
}

// Run measures how fast connections are made.
func (d *connectCommand) Run(c *command, out io.Writer) error {
	if d.Depth < 1 || d.Depth > 64 {
		return misusedf("%d connections being made at a time: from 1 to 64", d.Depth)
	}
	cfg := d.config("loop")
	cfg.Depth = d.Depth
	row := report.Row{Depth: d.Depth, Rate: load.Closed, Conns: 1, Provider: cfg.Provider, Name: cfg.Provider}
	anchor := report.Row{Depth: d.Depth, Rate: load.Closed, Conns: 1, Name: "net.Conn", Anchor: true}
	return d.measure(c, out, report.Connect, []trial.Entry{
		{Row: row, Key: row.Name, Open: func() (lane.Lane, error) { return lane.NewSetups(cfg) }},
		{Row: anchor, Key: anchor.Name, Open: func() (lane.Lane, error) { return trial.OrRefusal(lane.NewDials(d.Depth)) }},
	})
}

// inProcess reports whether a provider reaches no other process.
func inProcess(provider string) bool {
	name, _, _ := strings.Cut(provider, ":")
	return name == "loop"
}

// Run measures round trips to another process.
func (d *dialCommand) Run(c *command, out io.Writer) error {
	if inProcess(d.Provider) {
		return misusedf("loop reaches no other process: name another --provider, such as iwarp")
	}
	at, port, err := net.SplitHostPort(d.Addr)
	if err != nil {
		return misusedf("%w: want HOST:PORT, as serve says it", err)
	}
	qual, err := strconv.ParseUint(port, 10, 64)
	if err != nil {
		return misusedf("port %q: %w", port, err)
	}
	open := func(cfg lane.Config) (lane.Lane, error) { return lane.DialEcho(cfg, at, qual) }
	return d.run(c, out, study{report.Latency, "iwarp", open, nil, one, one, small, closed})
}

// Run answers dialers until the program is interrupted.
func (s *serveCommand) Run(out io.Writer) error {
	if inProcess(s.Provider) {
		return misusedf("loop is reached by no other process: name another --provider, such as iwarp")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return serve(ctx, s.config("iwarp"), s.Port, out)
}

// serve answers dialers until ctx is done.
func serve(ctx context.Context, cfg lane.Config, port uint64, out io.Writer) error {
	ia, err := cfg.Adapter()
	if err != nil {
		return err
	}
	server, err := lane.NewServer(ia, port, func(err error) { fmt.Fprintln(out, "rejected:", err) })
	if err != nil {
		return errors.Join(err, ia.Close())
	}
	fmt.Fprintf(out, "serving on port %d; on the other side: go run ./bench dial --provider %s HOST:%d\n", server.Qual(), cfg.Provider, server.Qual())
	<-ctx.Done()
	err = ia.Close()
	server.Wait()
	return err
}
