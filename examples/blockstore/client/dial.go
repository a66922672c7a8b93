package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"godat/examples/blockstore/proto"
	"godat/examples/blockstore/report"
	dat "godat/runtime"
)

// Config says where the server is and what is wanted of it.
type Config struct {
	Addr   string // in the provider's way to name a host
	Qual   uint64
	Limits proto.Limits // the server may give less
	// Stall is how long the server may be silent while it owes an answer, and
	// how long connecting may take. 0 means 30 seconds.
	Stall time.Duration
}

const defaultStall = 30 * time.Second

// Dial connects to a server. The link's memory is a zone of its own.
func Dial(ctx context.Context, ia *dat.IA, cfg Config) (*Link, error) {
	if cfg.Stall <= 0 {
		cfg.Stall = defaultStall
	}
	l := &Link{stall: cfg.Stall, limits: cfg.Limits, Latency: report.NewLatency()}
	if err := l.dial(ctx, ia, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("client: connect to %s:%d: %w", cfg.Addr, cfg.Qual, err), l.Close())
	}
	return l, nil
}

func (l *Link) dial(ctx context.Context, ia *dat.IA, cfg Config) (err error) {
	if l.pz, err = ia.NewPZ(); err != nil {
		return err
	}
	n := cfg.Limits.Slots
	l.events, err = ia.NewDispatcher(dat.DispatcherConfig{
		Mode: dat.ModeChannel,
		QLen: 3*n + 2, // per slot two requests and a receive; two for the connection
	})
	if err != nil {
		return err
	}
	l.ep, err = ia.NewEndpoint(dat.EndpointConfig{
		PZ: l.pz, Recv: l.events, Request: l.events, Conn: l.events,
		Attr: &dat.EndpointAttr{MaxRecvDTOs: n, MaxRequestDTOs: 2 * n},
	})
	if err != nil {
		return err
	}
	err = l.ep.Connect(dat.ConnectConfig{
		Addr: cfg.Addr, Qual: cfg.Qual, Timeout: cfg.Stall,
		Private: proto.Hello{Limits: cfg.Limits}.Append(nil),
	})
	if err != nil {
		return err
	}
	if err := l.connected(ctx); err != nil {
		return err
	}
	return l.allocate()
}

// connected waits for the outcome of Connect.
func (l *Link) connected(ctx context.Context) error {
	var ev dat.Event
	select {
	case ev = <-l.events.C(): // nothing else has been asked for
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	conn, _ := ev.Connection()
	w, err := proto.ParseWelcome(conn.Private)
	switch {
	case ev.Number == dat.PeerRejected && err == nil && w.Status != proto.OK:
		return fmt.Errorf("refused: %w", w.Status.Err())
	case ev.Number != dat.Established:
		return ev.Err()
	case err != nil:
		return err
	case w.Status != proto.OK || w.Slots > l.limits.Slots || w.Block > l.limits.Block:
		return fmt.Errorf("%w: accepted with %v and more than was asked for", proto.ErrMalformed, w.Status)
	}
	l.limits, l.window = w.Limits, w.Window
	return nil
}

// allocate makes the slots: the blocks in one region, the messages in another.
func (l *Link) allocate() (err error) {
	n := l.limits.Slots
	if l.blocks, err = l.pz.Alloc(l.limits.Window(), dat.LocalRead|dat.LocalWrite, dat.WithUnmapOnFree()); err != nil {
		return err
	}
	l.messages, err = l.pz.Alloc(2*n*proto.MessageLen, dat.LocalRead|dat.LocalWrite, dat.WithUnmapOnFree())
	if err != nil {
		return err
	}
	l.slots = make([]Slot, n)
	for i := range l.slots {
		at := i * l.limits.Block
		s := &l.slots[i]
		s.index = i
		s.Buf = l.blocks.Bytes()[at : at+l.limits.Block : at+l.limits.Block]
		s.request = l.message(2 * i)
		s.reply = l.message(2*i + 1)
	}
	return nil
}

// message is the memory of one control message.
type message struct {
	bytes   []byte
	segment dat.Segment
}

func (l *Link) message(i int) message {
	at := i * proto.MessageLen
	return message{
		bytes:   l.messages.Bytes()[at : at+proto.MessageLen],
		segment: l.messages.Segment(at, proto.MessageLen),
	}
}

// Close ends the connection and gives the memory back. What is on its way is
// lost. The link may be half made. Closing it again does nothing.
func (l *Link) Close() error {
	if errors.Is(l.lost, errClosed) {
		return nil
	}
	l.lost = errClosed
	var errs []error
	if l.ep != nil {
		errs = append(errs, l.ep.Close())
	}
	for _, lmr := range []*dat.LMR{l.blocks, l.messages} {
		if lmr != nil {
			errs = append(errs, lmr.Free())
		}
	}
	if l.events != nil {
		errs = append(errs, l.events.Close())
	}
	if l.pz != nil {
		errs = append(errs, l.pz.Close())
	}
	return errors.Join(errs...)
}
