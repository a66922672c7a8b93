package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"godat/ep"
	"godat/hw"
	dat "godat/runtime"
)

const (
	// mostPairs is the number of addresses that ibv_srq_pingpong exchanges, however many it uses.
	mostPairs = 256
	// pairText is the length of an address: LID:QPN:PSN:GID, and a zero byte.
	pairText = 4 + 1 + 6 + 1 + 6 + 1 + 32 + 1
	// page is the distance of the bytes that the C programs check.
	page = 4096
	// linger is how long an end that has all messages stays, since a queue pair that leaves
	// service does not acknowledge what it has taken just before.
	linger = 100 * time.Millisecond
)

var done = []byte("done\x00")

func gidText(a hw.PairAddr) string { return netip.AddrFrom16(a.GID).Unmap().String() }

// mapped reports whether an address is of IPv4.
func mapped(a hw.PairAddr) bool { return netip.AddrFrom16(a.GID).Is4In6() }

// putPairs encodes addresses, and zeros up to total of them.
func putPairs(all []hw.PairAddr, total int) []byte {
	var b []byte
	for i := range total {
		var a hw.PairAddr
		if i < len(all) {
			a = all[i]
		}
		a.MTU, a.Farewell = 0, 0
		b = append(append(b, a.String()...), 0)
	}
	return b
}

// parsePairs reads addresses.
func parsePairs(b []byte, n int) ([]hw.PairAddr, error) {
	all := make([]hw.PairAddr, n)
	for i := range all {
		text := b[i*pairText:][:pairText]
		if err := all[i].UnmarshalText(bytes.TrimSuffix(text, []byte{0})); err != nil {
			return nil, fmt.Errorf("the peer is not ibv_rc_pingpong's or ibv_srq_pingpong's kin: %w", err)
		}
	}
	return all, nil
}

// game is a test of ibv_rc_pingpong, or of ibv_srq_pingpong with its several connections.
type game struct {
	o              *options
	size           int // of a message
	conns          []*dat.Conn
	sent, received atomic.Int64
	over           context.CancelCauseFunc
}

var errOver = errors.New("all messages have come")

func playPingpong(ctx context.Context, ia *dat.IA, o *options, s *session, out io.Writer) (err error) {
	g := &game{o: o, size: o.Size}
	defer func() { err = errors.Join(err, g.close()) }()
	if err := g.connect(ctx, ia, s, out); err != nil {
		return err
	}
	began := time.Now()
	if err := g.play(ctx); err != nil {
		return err
	}
	measured(out, time.Since(began), uint64(o.Count), 2*uint64(o.Count)*uint64(o.Size))
	time.Sleep(linger)
	return g.end(ctx)
}

