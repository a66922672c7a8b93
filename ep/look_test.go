package ep

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/door"
)

// A function that gets events runs while a control call is executed, or while one waits for it. It may look at objects.
func TestAFunctionThatGetsEventsLooksAtItsEndpointAtAnyTime(t *testing.T) {
	r := newRig(t)
	var e *Endpoint
	var looks atomic.Int32
	to, err := evd.New(evd.Config{Mode: evd.ModeFunc, Streams: event.DefaultStreams, Func: func(event.Event) {
		looks.Add(1)
		_, _ = e.Flow()
		_ = e.Watcher()
		_, _ = e.Query()
		_ = e.Snapshot()
	}})
	require.NoError(t, err)
	e = r.endpointOf(Config{PZ: r.pz, Recv: to, Request: to, Conn: to})
	peer := r.endpoint(nil)
	for range 2 {
		require.NoError(t, peer.Connect(ConnectConfig{Qual: r.psp.Qual()}))
		require.NoError(t, RequestOf(r.next(r.cr)).Accept(e, nil))
		require.Equal(t, event.Established, r.next(r.conn).Number)
		for range 3 {
			require.NoError(t, e.PostRecv(1, 0, r.lmr.Segment(0, 8)))
		}
		before := looks.Load()
		require.NoError(t, e.Disconnect(Abrupt))
		require.Equal(t, event.Disconnected, r.next(r.conn).Number)
		require.NoError(t, e.Reset())
		assert.GreaterOrEqual(t, looks.Load()-before, int32(4), "the flushed receives and the end")
		require.NoError(t, peer.Reset())
	}
	require.NoError(t, e.PostRecv(2, 0, r.lmr.Segment(0, 8)))
	require.NoError(t, e.Close())
	assert.Nil(t, e.Watcher())
	require.NoError(t, to.Close())
}

// The second of these events comes when a snapshot has seen the oldest operation before, so it asks for its cookie.
func TestAFunctionThatGetsWhatWaitedForTheConnectionLooksAtItsEndpoint(t *testing.T) {
	r := newRig(t)
	var e *Endpoint
	var looks int
	to, err := evd.New(evd.Config{Mode: evd.ModeFunc, Streams: event.DefaultStreams, Func: func(event.Event) {
		looks++
		_ = e.Snapshot()
	}})
	require.NoError(t, err)
	e = r.endpointOf(Config{PZ: r.pz, Recv: r.dto, Request: to, Conn: r.conn})
	b := r.endpoint(nil)
	r.connect(e, b)
	r.completeEarly(e, 3, 2)()
	assert.Equal(t, 2, looks)
	q := &e.box.Requests
	q.CompleteOne(e.box.Inside().ID(q, 2), hw.OpWrite, 8, 0)
	require.NoError(t, e.Close())
	require.NoError(t, to.Close())
}

// The function runs in the middle of the answer: ESTABLISHED comes inside Accept, the peer's end inside Reject, and
// the new request inside Handoff.
func TestAFunctionThatGetsEventsLooksAtARequestThatIsBeingAnswered(t *testing.T) {
	for name, answer := range map[string]func(r *rig, cr *CR, e *Endpoint, to uint64) error{
		"Accept":  func(_ *rig, cr *CR, e *Endpoint, _ uint64) error { return cr.Accept(e, nil) },
		"Reject":  func(_ *rig, cr *CR, _ *Endpoint, _ uint64) error { return cr.Reject(nil) },
		"Handoff": func(_ *rig, cr *CR, _ *Endpoint, to uint64) error { return cr.Handoff(to) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var looks atomic.Int32
			var cr atomic.Pointer[CR]
			to, err := evd.New(evd.Config{Mode: evd.ModeFunc, Streams: event.DefaultStreams | event.StreamCR, Func: func(event.Event) {
				looks.Add(1)
				if c := cr.Load(); c != nil {
					_, _ = c.Query()
					_, _ = c.Home(door.Key{})
				}
			}})
			require.NoError(t, err)
			other, err := r.adapter.NewPSP(PSPConfig{Dispatcher: to})
			require.NoError(t, err)
			cfg := Config{PZ: r.pz, Recv: to, Request: to, Conn: to}
			passive, active := r.endpointOf(cfg), r.endpointOf(cfg)
			require.NoError(t, active.Connect(ConnectConfig{Qual: r.psp.Qual()}))
			cr.Store(RequestOf(r.next(r.cr)))
			answered := make(chan error)
			go func() { answered <- answer(r, cr.Load(), passive, other.Qual()) }()
			select {
			case err := <-answered:
				require.NoError(t, err)
			case <-time.After(10 * time.Second):
				panic("the function waits for the answer, and the answer for the function") // the rig can't close
			}
			assert.Positive(t, looks.Load())
			_, err = cr.Load().Query()
			require.ErrorIs(t, err, hw.ErrInvalidHandle)
			if name == "Handoff" {
				require.NoError(t, r.requests()[0].Reject(nil))
			}
			require.NoError(t, passive.Close())
			require.NoError(t, active.Close())
			require.NoError(t, other.Close())
			require.NoError(t, to.Close())
		})
	}
}
