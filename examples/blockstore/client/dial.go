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

// Config says where the server is, and which limits the client wants.
type Config struct {
	Addr   string       // host:port
	Limits proto.Limits // the server may give less
	// Stall is how long the server may owe an answer, and how long connecting may take.
	// 0 means 30 seconds.
	Stall time.Duration
}

const defaultStall = 30 * time.Second

// Dial connects to a server. The link's memory is in a zone of its own.
func Dial(ctx context.Context, ia *dat.IA, cfg Config) (*Link, error) {
	if cfg.Stall <= 0 {
		cfg.Stall = defaultStall
	}
	l := &Link{stall: cfg.Stall, limits: cfg.Limits, Latency: report.NewLatency()}
	err := l.dial(ctx, ia, cfg)
	if err == nil {
		err = l.allocate()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("client: connect to %s: %w", cfg.Addr, err), l.Close())
	}
	return l, nil
}

func (l *Link) dial(ctx context.Context, ia *dat.IA, cfg Config) (err error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Stall)
	defer cancel()
	l.conn, err = ia.Dial(ctx, cfg.Addr, dat.ConnConfig{
		Depth: cfg.Limits.Slots, Message: proto.MessageLen, Private: proto.Hello{Limits: cfg.Limits}.Append(nil),
	})
	var cause *dat.Cause
	if errors.As(err, &cause) {
		if w, bad := proto.ParseWelcome(cause.Private); bad == nil && w.Status != proto.OK {
			return fmt.Errorf("refused: %w", w.Status.Err())
		}
	}
	if err != nil {
		return err
	}
	w, err := proto.ParseWelcome(l.conn.Private())
	switch {
	case err != nil:
		return err
	case w.Status != proto.OK || w.Slots > l.limits.Slots || w.Block > l.limits.Block:
		return fmt.Errorf("%w: accepted with %v and more than was asked for", proto.ErrMalformed, w.Status)
	}
	l.limits, l.window = w.Limits, w.Window
	return nil
}

// allocate makes the slots, each with a block of memory and a buffer for its first
// message.
func (l *Link) allocate() (err error) {
	n := l.limits.Slots
	if l.blocks, err = l.conn.Alloc(l.limits.Window(), dat.LocalRead|dat.LocalWrite); err != nil {
		return err
	}
	l.credits, l.rdma = dat.NewCredits(n), dat.NewContexts[*Slot](n)
	l.slots = make([]Slot, n)
	for i := range l.slots {
		at := i * l.limits.Block
		s := &l.slots[i]
		s.index, s.message = i, l.conn.Buffer()
		s.Buf = l.blocks.Bytes()[at : at+l.limits.Block : at+l.limits.Block]
	}
	return nil
}

// Close ends the connection and frees the memory. Outstanding requests are lost. It
// also closes a link that Dial has half made. Closing it again does nothing.
func (l *Link) Close() error {
	if l.conn == nil || errors.Is(l.lost, errClosed) {
		return nil
	}
	l.lost = errClosed
	return l.conn.Close()
}
