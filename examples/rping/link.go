package main

import (
	"context"
	"errors"
	"fmt"

	dat "godat/runtime"
)

// link is one connection, with its memory. One goroutine uses it.
type link struct {
	pz       *dat.PZ
	events   *dat.Dispatcher
	ep       *dat.Endpoint
	messages *dat.LMR // the outgoing advert, and behind it the incoming one
	seen     [4]int   // by cookie: completions that no wait has taken yet
	sending  bool     // the send of an advert has not completed
}

// The cookies of the requests, and one for Established, which is no completion.
const (
	sent uint64 = iota
	received
	moved
	connected
)

var errGone = errors.New("the peer has gone")

// newLink makes a link that is not connected, with one receive posted.
func newLink(ia *dat.IA) (l *link, err error) {
	l = &link{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if l.pz, err = ia.NewPZ(); err != nil {
		return nil, err
	}
	if l.messages, err = l.pz.Alloc(2*advertSize, dat.LocalRead|dat.LocalWrite); err != nil {
		return nil, err
	}
	if l.events, err = ia.NewDispatcher(dat.DispatcherConfig{Mode: dat.ModeChannel, QLen: 8}); err != nil {
		return nil, err
	}
	l.ep, err = ia.NewEndpoint(dat.EndpointConfig{
		PZ: l.pz, Recv: l.events, Request: l.events, Conn: l.events,
		Attr: &dat.EndpointAttr{MaxRecvDTOs: 2, MaxRequestDTOs: 2, MaxReadIn: 1, MaxReadOut: 1},
	})
	if err != nil {
		return nil, err
	}
	return l, l.receive()
}

// receive posts the receive for the peer's next message.
func (l *link) receive() error {
	return l.ep.PostRecv(received, dat.Default, l.messages.Segment(advertSize, advertSize))
}

// send sends an advert. It waits for the completion of the send before it, but not for
// its own: a peer that has the advert may leave at once.
func (l *link) send(ctx context.Context, r dat.RemoteSegment) error {
	if l.sending {
		if err := l.wait(ctx, sent); err != nil {
			return err
		}
	}
	putAdvert(l.messages.Bytes()[:advertSize], r)
	l.sending = true
	return l.ep.PostSend(sent, dat.Default, l.messages.Segment(0, advertSize))
}

// next waits for the peer's next message, copies it, and posts another receive.
func (l *link) next(ctx context.Context) (advert [advertSize]byte, err error) {
	if err := l.wait(ctx, received); err != nil {
		return advert, err
	}
	copy(advert[:], l.messages.Bytes()[advertSize:])
	return advert, l.receive()
}

// wait waits for the completion with that cookie, or for Established.
func (l *link) wait(ctx context.Context, cookie uint64) error {
	for l.seen[cookie] == 0 {
		select {
		case ev := <-l.events.C():
			if err := l.take(ev); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	l.seen[cookie]--
	return nil
}

func (l *link) take(ev dat.Event) error {
	switch {
	case ev.Number == dat.Established:
		l.seen[connected]++
	case ev.Number == dat.Disconnected:
		return errGone
	case ev.Number != dat.DTOCompletion:
		return ev.Err()
	case ev.Status == dat.StatusFlushed: // the event of the connection's end follows
	case ev.Status != dat.StatusSuccess:
		return fmt.Errorf("%v: %w", ev.Op, ev.Err())
	case ev.Op == dat.OpRecv && ev.Length != advertSize:
		return fmt.Errorf("a message of %d bytes, not %d", ev.Length, advertSize)
	default:
		l.seen[ev.Cookie]++
	}
	return nil
}

// hangUp ends the connection gracefully.
func (l *link) hangUp(ctx context.Context) error {
	if err := l.ep.Disconnect(dat.Graceful); err != nil {
		return err
	}
	for {
		if err := l.wait(ctx, connected); err != nil {
			if errors.Is(err, errGone) {
				return nil
			}
			return err
		}
	}
}

// close frees what the link has, also when newLink has half made it.
func (l *link) close() error {
	var errs []error
	if l.ep != nil {
		errs = append(errs, l.ep.Close())
	}
	if l.events != nil {
		errs = append(errs, l.events.Close())
	}
	if l.messages != nil {
		errs = append(errs, l.messages.Free())
	}
	if l.pz != nil {
		errs = append(errs, l.pz.Close())
	}
	return errors.Join(errs...)
}
