package runtime

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/hw"
)

func made[T any](t *testing.T, h T, err error) T {
	t.Helper()
	require.NoError(t, err)
	return h
}

func (b *bad) dispatcher(mode DispatcherMode) *Dispatcher {
	d, err := b.ia.NewDispatcher(DispatcherConfig{QLen: 8, Mode: mode, Callback: func([]Event) {}})
	return made(b.t, d, err)
}

func (b *bad) endpoint() *Endpoint {
	e, err := b.ia.NewEndpoint(EndpointConfig{PZ: b.own.pz, Recv: b.own.d, Request: b.own.d, Conn: b.own.d})
	return made(b.t, e, err)
}

func (b *bad) psp() *PSP {
	p, err := b.ia.NewPSP(PSPConfig{Dispatcher: b.own.d})
	return made(b.t, p, err)
}

func (b *bad) request() *CR {
	d := b.dispatcher(ModeChannel)
	psp, err := b.ia.NewPSP(PSPConfig{Dispatcher: d})
	require.NoError(b.t, err)
	e, err := b.ia.NewEndpoint(EndpointConfig{PZ: b.own.pz, Conn: b.dispatcher(ModeQueue)})
	require.NoError(b.t, err)
	require.NoError(b.t, e.Connect(ConnectConfig{Addr: b.ia.Attr().Address, Qual: psp.Qual()}))
	return RequestOf(<-d.C())
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

func (b *bad) batch() *Batch {
	d, err := b.ia.NewDispatcher(DispatcherConfig{QLen: 8, Mode: ModeBatch, Streams: StreamSoftware})
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
	{(*Dispatcher)(nil), func(b *bad) any { return b.dispatcher(ModeQueue) }, func(h any) { _ = h.(*Dispatcher).Close() }},
	{(*Dispatcher)(nil), func(b *bad) any { return b.dispatcher(ModeChannel) }, func(h any) { _ = h.(*Dispatcher).Close() }},
	{(*Dispatcher)(nil), func(b *bad) any { return b.dispatcher(ModeBatch) }, func(h any) { _ = h.(*Dispatcher).Close() }},
	{(*Dispatcher)(nil), func(b *bad) any { return b.dispatcher(ModeCallback) }, func(h any) { _ = h.(*Dispatcher).Close() }},
	{(*CNO)(nil), func(b *bad) any { c, err := b.ia.NewCNO(CNOConfig{}); return made(b.t, c, err) }, func(h any) { _ = h.(*CNO).Close() }},
	{(*Route)(nil), func(b *bad) any { r, err := b.own.d.Route(255, 255, 1); return made(b.t, r, err) }, func(h any) { _ = h.(*Route).Close() }},
	{(*OneShot)(nil), func(b *bad) any { return b.own.d.NewOneShot() }, nil},
	{(*Batch)(nil), func(b *bad) any { return b.batch() }, nil},
	{(*Endpoint)(nil), func(b *bad) any { return b.endpoint() }, func(h any) { _ = h.(*Endpoint).Close() }},
	{(*Endpoint)(nil), func(b *bad) any { return b.pair.a }, nil},
	{(*SRQ)(nil), func(b *bad) any { q, err := b.ia.NewSRQ(b.own.pz, SRQAttr{}); return made(b.t, q, err) }, func(h any) { _ = h.(*SRQ).Close() }},
	{(*PSP)(nil), func(b *bad) any { return b.psp() }, func(h any) { _ = h.(*PSP).Close() }},
	{(*RSP)(nil), func(b *bad) any {
		r, err := b.ia.NewRSP(RSPConfig{Endpoint: b.endpoint(), Dispatcher: b.own.d})
		return made(b.t, r, err)
	}, func(h any) { _ = h.(*RSP).Close() }},
	{(*CSP)(nil), func(b *bad) any {
		c, err := b.ia.NewCSP(CSPConfig{Address: ":0", Dispatcher: b.own.d})
		return made(b.t, c, err)
	}, func(h any) { _ = h.(*CSP).Close() }},
	{(*Conn)(nil), func(b *bad) any { return b.conn() }, func(h any) { _ = h.(*Conn).Close() }},
	{(*Pairing)(nil), func(b *bad) any { return b.pairing() }, func(h any) { _ = h.(*Pairing).Close() }},
	{(*Listener)(nil), func(b *bad) any { return b.listener() }, func(h any) { _ = h.(*Listener).Close() }},
	{(*Outbox)(nil), func(b *bad) any { return NewOutbox(b.pair.a, 2) }, nil},
	{(*Credits)(nil), func(*bad) any { return NewCredits(1) }, nil},
	{(*Contexts[int])(nil), func(*bad) any { return NewContexts[int](2) }, nil},
	{(*PZ)(nil), func(b *bad) any { z, err := b.ia.NewPZ(); return made(b.t, z, err) }, func(h any) { _ = h.(*PZ).Close() }},
	{(*LMR)(nil), func(b *bad) any { m, err := b.own.pz.Alloc(64, LocalWrite); return made(b.t, m, err) }, func(h any) { _ = h.(*LMR).Free() }},
	{(*RMR)(nil), func(b *bad) any { r, err := b.own.pz.NewRMR(); return made(b.t, r, err) }, func(h any) { _ = h.(*RMR).Free() }},
	{(*BufferPool)(nil), func(b *bad) any {
		p, err := b.own.pz.NewBufferPool(BufferPoolConfig{Count: 2, Size: 64})
		return made(b.t, p, err)
	}, func(h any) { _ = h.(*BufferPool).Close() }},
	{(*CR)(nil), func(b *bad) any { return b.request() }, func(h any) { _ = h.(*CR).Reject(nil) }},
}
