package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"godat/hw"
)

// session is the TCP connection over which the two programs exchange values. The client
// writes first in each exchange.
type session struct {
	net.Conn
	in     *bufio.Reader // of Conn
	client bool
	stop   func() bool
	why    context.Context // its end interrupts the exchange
	over   error           // what the end of the session means at present; nil: errHungUp

	// patience is how long a peer that is done with its part of the traffic waits for this
	// end, before this end says that the two don't play the same.
	patience time.Duration
}

// meet connects to the server, or waits for a client. The end of ctx interrupts the session.
func meet(ctx context.Context, o *options, out io.Writer, ready func(address string)) (*session, error) {
	at := net.JoinHostPort(o.Host, strconv.Itoa(int(o.Port)))
	if !o.client() {
		return awaitClient(ctx, o, at, out, ready)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("%w: start the server first, on the same TCP port (-p)", err)
	}
	return newSession(ctx, o, conn), nil
}

func newSession(ctx context.Context, o *options, conn net.Conn) *session {
	s := &session{Conn: conn, in: bufio.NewReader(conn), client: o.client(), why: ctx, patience: cmp.Or(o.patience, endTime)}
	s.stop = context.AfterFunc(ctx, s.interrupt)
	return s
}

// awaitClient waits for the first client that begins as the client of such a test does. Others
// that come to the port are told about in out, and sent away.
func awaitClient(ctx context.Context, o *options, at string, out io.Writer, ready func(address string)) (*session, error) {
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
	for {
		conn, err := ln.Accept()
		if err == nil {
			s := newSession(ctx, o, conn)
			if err = s.recognize(o); err == nil {
				return s, nil
			}
			_ = s.Close()
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case conn == nil:
			return nil, err
		}
		fmt.Fprintf(out, "  the client at %v is sent away: %v\n", conn.RemoteAddr(), err)
	}
}

// recognize looks at the first word of a client, which stays in s.in.
func (s *session) recognize(o *options) error {
	_ = s.SetReadDeadline(time.Now().Add(s.patience))
	n := versionSize
	if o.pingpong() {
		n = pairText
	}
	word, err := s.in.Peek(n)
	_ = s.SetReadDeadline(time.Time{})
	switch {
	case s.why.Err() != nil:
		s.interrupt()
		return context.Cause(s.why)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("it said %q in %v, which is not how a client of %s begins", word, s.patience, o.Test)
	case err != nil:
		return s.named(err)
	case o.pingpong():
		_, err = parsePairs(word, 1)
	default:
		err = checkVersion(word)
	}
	return err
}

func (s *session) interrupt() { _ = s.SetDeadline(time.Unix(1, 0)) }

// Close ends the session.
func (s *session) Close() error {
	s.stop()
	return s.Conn.Close()
}

var (
	errGone   = errors.New("the peer's program has ended in the middle of the test: its TCP session is over; see what it says, and that it has the same count (-n)")
	errApart  = errors.New("the peer is done with its part, and this end still waits: give both ends the same test, size (-s or -a), count (-n), queue pairs (-q) and -b")
	errUnlike = errors.New("the peer says something else at this point: give both ends the same test, queue pairs (-q), -a and -b")
	errHungUp = errors.New("the peer hung up in the middle of the exchange: see what it says, and that it runs the same test, with the same queue pairs (-q), -a and -b")
)

// during does the traffic of a test of perftest, whose ends keep their session meanwhile. So
// its end is the first sign that the peer has died, long before a request fails. A peer that has
// done its part writes. ibv_rc_pingpong and its kin close theirs before the traffic.
func (s *session) during(ctx context.Context, traffic func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go s.watch(cancel, watched)
	err := traffic(ctx)
	why := context.Cause(ctx)
	_ = s.SetReadDeadline(time.Unix(1, 0)) // ends the watch
	<-watched
	_ = s.SetReadDeadline(time.Time{})
	if s.why.Err() != nil {
		s.interrupt()
	}
	if err != nil && !errors.Is(err, why) && (errors.Is(why, errGone) || errors.Is(why, errApart)) {
		return fmt.Errorf("%w (%w)", why, err)
	}
	return err
}

// watch waits for the end of the session. What the peer says stays in s.in.
func (s *session) watch(cancel context.CancelCauseFunc, done chan<- struct{}) {
	defer close(done)
	for n := 1; ; n = s.in.Buffered() + 1 {
		switch _, err := s.in.Peek(n); {
		case err == nil && n == 1 && s.patience > 0:
			defer time.AfterFunc(s.patience, func() { cancel(errApart) }).Stop()
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, bufio.ErrBufferFull):
			return
		default:
			cancel(errGone)
			return
		}
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
	return fmt.Errorf("%w (%w)", cmp.Or(s.over, errHungUp), err)
}

// refuses returns what the program has to say against a peer's address, before the device does.
func refuses(peer, own hw.PairAddr) error {
	switch {
	case peer.GID == [16]byte{} && (peer.LID == 0 || own.LID == 0):
		return errors.New("the peer gave no GID, which Ethernet needs: start ibv_rc_pingpong with -g INDEX, of a GID like " + gidText(own))
	case peer.GID != [16]byte{} && mapped(peer) != mapped(own):
		return fmt.Errorf("the peer's GID %s and %s here are not of the same IP version: choose another by -g or -x there, or by --param gid=INDEX here", gidText(peer), gidText(own))
	}
	return nil
}
