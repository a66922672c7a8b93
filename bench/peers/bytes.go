package main

import (
	"encoding/binary"
	"io"

	"godat/bench/lane"
)

// room is how many bytes surely fit into a byte stream before any is read.
const room = 32 << 10

// byteStream is a lane of messages of one size over a byte stream with two ends.
type byteStream struct {
	to      io.Writer
	from    io.Reader
	out, in []byte
	slots   int
	close   func() error
	echoed  chan struct{} // closed when no message is echoed any more
}

// newByteStream makes a lane from a to b, or if roundTrip from a to b and back. close
// closes both ends.
func newByteStream(a, b io.ReadWriter, size, depth int, roundTrip bool, closeEnds func() error) lane.Lane {
	size = max(size, slotLen)
	l := &byteStream{to: a, from: b, out: make([]byte, size), in: make([]byte, size), slots: 2 * depth, close: closeEnds, echoed: make(chan struct{})}
	if !roundTrip {
		close(l.echoed)
		return l
	}
	l.from = a
	go l.echo(b, size)
	return l
}

// slotLen is how many bytes at the beginning of a message tell its slot.
const slotLen = 8

// echo sends back each message as a whole, until the stream ends.
func (l *byteStream) echo(end io.ReadWriter, size int) {
	defer close(l.echoed)
	buf := make([]byte, size)
	for {
		if _, err := io.ReadFull(end, buf); err != nil {
			return
		}
		if _, err := end.Write(buf); err != nil {
			return
		}
	}
}

// Slots is twice the depth.
func (l *byteStream) Slots() int { return l.slots }

// PostBlocks reports whether depth messages don't surely fit into the stream.
func (l *byteStream) PostBlocks(depth int) bool { return depth > 1 && depth*len(l.out) > room }

// Post writes a message.
func (l *byteStream) Post(slot int) error {
	binary.LittleEndian.PutUint64(l.out, uint64(slot))
	_, err := l.to.Write(l.out)
	return err
}

// Take reads messages.
func (l *byteStream) Take(f func(slot int) bool) error {
	for {
		if _, err := io.ReadFull(l.from, l.in); err != nil {
			return err
		}
		if !f(int(binary.LittleEndian.Uint64(l.in))) {
			return nil
		}
	}
}

// Close closes both ends.
func (l *byteStream) Close() error {
	err := l.close()
	<-l.echoed
	return err
}
