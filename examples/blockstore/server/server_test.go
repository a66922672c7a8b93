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
	"godat/hw/event"
	dat "godat/runtime"
	"godat/runtime/rpc"
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
		case <-time.After(time.Minute):
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

// slot is the link's next slot.
func (f *fixture) slot(l *client.Link) *client.Slot {
	f.Helper()
	s, err := l.Slot()
	require.NoError(f, err)
	return s
}

// roundTrip stores a block and fetches it again.
func (f *fixture) roundTrip(l *client.Link, text string) block.ID {
	f.Helper()
	var got string
	l.OnDone = func(s *client.Slot) error {
		got = string(s.Buf[:s.N])
		return s.Err
	}
	s := f.slot(l)
	id := l.Put(f.Context(), s, copy(s.Buf, text), client.Ref{})
	require.NoError(f, l.Drain())
	s = f.slot(l)
	clear(s.Buf)
	l.Get(f.Context(), s, id, client.Ref{})
	require.NoError(f, l.Drain())
	assert.Equal(f, text, got)
	return id
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
	require.ErrorContains(t, err, store.ErrNotFound.Error(), "none was set")
	id := block.IDOf([]byte("a"))
	require.NoError(t, l.SetRoot(t.Context(), id))
	got, err := l.Root(t.Context())
	require.NoError(t, err)
	assert.Equal(t, id, got)
}

func TestManyRequestsOfManyLinksMoveTheirBlocks(t *testing.T) {
	f := serve(t, 4)
	var all sync.WaitGroup
	for i := range 4 {
		l := f.link()
		all.Go(func() { assert.NoError(t, f.many(l, i)) })
	}
	all.Wait()
}

// many stores blocks and fetches each when some others are under way.
func (f *fixture) many(l *client.Link, link int) error {
	const n = 200
	ids := make([]block.ID, n)
	l.OnDone = func(s *client.Slot) error {
		if s.Err == nil && block.IDOf(s.Buf[:s.N]) != ids[s.Ref.Block] {
			return errDamaged
		}
		return s.Err
	}
	for i := range n {
		s, err := l.Slot()
		if err != nil {
			return err
		}
		s.Buf[0], s.Buf[1], s.Buf[2] = byte(i), byte(i>>8), byte(link)
		ids[i] = l.Put(f.Context(), s, 3+i%100, client.Ref{Block: i})
		if j := i - limits.Slots; j >= 0 && i%3 == 0 { // which has ended
			if s, err = l.Slot(); err != nil {
				return err
			}
			clear(s.Buf)
			l.Get(f.Context(), s, ids[j], client.Ref{Block: j})
		}
	}
	return l.Drain()
}

func TestAGetOfAMissingBlockIsNotFound(t *testing.T) {
	f := serve(t, 1)
	l := f.link()
	var got error
	l.OnDone = func(s *client.Slot) error { got = s.Err; return nil }
	l.Get(t.Context(), f.slot(l), block.IDOf([]byte("nowhere")), client.Ref{})
	require.NoError(t, l.Drain())
	var failed *rpc.Error
	require.ErrorAs(t, got, &failed)
	assert.Equal(t, rpc.CodeUnknown, failed.Code)
	f.roundTrip(l, "and the link goes on")
}

func TestAFullServerRefuses(t *testing.T) {
	f := serve(t, 1)
	first, err := f.dial()
	require.NoError(t, err)
	_, err = f.dial()
	require.ErrorIs(t, err, event.Error(event.PeerRejected))
	require.NoError(t, first.Close())
	var second *client.Link
	require.Eventually(t, func() bool {
		second, err = f.dial()
		return err == nil
	}, time.Minute, time.Millisecond, "there is room once the first is gone")
	require.NoError(t, second.Close())
}

func TestAClientThatDiesDisturbsNoOther(t *testing.T) {
	f := serve(t, 3)
	good := f.link()
	for i := range 20 {
		dying, err := f.dial()
		require.NoError(t, err)
		for j := range 1 + i%limits.Slots {
			s := f.slot(dying)
			s.Buf[0], s.Buf[1] = byte(i), byte(j)
			dying.Put(t.Context(), s, 1000, client.Ref{})
		}
		require.NoError(t, dying.Close())
		f.roundTrip(good, "the others do not notice")
	}
}

func TestAServerThatEndsHasStoredWhatItAnsweredAndTellsItsClients(t *testing.T) {
	f := serve(t, 1)
	l := f.link()
	s := f.slot(l)
	id := l.Put(t.Context(), s, copy(s.Buf, "kept"), client.Ref{})
	require.NoError(t, l.Drain())

	f.stop()
	require.ErrorIs(t, l.SetRoot(t.Context(), id), rpc.ErrEnded)
	buf := make([]byte, 16)
	n, err := f.store.Get(id, buf)
	require.NoError(t, err)
	assert.Equal(t, "kept", string(buf[:n]))
}
