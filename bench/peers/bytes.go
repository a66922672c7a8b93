package main

import (
	"io"

	"godat/bench/lane"
)

// newByteStream makes a lane from a to b, or if roundTrip from a to b and back. closeEnds
// closes both ends.
func newByteStream(a, b io.ReadWriter, size, depth int, roundTrip bool, closeEnds func() error) lane.Lane {
	cfg := lane.Config{Size: size, Depth: depth}
	there := lane.NewConn(a, b, cfg, lane.SocketRoom, closeEnds)
	if !roundTrip {
		return there
	}
	return lane.NewRoundTrip(there, lane.NewConn(b, a, cfg, lane.SocketRoom, func() error { return nil })) // there closes both ends
}

// slotLen is how many bytes at the beginning of a message tell its slot.
const slotLen = 8
