// Command peers measures the transports that a Go team would pick in place of godat:
// gRPC and QUIC over loopback, and gRPC over godat's own byte streams. It is a module of
// its own, so that godat itself needs neither.
//
// `go run ./bench peers` builds and runs it, and lets its lanes take turns with the
// others. Its input and output are those of package godat/bench/remote. `go run ./bench
// rpc` runs its command rpc, which compares calls: that starts this program anew, with the
// command end, as the client and the server of each row.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"godat/bench/lane"
	study "godat/bench/peers/calls"
	"godat/bench/remote"
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

// run runs a command: none serves lanes.
func run(args []string) error {
	switch {
	case len(args) > 0 && args[0] == "end":
		return study.Serve(os.Stdin, os.Stdout, func() { os.Exit(1) })
	case len(args) > 0 && args[0] != "rpc":
		return fmt.Errorf("%w: what is %q? go run ./bench runs this program", study.ErrUsage, args[0])
	case len(args) > 0:
		this, err := os.Executable()
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return study.Study(ctx, args[1:], os.Stdout, []string{this, "end"})
	}
	return remote.Serve(os.Stdin, os.Stdout, func() { os.Exit(1) }, lanes())
}

// lanes are all lanes: of messages one way, and of round trips.
func lanes() (list []remote.Lane) {
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
func bothWays(name, does string, open opener) (list []remote.Lane) {
	for _, roundTrip := range []bool{false, true} {
		list = append(list, remote.Lane{
			Name: name, Does: does, RoundTrip: roundTrip,
			Open: func(size, depth int) (lane.Lane, error) { return open(size, depth, roundTrip) },
		})
	}
	return list
}
