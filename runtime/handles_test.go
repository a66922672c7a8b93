package runtime

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

func made[T any](t *testing.T, h T, err error) T {
	t.Helper()
	require.NoError(t, err)
	return h
}

func (b *bad) dispatcher(mode evd.Mode) *evd.Dispatcher {
	cfg := evd.Config{QLen: 8, Mode: mode}
	if mode == evd.ModeCallback {
		cfg.Callback = func([]event.Event) {}
	}
	d, err := b.ia.NewDispatcher(cfg)
	return made(b.t, d, err)
}

func (b *bad) endpoint() *ep.Endpoint {
	e, err := b.ia.NewEndpoint(ep.Config{PZ: b.own.pz, Recv: b.own.d, Request: b.own.d, Conn: b.own.d})
	return made(b.t, e, err)
}

func (b *bad) psp() *ep.PSP {
	p, err := b.ia.NewPSP(ep.PSPConfig{Dispatcher: b.own.d})
	return made(b.t, p, err)
}

func (b *bad) request() *ep.CR {
	d := b.dispatcher(evd.ModeChannel)
	psp, err := b.ia.NewPSP(ep.PSPConfig{Dispatcher: d})
	require.NoError(b.t, err)
	e, err := b.ia.NewEndpoint(ep.Config{PZ: b.own.pz, Conn: b.dispatcher(evd.ModeQueue)})
	require.NoError(b.t, err)
	require.NoError(b.t, e.Connect(ep.ConnectConfig{Addr: b.ia.Attr().Address, Qual: psp.Qual()}))
	return ep.RequestOf(<-d.C())
}

func (b *bad) listener() *Listener {
	l, err := b.ia.Listen(b.t.Context(), "", ConnConfig{Depth: 1, Message: 64})
	return made(b.t, l, err)
}

// pairing is nil on a provider that can't pair.
func (b *bad) pairing() *Pairing {
	p, err := b.ia.NewPaired(ConnConfig{Depth: 1, Message: 64})
	if errors.Is(err, hw.ErrModelNotSupported) {
		return nil
	}
	return made(b.t, p, err)
}

func (b *bad) conn() *Conn {
	c, err := b.listener().Dial(b.ia.Attr().Address+":1", nil) // nothing listens there: the end of the attempt comes
	return made(b.t, c, err)
}

func (b *bad) batch() *evd.Batch {
	d, err := b.ia.NewDispatcher(evd.Config{QLen: 8, Mode: evd.ModeBatch, Streams: event.StreamSoftware})
	require.NoError(b.t, err)
	require.NoError(b.t, d.PostSoftware(1))
	return <-d.Batches()
}

// makers make a new object of each kind, and can close it.
var makers = []struct {
	handle any
	live   func(b *bad) any
	close  func(h any) // nil: a closed one can't be had
}{
	{(*IA)(nil), func(b *bad) any { return open(b.t, "loop") }, func(h any) { _ = h.(*IA).Close() }},
	{(*evd.Dispatcher)(nil), func(b *bad) any { return b.dispatcher(evd.ModeQueue) }, func(h any) { _ = h.(*evd.Dispatcher).Close() }},
	{(*evd.Dispatcher)(nil), func(b *bad) any { return b.dispatcher(evd.ModeChannel) }, func(h any) { _ = h.(*evd.Dispatcher).Close() }},
	{(*evd.Dispatcher)(nil), func(b *bad) any { return b.dispatcher(evd.ModeBatch) }, func(h any) { _ = h.(*evd.Dispatcher).Close() }},
	{(*evd.Dispatcher)(nil), func(b *bad) any { return b.dispatcher(evd.ModeCallback) }, func(h any) { _ = h.(*evd.Dispatcher).Close() }},
	{(*evd.CNO)(nil), func(b *bad) any { c, err := b.ia.NewCNO(evd.CNOConfig{}); return made(b.t, c, err) }, func(h any) { _ = h.(*evd.CNO).Close() }},
	{(*evd.Route)(nil), func(b *bad) any { r, err := b.own.d.Route(255, 255, 1); return made(b.t, r, err) }, func(h any) { _ = h.(*evd.Route).Close() }},
	{(*evd.OneShot)(nil), func(b *bad) any { return b.own.d.NewOneShot() }, nil},
	{(*evd.Batch)(nil), func(b *bad) any { return b.batch() }, nil},
	{(*ep.Endpoint)(nil), func(b *bad) any { return b.endpoint() }, func(h any) { _ = h.(*ep.Endpoint).Close() }},
	{(*ep.Endpoint)(nil), func(b *bad) any { return b.pair.a }, nil},
	{(*ep.SRQ)(nil), func(b *bad) any { q, err := b.ia.NewSRQ(b.own.pz, 0, 0); return made(b.t, q, err) }, func(h any) { _ = h.(*ep.SRQ).Close() }},
	{(*ep.PSP)(nil), func(b *bad) any { return b.psp() }, func(h any) { _ = h.(*ep.PSP).Close() }},
	{(*ep.RSP)(nil), func(b *bad) any {
		r, err := b.ia.NewRSP(ep.RSPConfig{Endpoint: b.endpoint(), Dispatcher: b.own.d})
		return made(b.t, r, err)
	}, func(h any) { _ = h.(*ep.RSP).Close() }},
	{(*ep.CSP)(nil), func(b *bad) any {
		c, err := b.ia.NewCSP(ep.CSPConfig{Address: ":0", Dispatcher: b.own.d})
		return made(b.t, c, err)
	}, func(h any) { _ = h.(*ep.CSP).Close() }},
	{(*Conn)(nil), func(b *bad) any { return b.conn() }, func(h any) { _ = h.(*Conn).Close() }},
	{(*Pairing)(nil), func(b *bad) any { return b.pairing() }, func(h any) { _ = h.(*Pairing).Close() }},
	{(*Listener)(nil), func(b *bad) any { return b.listener() }, func(h any) { _ = h.(*Listener).Close() }},
	{(*ep.Outbox)(nil), func(b *bad) any { return ep.NewOutbox(b.pair.a, 2) }, nil},
	{(*mem.PZ)(nil), func(b *bad) any { z, err := b.ia.NewPZ(); return made(b.t, z, err) }, func(h any) { _ = h.(*mem.PZ).Close() }},
	{(*mem.LMR)(nil), func(b *bad) any { m, err := b.own.pz.Alloc(64, hw.LocalWrite); return made(b.t, m, err) }, func(h any) { _ = h.(*mem.LMR).Free() }},
	{(*mem.RMR)(nil), func(b *bad) any { r, err := b.own.pz.NewRMR(); return made(b.t, r, err) }, func(h any) { _ = h.(*mem.RMR).Free() }},
	{(*mem.BufferPool)(nil), func(b *bad) any {
		p, err := b.own.pz.NewBufferPool(mem.BufferPoolConfig{Count: 2, Size: 64})
		return made(b.t, p, err)
	}, func(h any) { _ = h.(*mem.BufferPool).Close() }},
	{(*ep.CR)(nil), func(b *bad) any { return b.request() }, func(h any) { _ = h.(*ep.CR).Reject(nil) }},
}
