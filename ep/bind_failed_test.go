package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

func TestABindIsFlushedAndItsWindowStaysAsItWas(t *testing.T) {
	r := newRig(t)
	_, b := r.pair(nil)
	l, w := r.unshared(), r.rmr()
	was := r.bind(b, w, mem.Binding{Segment: l.Segment(0, 8), Privileges: readWrite})
	require.NoError(t, b.Disconnect(Abrupt))
	r.next(r.conn)
	r.next(r.conn)
	told := map[uint32]bool{}
	for range 2 { // after a flushed bind the next one is legal, but it must not give the same name
		remote, err := b.PostBind(9, hw.Suppress, w, mem.Binding{Segment: l.Segment(8, 8), Privileges: readWrite})
		require.NoError(t, err)
		require.NotContains(t, told, remote.Context)
		told[remote.Context] = true
		ev := r.next(r.dto)
		assert.Equal(t, event.BindCompletion, ev.Number)
		assert.Equal(t, hw.StatusFlushed, ev.Status)
		assert.EqualValues(t, 9, ev.Cookie)
		assert.Same(t, w, RMROf(ev))
	}
	p, err := w.Query()
	require.NoError(t, err)
	assert.Equal(t, was.Context, p.RemoteContext)
	require.NoError(t, w.Free())
	require.NoError(t, l.Free())
}

func TestABindThatIsRefusedIsNotOutstanding(t *testing.T) {
	r := newRig(t)
	_, b := r.pair(nil)
	w, to := r.rmr(), mem.Binding{Segment: r.lmr.Segment(0, 8), Privileges: readWrite}
	d := r.dispatcher(evd.ModeQueue, 1)
	e := r.endpointOf(Config{PZ: r.pz, Request: d, Conn: r.conn})
	r.accept(e)
	require.True(t, wiring(d).Main().Reserve(1)) // there is no room for the event
	_, err := e.PostBind(1, 0, w, to)
	require.ErrorIs(t, err, hw.ErrInsufficientResources)
	_, err = e.PostBind(1, 0, w, to)
	require.ErrorIs(t, err, hw.ErrInsufficientResources, "it is not the window")
	wiring(d).Main().Release(1)
	r.bind(b, w, to)
	require.NoError(t, e.Close())
	require.NoError(t, d.Close())
}

func TestABindThatFailsBreaksTheConnection(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	l, w := r.unshared(), r.rmr()
	require.NoError(t, b.PostSend(1, 0, r.lmr.Segment(0, 8))) // waits for a receive, and delays the bind
	_, err := b.PostBind(2, 0, w, mem.Binding{Segment: l.Segment(0, 8), Privileges: readWrite})
	require.NoError(t, err)
	assert.ErrorIs(t, w.Free(), hw.ErrInvalidState, "a bind is outstanding")
	_, err = b.PostBind(3, 0, w, mem.Binding{Segment: l.Segment(0, 8), Privileges: readWrite})
	assert.ErrorIs(t, err, hw.ErrInvalidState, "one bind at a time")
	require.NoError(t, l.Free())
	require.NoError(t, a.PostRecv(4, 0, r.lmr.Segment(64, 8)))
	for i, want := range []uint64{4, 1, 2} {
		ev := r.next(r.dto)
		assert.Equal(t, want, ev.Cookie)
		if i == 2 {
			assert.Equal(t, hw.StatusBindFailed, ev.Status)
			assert.Equal(t, event.BindCompletion, ev.Number)
		}
	}
	r.broken(2)
	p, err := w.Query()
	require.NoError(t, err)
	assert.Zero(t, p.RemoteContext)
}
