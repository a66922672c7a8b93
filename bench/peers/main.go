// Command peers measures the transports that a Go team would pick in place of godat:
// gRPC and QUIC over loopback, and gRPC over godat's own byte streams. It is a module of
// its own, so that godat itself needs neither.
//
// `go run ./bench peers` builds it and runs its command rows, which lets all lanes take turns.
// `go run ./bench rpc` runs its command rpc, which compares calls: that starts this program
// anew, with the command end, as the client and the server of each row. Both commands have what
// they are to measure as JSON.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"godat/bench/lane"
	study "godat/bench/peers/calls"
)

func main() {
	// quic-go warns on the terminal of small socket buffers; what it does says so, too.
	err := os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	if err = errors.Join(err, run(os.Args[1:])); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
	}
	switch {
	case errors.Is(err, study.ErrBusy):
		os.Exit(4)
	case errors.Is(err, study.ErrUsage):
		os.Exit(2)
	case err != nil:
		os.Exit(1)
	}
}

// run runs a command.
func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "end":
		return study.Serve(os.Stdin, os.Stdout, func() { os.Exit(1) })
	case len(args) == 2 && args[0] == "rows":
		go follow(os.Stdin)
		return measure(args[1], os.Stdout)
	case len(args) == 2 && args[0] == "rpc":
		this, err := os.Executable()
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return study.Study(ctx, args[1], os.Stdout, []string{this, "end"})
	}
	return fmt.Errorf("%w: what is %q? go run ./bench runs this program", study.ErrUsage, args)
}

// follow ends this program with the one that started it.
func follow(in io.Reader) {
	_, _ = io.Copy(io.Discard, in)
	os.Exit(1)
}

// transport is what carries messages one way, or round trips.
type transport struct {
	Name, Does string // what it does, and what it does not
	RoundTrip  bool   // what is taken are answers
	Open       func(size, depth int) (lane.Lane, error)
}

// transports are all of them.
func transports() (list []transport) {
	for _, w := range wires {
		list = append(list, grpcLanes(w)...)
		if w.provider != "" {
			list = append(list, connLanes(w)...)
		}
	}
	return slices.Concat(list, quicLanes())
}

// opener makes a lane; roundTrip says whether what it takes are answers.
type opener func(size, depth int, roundTrip bool) (lane.Lane, error)

// bothWays returns a transport's two lanes: messages one way, and round trips.
func bothWays(name, does string, open opener) (list []transport) {
	for _, roundTrip := range []bool{false, true} {
		list = append(list, transport{
			Name: name, Does: does, RoundTrip: roundTrip,
			Open: func(size, depth int) (lane.Lane, error) { return open(size, depth, roundTrip) },
		})
	}
	return list
}
