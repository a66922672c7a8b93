// Command peers measures the transports that a Go team would pick in place of godat:
// gRPC and QUIC over loopback, and gRPC over godat's own byte streams. It is a module of
// its own, so that godat itself needs neither.
//
// `go run ./bench peers` builds and runs it, and lets its lanes take turns with the
// others. Its input and output are those of package godat/bench/remote. `go run ./bench
// rpc` runs its command rpc, which compares calls.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"godat/bench/lane"
	"godat/bench/remote"
)

func main() {
	// quic-go warns on the terminal of small socket buffers; what it does says so, too.
	err := os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	if len(os.Args) > 1 && os.Args[1] == "rpc" {
		err = errors.Join(err, runStudy(os.Args[2:], os.Stdout))
	} else {
		err = errors.Join(err, remote.Serve(os.Stdin, os.Stdout, lanes()))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
	}
	switch {
	case errors.Is(err, errMissed):
		os.Exit(3)
	case err != nil:
		os.Exit(1)
	}
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
func bothWays(name, writes, does string, open opener) (list []remote.Lane) {
	for _, roundTrip := range []bool{false, true} {
		list = append(list, remote.Lane{
			Name: name, Writes: writes, Does: does, RoundTrip: roundTrip,
			Open: func(size, depth int) (lane.Lane, error) { return open(size, depth, roundTrip) },
		})
	}
	return list
}
