// Package link is one connection of a test, with an event dispatcher for each kind of
// event, and the memory that it sends from and receives into.
package link

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// Link is an endpoint with its dispatchers and memory. One goroutine uses it.
type Link struct {
	ia   *dat.IA
	pz   *mem.PZ
	poll bool
	cno  *evd.CNO

	EP            *ep.Endpoint
	Recv, Request *evd.Dispatcher
	conn, arrival *evd.Dispatcher
	psp           *ep.PSP
	rsp           *ep.RSP
	pools         []*Pool
	up            bool
}

// Config says how much a link may have outstanding, and how it waits.
type Config struct {
	Recvs, Requests, Segments int
	Poll                      bool     // poll for completions instead of waiting for them
	CNO                       *evd.CNO // wait for completions here, if it is set; it stays the caller's
}

// New makes a link that is not connected.
func New(ia *dat.IA, pz *mem.PZ, cfg Config) (*Link, error) {
	l := &Link{ia: ia, pz: pz, poll: cfg.Poll, cno: cfg.CNO}
	for _, d := range []struct {
		to      **evd.Dispatcher
		qlen    int
		streams event.Streams
		cno     *evd.CNO
	}{
		{&l.Recv, cfg.Recvs, event.StreamDTO, cfg.CNO},
		{&l.Request, cfg.Requests, event.StreamDTO | event.StreamBind, cfg.CNO},
		{&l.conn, 4, event.StreamConnection, nil},
		{&l.arrival, 8, event.StreamCR, nil},
	} {
		var err error
		if *d.to, err = ia.NewDispatcher(evd.Config{QLen: d.qlen, Streams: d.streams, CNO: d.cno}); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	var err error
	l.EP, err = ia.NewEndpoint(ep.Config{
		PZ: pz, Recv: l.Recv, Request: l.Request, Conn: l.conn,
		Attr: &ep.Attr{
			MaxRecvDTOs: cfg.Recvs, MaxRequestDTOs: cfg.Requests, MaxRecvIOV: cfg.Segments, MaxRequestIOV: cfg.Segments,
		},
	})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close frees the link and its memory. It breaks a connection.
func (l *Link) Close() error {
	var errs []error
	if l.psp != nil {
		errs = append(errs, l.psp.Close())
	}
	if l.rsp != nil {
		errs = append(errs, l.rsp.Close())
	}
	if l.EP != nil {
		errs = append(errs, l.EP.Close())
	}
	for _, p := range l.pools {
		errs = append(errs, p.lmr.Free())
	}
	for _, d := range []*evd.Dispatcher{l.Recv, l.Request, l.conn, l.arrival} {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(errs...)
}

// Listen listens for the one connection request that Accept waits for, at a service
// point reserved for this endpoint or at a public one. If qual is 0, the provider
// chooses the qualifier.
func (l *Link) Listen(qual uint64, reserved bool) (err error) {
	if reserved {
		l.rsp, err = l.ia.NewRSP(ep.RSPConfig{Qual: qual, Endpoint: l.EP, Dispatcher: l.arrival})
		return err
	}
	l.psp, err = l.ia.NewPSP(ep.PSPConfig{Qual: qual, Dispatcher: l.arrival})
	return err
}

// Qual is the qualifier that the link listens on, or 0.
func (l *Link) Qual() uint64 {
	switch {
	case l.rsp != nil:
		return l.rsp.Qual()
	case l.psp != nil:
		return l.psp.Qual()
	}
	return 0
}

// Accept waits for the request, which must carry private, accepts it, and waits until
// the connection is up. Then it stops listening.
func (l *Link) Accept(ctx context.Context, private string) error {
	ev, err := l.next(ctx, l.arrival)
	if err != nil {
		return fmt.Errorf("waiting for a connection request: %w", err)
	}
	cr := ep.RequestOf(ev)
	q, err := cr.Query()
	if err != nil {
		return err
	}
	// The transport may pad the private data.
	if len(q.Private) < len(private) || string(q.Private[:len(private)]) != private {
		return errors.Join(fmt.Errorf("a connection request with the private data %q, not %q", q.Private, private), cr.Reject(nil))
	}
	if l.rsp != nil {
		err = cr.Accept(nil, nil)
	} else {
		err = cr.Accept(l.EP, nil)
	}
	if err != nil {
		return err
	}
	if err := l.established(ctx); err != nil {
		return err
	}
	return l.stopListening()
}

func (l *Link) stopListening() (err error) {
	if l.psp != nil {
		err = l.psp.Close()
	}
	if l.rsp != nil {
		err = errors.Join(err, l.rsp.Close())
	}
	l.psp, l.rsp = nil, nil
	return err
}

// How often Retry calls connect, and how long it pauses in between.
const (
	attempts = 8
	pause    = time.Second
)

// Retry calls connect, which asks a peer for a connection. It calls connect again, a few
// times, if the peer has rejected the request.
func Retry(ctx context.Context, connect func() error) error {
	for try := 1; ; try++ {
		err := connect()
		if !errors.Is(err, event.Error(event.PeerRejected)) || try == attempts {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Connect connects, as Retry does. Before each attempt it calls post, which posts the
// receives for the peer's first messages.
func (l *Link) Connect(ctx context.Context, addr string, qual uint64, private string, post func() error) error {
	return Retry(ctx, func() error {
		if err := l.reset(); err != nil {
			return err
		}
		if err := post(); err != nil {
			return err
		}
		if err := l.EP.Connect(ep.ConnectConfig{Addr: addr, Qual: qual, Private: []byte(private)}); err != nil {
			return err
		}
		return l.established(ctx)
	})
}

// reset prepares the endpoint for another attempt if it has made one.
func (l *Link) reset() error {
	if l.EP.State() == ep.Unconnected {
		return nil
	}
	if err := l.EP.Reset(); err != nil {
		return err
	}
	var flushed [16]event.Event
	for {
		if n, err := l.Recv.Dequeue(flushed[:]); n == 0 || err != nil {
			return err
		}
	}
}

func (l *Link) established(ctx context.Context) error {
	ev, err := l.next(ctx, l.conn)
	switch {
	case err != nil:
		return fmt.Errorf("waiting for the connection: %w", err)
	case ev.Number != event.Established:
		return fmt.Errorf("connecting: %w", cause(ev))
	}
	l.up = true
	return nil
}

// cause turns an event that is not the expected one into an error.
func cause(ev event.Event) error {
	if err := ev.Err(); err != nil {
		return err
	}
	return fmt.Errorf("unexpected event %v", ev)
}

// Disconnect ends the connection and waits for the event of its end.
func (l *Link) Disconnect(ctx context.Context, how ep.CloseFlags) error {
	if !l.up {
		return nil
	}
	l.up = false
	if err := l.EP.Disconnect(how); err != nil {
		return err
	}
	ev, err := l.next(ctx, l.conn)
	if err != nil {
		return fmt.Errorf("waiting for the disconnect: %w", err)
	}
	if ev.Number != event.Disconnected && ev.Number != event.Broken { // the peer may have ended the connection before, abruptly
		return cause(ev)
	}
	return nil
}

// Ended waits for the orderly end of the connection, and fails if another event
// follows.
func (l *Link) Ended(ctx context.Context) error {
	l.up = false
	ev, err := l.next(ctx, l.conn)
	if err != nil {
		return fmt.Errorf("waiting for the disconnect: %w", err)
	}
	if ev.Number != event.Disconnected {
		return cause(ev)
	}
	var more [1]event.Event
	if n, _ := l.conn.Dequeue(more[:]); n > 0 {
		return fmt.Errorf("after the end of the connection: %v", more[0])
	}
	return nil
}

// Completion is what a completion must say.
type Completion struct {
	Op     hw.Op
	Cookie uint64
	Length int
}

// Reap waits for the next completion of d, which must be want.
func (l *Link) Reap(ctx context.Context, d *evd.Dispatcher, want Completion) error {
	ev, err := l.reap(ctx, d)
	if err != nil {
		return l.explain(err)
	}
	return l.Check(ev, want)
}

// Check is an error if a completion differs from want.
func (l *Link) Check(ev event.Event, want Completion) error {
	switch {
	case ev.Err() != nil:
		return ev.Err()
	case ev.Op != want.Op || ev.Cookie != want.Cookie || int(ev.Length) != want.Length || ep.Of(ev) != l.EP:
		return fmt.Errorf("%v, where %v with cookie %#x and %d bytes should be", ev, want.Op, want.Cookie, want.Length)
	}
	return nil
}

// explain adds to the error of a wait how the connection ended, if it has.
func (l *Link) explain(err error) error {
	var evs [1]event.Event
	if n, _ := l.conn.Dequeue(evs[:]); n == 1 {
		l.up = false
		return errors.Join(err, fmt.Errorf("the connection ended: %v", evs[0].Number))
	}
	return err
}

func (l *Link) reap(ctx context.Context, d *evd.Dispatcher) (event.Event, error) {
	if !l.poll && l.cno == nil {
		return l.next(ctx, d)
	}
	var one [1]event.Event
	for i := 1; ; i++ {
		n, err := d.Dequeue(one[:])
		if n == 1 || err != nil {
			return one[0], err
		}
		if err := l.pause(ctx, i); err != nil {
			return one[0], err
		}
	}
}

// pause is called when a dispatcher was empty for the ith time. The CNO may have been
// triggered by another dispatcher, so the caller polls again in any case.
func (l *Link) pause(ctx context.Context, i int) error {
	if l.poll {
		return Idle(ctx, i)
	}
	_, err := l.cno.Wait(ctx)
	return err
}

// After napAfter polls that found nothing, a poller sleeps for nap: one that only
// yields keeps Go's scheduler from polling the network.
const (
	napAfter = 256
	nap      = 10 * time.Microsecond
)

// Idle is called by a poller that has found nothing for the ith time.
func Idle(ctx context.Context, i int) error {
	if i%napAfter != 0 {
		runtime.Gosched()
		return nil
	}
	time.Sleep(nap)
	return ctx.Err()
}

func (l *Link) next(ctx context.Context, d *evd.Dispatcher) (event.Event, error) {
	ev, _, err := d.Wait(ctx, 1)
	return ev, err
}
