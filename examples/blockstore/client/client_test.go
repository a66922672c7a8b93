package client

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/ep"
	"godat/examples/blockstore/block"
	"godat/examples/blockstore/proto"
	"godat/hw/event"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// The goroutine pool that runtime uses starts two goroutines when it is imported.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

var limits = proto.Limits{Slots: 2, Block: 4096}

// fake is a server whose answers a test makes up. Package server tests the client
// against the real one.
type fake struct {
	*testing.T
	ia  *dat.IA
	rpc *rpc.Server
}

func newFake(t *testing.T) *fake {
	t.Helper()
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	s, err := rpc.Listen(t.Context(), ia, "", rpc.Config{Conns: 1})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		assert.NoError(t, ia.Close())
	})
	return &fake{t, ia, s}
}

// dial connects a client; answer answers its first call.
func (f *fake) dial(answer []byte) (*Link, error) {
	var answered sync.WaitGroup
	defer answered.Wait()
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	answered.Go(func() {
		select {
		case ev := <-f.rpc.Requests():
			r := rpc.RequestOf(ev)
			assert.Equal(f, proto.Open, r.Method())
			assert.NoError(f, r.Reply(answer))
		case <-ctx.Done():
		}
	})
	return Dial(f.Context(), f.ia, Config{Addr: f.rpc.Addr(), Limits: limits, Stall: 5 * time.Second})
}

func number(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// link connects a client.
func (f *fake) link() *Link {
	f.Helper()
	l, err := f.dial(proto.Limits{Slots: 16, Block: 1 << 16}.Encode())
	require.NoError(f, err)
	f.Cleanup(func() { assert.NoError(f, l.Close()) })
	return l
}

// slot is the link's next slot.
func slot(t *testing.T, l *Link) *Slot {
	t.Helper()
	s, err := l.Slot()
	require.NoError(t, err)
	return s
}

func TestDialSaysWhyItFailed(t *testing.T) {
	f := newFake(t)
	for name, answer := range map[string][]byte{
		"nothing":      nil,
		"noise":        []byte("hello, hello"),
		"no slots":     proto.Limits{Block: 4096}.Encode(),
		"a tiny block": proto.Limits{Slots: 1, Block: proto.MinBlock - 1}.Encode(),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.dial(answer)
			require.ErrorContains(t, err, "connect to "+f.rpc.Addr())
		})
	}
	f.link()
	_, err := f.dial(nil)
	require.ErrorIs(t, err, event.Error(event.PeerRejected), "the server is full")
	assert.NotContains(t, err.Error(), "\n", "nor does the client complain about what it has not made")
}

func TestDialEndsWithItsContext(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Dial(ctx, f.ia, Config{Addr: f.rpc.Addr(), Limits: limits})
	require.ErrorIs(t, err, context.Canceled)
}

func TestRequestsEndInTheOrderInWhichTheyBegan(t *testing.T) {
	f := newFake(t)
	l := f.link()
	var ended []int
	l.OnDone = func(s *Slot) error {
		ended = append(ended, s.Ref.Block)
		return s.Err
	}
	for i := range limits.Slots {
		l.Put(t.Context(), slot(t, l), 1, Ref{Block: i})
	}
	first, second := rpc.RequestOf(<-f.rpc.Requests()), rpc.RequestOf(<-f.rpc.Requests())
	require.NoError(t, second.Reply(nil))
	require.NoError(t, first.Reply(nil))
	require.NoError(t, l.Drain())
	assert.Equal(t, []int{0, 1}, ended)
	assert.EqualValues(t, 2, l.Latency.Count())
}

func TestAnAnswerThatIsNoneIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		begin  func(t *testing.T, l *Link, s *Slot)
		answer []byte
	}{
		"a PUT, with something": {func(t *testing.T, l *Link, s *Slot) { l.Put(t.Context(), s, 1, Ref{}) }, number(1)},
		"a GET, with nothing":   {func(t *testing.T, l *Link, s *Slot) { l.Get(t.Context(), s, block.ID{}, Ref{}) }, nil},
		"a block too long":      {func(t *testing.T, l *Link, s *Slot) { l.Get(t.Context(), s, block.ID{}, Ref{}) }, number(4097)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			l := f.link()
			tc.begin(t, l, slot(t, l))
			r := rpc.RequestOf(<-f.rpc.Requests())
			require.NoError(t, r.Reply(tc.answer))
			require.ErrorIs(t, l.Drain(), errMalformed)
		})
	}
}

func TestTheServersErrorIsOfOneRequest(t *testing.T) {
	f := newFake(t)
	l := f.link()
	var got error
	l.OnDone = func(s *Slot) error { got = s.Err; return nil }
	l.Get(t.Context(), slot(t, l), block.ID{}, Ref{})
	r := rpc.RequestOf(<-f.rpc.Requests())
	require.NoError(t, r.Fail(rpc.CodeUser, "not today"))
	require.NoError(t, l.Drain())
	require.ErrorContains(t, got, "not today")
	assert.Zero(t, l.Latency.Count(), "it counts for nothing")
	l.Put(t.Context(), slot(t, l), 1, Ref{})
	r = rpc.RequestOf(<-f.rpc.Requests())
	require.NoError(t, r.Reply(nil))
	require.NoError(t, l.Drain())
	require.NoError(t, got)
}

func TestARequestEndsWithItsContextAndWhenTheServerOwesTheAnswerTooLong(t *testing.T) {
	f := newFake(t)
	l := f.link()
	ctx, cancel := context.WithCancel(t.Context())
	l.Put(ctx, slot(t, l), 1, Ref{})
	r := rpc.RequestOf(<-f.rpc.Requests())
	cancel()
	<-r.Context().Done()
	require.NoError(t, r.Reply(nil), "until then the server may read the block")
	require.ErrorIs(t, l.Drain(), context.Canceled)

	l.stall = 20 * time.Millisecond
	l.Put(t.Context(), slot(t, l), 1, Ref{})
	require.ErrorIs(t, l.Drain(), ErrStalled)
}

func TestTheEndOfTheConnectionEndsTheRequests(t *testing.T) {
	f := newFake(t)
	l := f.link()
	l.Put(t.Context(), slot(t, l), 1, Ref{})
	r := rpc.RequestOf(<-f.rpc.Requests())
	require.NoError(t, r.Conn().Endpoint.Disconnect(ep.Abrupt))
	require.ErrorIs(t, l.Drain(), rpc.ErrEnded)
	l.Put(t.Context(), slot(t, l), 1, Ref{})
	require.ErrorIs(t, l.Drain(), rpc.ErrEnded)
	<-r.Context().Done() // the server has heard of it, too
	require.ErrorIs(t, r.Reply(nil), rpc.ErrEnded)
}