// connect exchanges the addresses. A server pairs before it answers, a client before it says
// that it is done; so neither begins when the other has failed.
func (g *game) connect(ctx context.Context, ia *dat.IA, s *session, out io.Writer) error {
	n, total := 1, 1
	if g.o.Test == "srq_pingpong" {
		n, total = g.o.Pairs, mostPairs
	}
	cfg := dat.ConnConfig{Depth: 4, Message: g.o.Size, Attr: &ep.Attr{MaxReadIn: 1, MaxReadOut: 1, ReceiverNotReady: notReady}}
	waiting := make([]*dat.Pairing, n)
	own := make([]hw.PairAddr, n)
	for i := range waiting {
		p, err := ia.NewPaired(cfg)
		if err != nil {
			return err
		}
		defer p.Close()
		waiting[i], own[i] = p, g.o.given(p.Local())
	}
	theirs := make([]byte, total*pairText)
	pair := func() error {
		peers, err := parsePairs(theirs, n)
		if err != nil {
			return err
		}
		for i, p := range waiting {
			c, err := g.o.pair(ctx, p, peers[i], g.o.MTU, out)
			if err != nil {
				return err
			}
			g.conns = append(g.conns, c)
		}
		return nil
	}
	var answer [len("done") + 1]byte
	steps := []func() error{
		func() error { return s.get(theirs) }, pair, func() error { return s.put(putPairs(own, total)) }, func() error { return s.get(answer[:]) },
	}
	if s.client {
		steps = []func() error{
			func() error { return s.put(putPairs(own, total)) }, func() error { return s.get(theirs) }, pair, func() error { return s.put(done) },
		}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// given is what the text of an address says of this end. On InfiniBand ibv_rc_pingpong without -g
// takes a peer's GID for the wish to use a GID of its own, of which it then has none.
func (o *options) given(local hw.PairAddr) hw.PairAddr {
	if local.LID != 0 && !o.GID {
		local.GID = [16]byte{}
	}
	return local
}

// pair connects to a peer, with packets of mtu bytes at most.
func (o *options) pair(ctx context.Context, p *dat.Pairing, peer hw.PairAddr, mtu int, out io.Writer) (*dat.Conn, error) {
	own := p.Local()
	for _, a := range [...]struct {
		name string
		hw.PairAddr
	}{{"local", own}, {"remote", peer}} {
		fmt.Fprintf(out, "  %-6s address: LID 0x%04x, QPN 0x%06x, PSN 0x%06x, GID %s\n", a.name, a.LID, a.QPN, a.PSN, gidText(a.PairAddr))
	}
	if err := refuses(peer, own); err != nil {
		return nil, err
	}
	peer.MTU = mtu
	return p.Connect(ctx, peer)
}

// play plays until all messages have come.
func (g *game) play(ctx context.Context) error {
	ctx, g.over = context.WithCancelCause(ctx)
	defer g.over(nil)
	all, ctx := errgroup.WithContext(ctx)
	for _, c := range g.conns {
		all.Go(func() error { return g.rally(ctx, c) })
	}
	return all.Wait()
}

// rally answers each message on a connection, and begins if this end is the client.
func (g *game) rally(ctx context.Context, c *dat.Conn) error {
	most := int64(g.o.Count)
	if g.o.client() && g.sent.Add(1) <= most {
		b, err := c.WaitBuffer(ctx)
		if err != nil {
			return err
		}
		g.fill(b.Resize(g.size))
		if err := c.Send(b); err != nil {
			return err
		}
	}
	for g.received.Load() < most {
		b, err := c.Receive(ctx)
		if err != nil {
			if errors.Is(context.Cause(ctx), errOver) {
				return nil
			}
			return fmt.Errorf("after %d of %d messages: %w", g.received.Load(), most, err)
		}
		if err := g.look(b.Bytes()); err != nil {
			c.Release(b)
			return err
		}
		if g.received.Add(1) == most {
			defer g.over(errOver)
		}
		if g.sent.Add(1) > most {
			c.Release(b)
		} else if err := c.Send(b); err != nil {
			return err
		}
	}
	return nil
}

// fill writes what the C programs check: each page begins with 0.
func (*game) fill(b []byte) {
	for i := range b {
		b[i] = byte(i % page)
	}
}

// look checks a message.
func (g *game) look(b []byte) error {
	if len(b) != g.size {
		return fmt.Errorf("a message of %d bytes, not %d: give both ends the same size (-s or -a)", len(b), g.size)
	}
	for i := 0; g.o.Check && i < len(b); i += page {
		if b[i] != 0 {
			return fmt.Errorf("invalid data in page %d: start the client with -c, too", i/page)
		}
	}
	return nil
}

// end waits until the peer has all messages.
func (g *game) end(ctx context.Context) error {
	for _, c := range g.conns {
		if err := shut(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (g *game) close() (err error) {
	for _, c := range g.conns {
		err = errors.Join(err, c.Close())
	}
	return err
}

// shut ends a connection, and returns why if it had ended otherwise.
func shut(ctx context.Context, c *dat.Conn) error {
	if err := c.Shutdown(ctx); err != nil {
		return err
	}
	for {
		select {
		case ev := <-c.Events():
			if ev.Ended() {
				return ev.Err()
			}
		default:
			return nil
		}
	}
}
