package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"godat/bench/lane"
)

// grpcLanes are lanes of gRPC over a wire: messages of a stream, and calls.
func grpcLanes(w wire) []transport {
	const does = "protobuf, HTTP/2 with flow control; any goroutine may call, one at a time may send on a stream; no TLS; "
	calls := transport{
		Name: "gRPC call" + w.over, RoundTrip: true,
		Does: "a unary call, which blocks its goroutine; " + does + w.does,
		Open: func(size, _ int) (lane.Lane, error) { return newCalls(w, size) },
	}
	open := func(size, depth int, roundTrip bool) (lane.Lane, error) {
		return newMessages(w, size, depth, roundTrip)
	}
	return append(bothWays("gRPC stream"+w.over, "messages of one stream; "+does+w.does, open), calls)
}

// newMessage makes a message with room for a slot.
func newMessage(size int) *wrapperspb.BytesValue {
	return wrapperspb.Bytes(make([]byte, max(size, slotLen)))
}

// slotOf reads the slot of a message, and checks its size.
func slotOf(m *wrapperspb.BytesValue, size int) (int, error) {
	if len(m.Value) != max(size, slotLen) {
		return 0, fmt.Errorf("a message of %d bytes came with %d", size, len(m.Value))
	}
	return int(binary.LittleEndian.Uint64(m.Value)), nil
}

// messages is a lane of a stream's messages.
type messages struct {
	*echoServer
	to    grpc.ClientStream
	from  interface{ RecvMsg(m any) error }
	out   *wrapperspb.BytesValue
	size  int
	slots int
}

func newMessages(w wire, size, depth int, roundTrip bool) (*messages, error) {
	e, err := newEchoServer(w)
	if err != nil {
		return nil, err
	}
	l := &messages{echoServer: e, out: newMessage(size), size: size, slots: 2 * depth}
	kind := &sink
	if roundTrip {
		kind = echo
	}
	if l.to, err = e.client.NewStream(context.Background(), kind, method(kind)); err != nil {
		return nil, errors.Join(err, e.close())
	}
	l.from = l.to
	if !roundTrip {
		select {
		case l.from = <-e.sinks:
		case <-l.to.Context().Done():
			return nil, errors.Join(l.to.Context().Err(), e.close())
		}
	}
	return l, nil
}

// Slots is twice the depth.
func (l *messages) Slots() int { return l.slots }

// PostBlocks reports whether depth messages don't surely fit into the stream.
func (l *messages) PostBlocks(depth int) bool {
	return depth > 1 && depth*len(l.out.Value) > lane.SocketRoom
}

// Post sends a message.
func (l *messages) Post(slot int) error {
	binary.LittleEndian.PutUint64(l.out.Value, uint64(slot))
	return l.to.SendMsg(l.out)
}

// Take receives messages.
func (l *messages) Take(f func(slot int) bool) error {
	for {
		var m wrapperspb.BytesValue
		if err := l.from.RecvMsg(&m); err != nil {
			return err
		}
		slot, err := slotOf(&m, l.size)
		if err != nil {
			return err
		}
		if !f(slot) {
			return nil
		}
	}
}

// Close ends the stream and its server.
func (l *messages) Close() error { return l.close() }

// calls is a lane of calls, one at a time: a post returns with the answer.
type calls struct {
	*echoServer
	out     *wrapperspb.BytesValue
	size    int
	answers chan int // slots of answers that have not been taken
}

func newCalls(w wire, size int) (*calls, error) {
	e, err := newEchoServer(w)
	if err != nil {
		return nil, err
	}
	return &calls{echoServer: e, out: newMessage(size), size: size, answers: make(chan int, 2)}, nil
}

// Slots is enough for one call at a time.
func (l *calls) Slots() int { return cap(l.answers) }

// PostBlocks reports whether several calls are wanted at a time.
func (*calls) PostBlocks(depth int) bool { return depth > 1 }

// Post makes a call, and keeps its answer for Take.
func (l *calls) Post(slot int) error {
	binary.LittleEndian.PutUint64(l.out.Value, uint64(slot))
	var m wrapperspb.BytesValue
	if err := l.client.Invoke(context.Background(), call, l.out, &m); err != nil {
		return err
	}
	slot, err := slotOf(&m, l.size)
	if err != nil {
		return err
	}
	l.answers <- slot
	return nil
}

// Take takes answers.
func (l *calls) Take(f func(slot int) bool) error {
	for slot := range l.answers {
		if !f(slot) {
			break
		}
	}
	return nil
}

// Close closes the server, and ends a Take.
func (l *calls) Close() error {
	close(l.answers)
	return l.close()
}
