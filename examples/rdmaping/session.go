package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	dat "godat/runtime"
)

// session is the TCP connection over which the two programs exchange values. The client
// writes first in each exchange.
type session struct {
	net.Conn
	in     *bufio.Reader // of Conn
	client bool
	stop   func() bool
	why    context.Context // its end interrupts the exchange
}

// meet connects to the server, or waits for a client. The end of ctx interrupts the session.
func meet(ctx context.Context, o *options, ready func(address string)) (*session, error) {
	at := net.JoinHostPort(o.Host, strconv.Itoa(int(o.Port)))
	s := &session{client: o.client(), why: ctx}
	var err error
	if s.client {
		var d net.Dialer
		if s.Conn, err = d.DialContext(ctx, "tcp", at); err != nil {
			return nil, fmt.Errorf("%w: start the server first, on the same TCP port (-p)", err)
		}
	} else if s.Conn, err = awaitClient(ctx, at, ready); err != nil {
		return nil, err
	}
	s.in = bufio.NewReader(s.Conn)
	s.stop = context.AfterFunc(ctx, s.interrupt)
	return s, nil
}

func awaitClient(ctx context.Context, at string, ready func(address string)) (net.Conn, error) {
	var l net.ListenConfig
	ln, err := l.Listen(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	if ready != nil {
		ready(ln.Addr().String())
	}
	conn, err := ln.Accept()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return conn, err
}

func (s *session) interrupt() { _ = s.SetDeadline(time.Unix(1, 0)) }

// Close ends the session.
func (s *session) Close() error {
	s.stop()
	return s.Conn.Close()
}

var errGone = errors.New("the peer's program has ended in the middle of the test: its TCP session is over; see what it says")

// during does the traffic of a test of perftest, whose ends keep their session meanwhile. So
// its end is the first sign that the peer has died, long before a request fails. A peer that has done its part
// writes, which ends the watch. ibv_rc_pingpong and its kin close theirs before the traffic.
func (s *session) during(ctx context.Context, traffic func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go s.watch(cancel, watched)
	err := traffic(ctx)
	gone := context.Cause(ctx)
	_ = s.SetReadDeadline(time.Unix(1, 0)) // ends the watch
	<-watched
	_ = s.SetReadDeadline(time.Time{})
	if s.why.Err() != nil {
		s.interrupt()
	}
	if err != nil && errors.Is(gone, errGone) {
		return fmt.Errorf("%w (%w)", gone, err)
	}
	return err
}

// watch waits for the peer's next word, which stays in s.in, or for the end of the session.
func (s *session) watch(gone context.CancelCauseFunc, done chan<- struct{}) {
	defer close(done)
	if _, err := s.in.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		gone(errGone)
	}
}

// swap writes and reads one message of each end; both have the same length.
func (s *session) swap(mine, theirs []byte) error {
	if s.client {
		return errors.Join(s.put(mine), s.get(theirs))
	}
	if err := s.get(theirs); err != nil {
		return err
	}
	return s.put(mine)
}

func (s *session) put(b []byte) error {
	_, err := s.Write(b)
	return s.named(err)
}

func (s *session) get(b []byte) error {
	_, err := io.ReadFull(s.in, b)
	return s.named(err)
}

func (s *session) named(err error) error {
	switch {
	case err == nil:
		return nil
	case s.why.Err() != nil:
		return context.Cause(s.why)
	}
	return fmt.Errorf("the peer hung up in the middle of the exchange: see what it says, and that it runs the same test (%w)", err)
}

// refuses returns what the program has to say against a peer's address, before the device does.
func refuses(peer, own dat.PairAddr) error {
	switch {
	case peer.GID == [16]byte{} && (peer.LID == 0 || own.LID == 0):
		return errors.New("the peer gave no GID, which Ethernet needs: start ibv_rc_pingpong with -g INDEX, of a GID like " + gidText(own))
	case peer.GID != [16]byte{} && mapped(peer) != mapped(own):
		return fmt.Errorf("the peer's GID %s and %s here are not of the same IP version: choose another by -g or -x there, or by --param gid=INDEX here", gidText(peer), gidText(own))
	}
	return nil
}
