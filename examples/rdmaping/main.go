// Command rdmaping plays ping-pong, and measures sends, writes, reads and atomics, with a
// peer that connects without the connection manager: the two programs exchange queue pair
// numbers over TCP. It speaks the exchange of ibv_rc_pingpong and ibv_srq_pingpong, and that
// of perftest without -R, so either side can be a C program:
//
//	rdmaping pingpong                     ibv_rc_pingpong -g 1 -d rxe0 10.0.2.15
//	ib_write_bw -x 1 -d rxe0              rdmaping write_bw 10.0.2.15
//
// Without an address it is the server, which serves one client and ends with it. Both ends
// need the same test, size and count, and the same of -q, -a and -b.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"godat/examples/internal/usage"
	"godat/hw"
	dat "godat/runtime"
)

// options is the command line, with the C programs' letters where they have one.
type options struct {
	Test     string            `arg:"" enum:"pingpong,srq_pingpong,send_lat,write_lat,read_lat,atomic_lat,send_bw,write_bw,read_bw,atomic_bw" help:"ibv_rc_pingpong's or ibv_srq_pingpong's test, or perftest's of that name: pingpong, srq_pingpong; send_lat, write_lat, read_lat, atomic_lat; send_bw, write_bw, read_bw, atomic_bw."`
	Host     string            `arg:"" optional:"" help:"The server's address; without one, be the server."`
	Port     uint16            `short:"p" help:"The server's TCP port." default:"18515"`
	Size     int               `short:"s" help:"Bytes of a message; 0 means what the C program takes."`
	All      bool              `short:"a" help:"Run perftest's test with all sizes from 2 bytes to 8 MiB."`
	Count    int               `short:"n" help:"How many messages, of each size and on each queue pair." default:"1000"`
	Both     bool              `name:"bidirectional" short:"b" help:"Let both ends of a *_bw test make requests."`
	MTU      int               `short:"m" help:"The most bytes of a packet's payload; 0 means what the C program takes: 1024 for pingpong, whose exchange does not say it, and else what the two ports have."`
	Pairs    int               `short:"q" help:"How many queue pairs a *_bw test or srq_pingpong uses; 0 means what the C program takes: 1, and 16."`
	Reads    int               `short:"o" help:"How many reads or atomics this end makes, and takes, at a time; 0 means 4."`
	Check    bool              `short:"c" help:"Check what comes, as pingpong does."`
	GID      bool              `short:"x" help:"Exchange GIDs on InfiniBand, as the C programs do with -g or -x; on Ethernet it always does."`
	Timeout  time.Duration     `help:"How long the test may take." default:"10m"`
	Provider string            `help:"Provider and device to run on." default:"ibv"`
	Param    map[string]string `help:"Parameters of the provider, as in gid=3;mtu=1024."`

	patience time.Duration // in place of endTime
}

func (o *options) client() bool { return o.Host != "" }

func main() {
	o := &options{}
	parser := kong.Must(o, kong.Name("rdmaping"), kong.Description("Measures RDMA to a peer that connects without the connection manager."), kong.UsageOnError(), usage.Exit(), usage.Strict())
	_, err := parser.Parse(os.Args[1:])
	if err == nil {
		err = cmp.Or(usage.Reaches(o.Provider), o.check())
	}
	parser.FatalIfErrorf(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout, nil); err != nil {
		fmt.Fprintln(os.Stderr, "rdmaping:", err)
		os.Exit(usage.StatusOf(err))
	}
}

var errSlow = errors.New("the test has taken longer than --timeout: do both ends run the same test, with the same size (-s or -a), count (-n), queue pairs (-q) and -b?")

// run is the program. It calls ready, which may be nil, with the address at which a server
// waits.
func run(ctx context.Context, o *options, out io.Writer, ready func(address string)) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, errSlow)
	defer cancel()
	ia, err := dat.Open(ctx, o.Provider, dat.WithParams(o.Param))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ia.Close()) }()
	if err := pairs(ia); err != nil {
		return err
	}
	s, err := meet(ctx, o, out, ready)
	if err != nil {
		return err
	}
	defer s.Close()
	if o.pingpong() {
		return playPingpong(ctx, ia, o, s, out)
	}
	return playPerf(ctx, ia, o, s, out)
}

// pairs tries whether the device can do it at all, before a peer has come.
func pairs(ia *dat.IA) error {
	p, err := ia.NewPaired(dat.ConnConfig{Depth: 1})
	switch {
	case errors.Is(err, hw.ErrModelNotSupported):
		return fmt.Errorf("%w: its peers connect by the connection manager, as examples/rping and examples/dattest do", err)
	case err != nil:
		return err
	}
	return p.Close()
}

// measured prints what a test has measured: so many messages, and bytes of them all.
func measured(out io.Writer, took time.Duration, messages, bytes uint64) {
	seconds := max(took.Seconds(), 1e-9)
	fmt.Fprintf(out, "%d bytes in %.2f seconds = %.2f Mbit/sec\n", bytes, seconds, float64(bytes)*8/seconds/1e6)
	fmt.Fprintf(out, "%d iters in %.2f seconds = %.2f usec/iter\n", messages, seconds, seconds*1e6/float64(messages))
}
