package server

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/examples/blockstore/block"
	"godat/examples/blockstore/client"
	"godat/examples/blockstore/proto"
	"godat/examples/blockstore/store"
	dat "godat/runtime"
)

// The goroutine pool that runtime uses starts two goroutines when it is imported.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

var limits = proto.Limits{Slots: 4, Block: 4096}

// fixture is a running server, with an adapter for its clients.
type fixture struct {
	*testing.T
	store  *store.Store
	server *Server
	ia     *dat.IA
	stop   func() // waits until Run has returned
}

func serve(t *testing.T, sessions int) *fixture {
	t.Helper()
	f := &fixture{T: t}
	var err error
	f.store, err = store.Open(filepath.Join(t.TempDir(), "blocks.db"), store.ReadWrite)
	require.NoError(t, err)
	f.ia, err = dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	f.server, err = New(f.ia, Config{Store: f.store, Limits: limits, Sessions: sessions})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.server.Run(ctx) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			assert.NoError(t, err)
		case <-time.After(10 * time.Second):
			t.Error("the server does not end")
		}
	})
	t.Cleanup(func() {
		f.stop()
		assert.NoError(t, f.ia.Close())
		assert.NoError(t, f.store.Close())
	})
	return f
}

func (f *fixture) dial() (*client.Link, error) {
	return client.Dial(f.Context(), f.ia, client.Config{
		Addr: f.server.Addr(), Limits: proto.Limits{Slots: 64, Block: 1 << 20}, Stall: 5 * time.Second,
	})
}

func (f *fixture) link() *client.Link {
	f.Helper()
	l, err := f.dial()
	require.NoError(f, err)
	f.Cleanup(func() { assert.NoError(f, l.Close()) })
	return l
}

// roundTrip stores a block and fetches it again.
func (f *fixture) roundTrip(l *client.Link, text string) {
	f.Helper()
	ctx := f.Context()
	var got []byte
	l.OnDone = func(s *client.Slot) error {
		got = append([]byte(nil), s.Buf[:s.N]...)
		return s.Err
	}
	s, err := l.Slot(ctx)
	require.NoError(f, err)
	id, err := l.Put(s, copy(s.Buf, text), client.Ref{})
	require.NoError(f, err)
	require.NoError(f, l.Drain(ctx))
	s, err = l.Slot(ctx)
	require.NoError(f, err)
	clear(s.Buf)
	require.NoError(f, l.Get(s, id, client.Ref{}))
	require.NoError(f, l.Drain(ctx))
	assert.Equal(f, text, string(got))
}

func TestALinkGetsTheSmallerOfBothSidesLimits(t *testing.T) {
	f := serve(t, 2)
	assert.Equal(t, limits, f.link().Limits())
}

func TestALinkReadsBackTheBlocksAndTheRoot(t *testing.T) {
	f := serve(t, 2)
	l := f.link()
	for _, text := range []string{"a", "some block", string(make([]byte, limits.Block))} {
		f.roundTrip(l, text)
	}
	_, err := l.Root(t.Context())
	require.Equal(t, proto.NotFound.Err(), err, "none was set")
	id := block.IDOf([]byte("a"))
	require.NoError(t, l.SetRoot(t.Context(), id))
	got, err := l.Root(t.Context())
	require.NoError(t, err)
	assert.Equal(t, id, got)
}

func TestARequestWithoutAFreeSlotWaits(t *testing.T) {
	f := serve(t, 2)
	l := f.link()
	var done []client.Ref
	l.OnDone = func(s *client.Slot) error {
		done = append(done, s.Ref)
		return s.Err
	}
	const n = 500
	for i := range n {
		s, err := l.Slot(t.Context())
		require.NoError(t, err)
		s.Buf[0], s.Buf[1] = byte(i), byte(i>>8)
		id, err := l.Put(s, 2+i%100, client.Ref{Block: i})
		require.NoError(t, err)
		if i%3 == 0 {
			s, err := l.Slot(t.Context())
			require.NoError(t, err)
			require.NoError(t, l.Get(s, id, client.Ref{File: 1, Block: i}))
		}
	}
	require.NoError(t, l.Drain(t.Context()))
	var want []client.Ref
	for i := range n {
		want = append(want, client.Ref{Block: i})
		if i%3 == 0 {
			want = append(want, client.Ref{File: 1, Block: i})
		}
	}
	assert.Equal(t, want, done, "answers come in the order of the requests")
	assert.EqualValues(t, len(want), l.Latency.Count())
}

func TestAGetOfAMissingBlockIsNotFound(t *testing.T) {
	f := serve(t, 1)
	l := f.link()
	var got error
	l.OnDone = func(s *client.Slot) error { got = s.Err; return nil }
	s, err := l.Slot(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.Get(s, block.IDOf([]byte("nowhere")), client.Ref{}))
	require.NoError(t, l.Drain(t.Context()))
	assert.Equal(t, proto.NotFound.Err(), got)
	f.roundTrip(l, "and the link goes on")
}

func TestAFullServerRefusesWithItsReason(t *testing.T) {
	f := serve(t, 1)
	first, err := f.dial()
	require.NoError(t, err)
	_, err = f.dial()
	require.ErrorIs(t, err, proto.Full.Err())
	require.NoError(t, first.Close())
	var second *client.Link
	require.Eventually(t, func() bool {
		second, err = f.dial()
		return err == nil
	}, 5*time.Second, time.Millisecond, "there is room once the first is gone")
	require.NoError(t, second.Close())
}

func TestAClientThatDiesDisturbsNoOther(t *testing.T) {
	f := serve(t, 3)
	good := f.link()
	for i := range 20 {
		dying, err := f.dial()
		require.NoError(t, err)
		for j := range 1 + i%limits.Slots {
			s, err := dying.Slot(t.Context())
			require.NoError(t, err)
			s.Buf[0], s.Buf[1] = byte(i), byte(j)
			_, err = dying.Put(s, 1000, client.Ref{})
			require.NoError(t, err)
		}
		require.NoError(t, dying.Close())
		f.roundTrip(good, "the others do not notice")
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	f := serve(t, 1)
	l := f.link()
	f.roundTrip(l, "so far so good")
	ctx, cancel := context.WithCancel(t.Context())
	s, err := l.Slot(ctx)
	require.NoError(t, err)
	_, err = l.Put(s, 1, client.Ref{})
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, l.Drain(ctx), context.Canceled)
	require.NoError(t, l.Close())
	_, err = l.Slot(t.Context())
	require.ErrorIs(t, err, client.ErrLost)
}

func TestAServerThatEndsStoresWhatItAnsweredAndTellsItsClients(t *testing.T) {
	f := serve(t, 1)
	l := f.link()
	s, err := l.Slot(t.Context())
	require.NoError(t, err)
	id, err := l.Put(s, copy(s.Buf, "kept"), client.Ref{})
	require.NoError(t, err)
	require.NoError(t, l.Drain(t.Context()))

	f.stop()
	require.ErrorIs(t, l.SetRoot(t.Context(), id), client.ErrLost)
	buf := make([]byte, 16)
	n, err := f.store.Get(id, buf)
	require.NoError(t, err)
	assert.Equal(t, "kept", string(buf[:n]))
}
