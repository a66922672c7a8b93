package main

import (
	"context"
	"errors"
	"net"

	"godat/bench/lane"
	dat "godat/runtime"
	"godat/runtime/stream"
)

// wire is what carries bytes below gRPC.
type wire struct {
	over     string // for names
	provider string // as dat.Open takes it; none is loopback TCP
	does     string
}

var wires = []wire{
	{"", "", "loopback TCP: system calls, and copies into and out of the kernel"},
	{" over godat's streams over loop", "loop", "godat/runtime/stream inside the process: no kernel"},
	{" over godat's streams over iwarp", "iwarp:127.0.0.1", "godat/runtime/stream on iWARP over loopback TCP: CRCs, system calls, copies into and out of the kernel"},
}

// link is a wire that is open: a listener, and what dials it.
type link struct {
	ln    net.Listener
	dial  func(ctx context.Context, addr string) (net.Conn, error)
	close func() error // closes the listener, too
}

// open listens.
func (w wire) open() (*link, error) {
	if w.provider == "" {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		dial := func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
		return &link{ln, dial, func() error { return closed(ln.Close()) }}, nil
	}
	ctx := context.Background()
	ia, err := dat.Open(ctx, w.provider)
	if err != nil {
		return nil, err
	}
	ln, err := stream.Listen(ctx, ia, ":0", stream.Config{})
	if err != nil {
		return nil, errors.Join(err, ia.Close())
	}
	dialer := &stream.Dialer{IA: ia}
	dial := func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "", addr) }
	return &link{ln, dial, func() error { return errors.Join(closed(ln.Close()), ia.Close()) }}, nil
}

// closed forgives that a listener was closed before: a gRPC server closes its own.
func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// pair is a connection: the end that dialed, and the one that accepted.
func (l *link) pair() (a, b net.Conn, err error) {
	accepted := make(chan error, 1)
	go l.accept(&b, accepted)
	if a, err = l.dial(context.Background(), l.ln.Addr().String()); err != nil {
		return nil, nil, errors.Join(err, l.ln.Close(), <-accepted)
	}
	return a, b, <-accepted
}

func (l *link) accept(conn *net.Conn, done chan<- error) {
	var err error
	*conn, err = l.ln.Accept()
	done <- err
}

// connLanes are lanes of a wire alone.
func connLanes(w wire) []transport {
	open := func(size, depth int, roundTrip bool) (lane.Lane, error) {
		l, err := w.open()
		if err != nil {
			return nil, err
		}
		a, b, err := l.pair()
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		return newByteStream(a, b, size, depth, roundTrip, func() error {
			return errors.Join(a.Close(), b.Close(), l.close())
		}), nil
	}
	return bothWays("net.Conn"+w.over, "a byte stream, which any goroutines may write and read; "+w.does, open)
}
