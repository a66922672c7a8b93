package ep

import (
	"bytes"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

func TestPrivateDataTravelsBothWays(t *testing.T) {
	r := newRig(t)
	most := r.adapter.attr.MaxPrivate
	require.GreaterOrEqual(t, most, 64)
	for _, n := range []int{0, 1, most} {
		ask, answer := bytes.Repeat([]byte{1}, n), bytes.Repeat([]byte{2}, n)
		a, b := r.endpoint(nil), r.endpoint(nil)
		require.NoError(t, a.Connect(ConnectConfig{Qual: r.psp.Qual(), Private: ask}))
		cr := RequestOf(r.next(r.cr))
		p, err := cr.Query()
		require.NoError(t, err)
		assert.Equal(t, ask, append([]byte{}, p.Private...))
		assert.False(t, p.Truncated)
		assert.Equal(t, r.psp.Qual(), p.Qual)
		require.ErrorIs(t, cr.Accept(b, make([]byte, most+1)), hw.ErrInvalidParameter)
		require.NoError(t, cr.Accept(b, answer))
		for range 2 {
			ev := r.next(r.conn)
			require.Equal(t, event.Established, ev.Number)
			if Of(ev) == a {
				assert.Equal(t, answer, append([]byte{}, ev.Private()...))
			} else {
				assert.Same(t, b, Of(ev))
				assert.Empty(t, ev.Private(), "the passive side had it with the request")
			}
		}
	}
	e := r.endpoint(nil)
	require.ErrorIs(t, e.Connect(ConnectConfig{Qual: r.psp.Qual(), Private: make([]byte, most+1)}), hw.ErrInvalidParameter)
	assert.Equal(t, Unconnected, e.State())
}

// cutOff is a request with more private data than the transport could carry.
type cutOff struct{ hw.Request }

func (cutOff) Private() ([]byte, bool) { return []byte("the beg"), true }
func (cutOff) Local() net.Addr         { return nil }
func (cutOff) Remote() net.Addr        { return nil }
func (cutOff) Qual() uint64            { return 1 }
func (cutOff) Reject([]byte) error     { return nil }

func TestPrivateDataThatWasCutOffSaysSo(t *testing.T) {
	r := newRig(t)
	require.True(t, r.psp.point().onRequest(cutOff{}))
	cr := RequestOf(r.next(r.cr))
	p, err := cr.Query()
	require.NoError(t, err)
	assert.Equal(t, "the beg", string(p.Private))
	assert.True(t, p.Truncated)
	require.NoError(t, cr.Reject(nil))
}

func TestARejectedRequestCanBeTriedAgain(t *testing.T) {
	r := newRig(t)
	a := r.endpoint(nil)
	require.NoError(t, a.PostRecv(5, 0, r.lmr.Segment(0, 8)))
	require.NoError(t, a.Connect(ConnectConfig{Qual: r.psp.Qual()}))
	cr := RequestOf(r.next(r.cr))
	require.NoError(t, cr.Reject([]byte("no")))
	ev := r.next(r.conn)
	assert.Equal(t, event.PeerRejected, ev.Number)
	assert.Equal(t, "no", string(ev.Private()))
	assert.Equal(t, Disconnected, a.State())
	assert.Equal(t, hw.StatusFlushed, r.next(r.dto).Status)
	require.ErrorIs(t, cr.Reject(nil), &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleCR})
	require.ErrorIs(t, cr.Accept(r.endpoint(nil), nil), &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleCR})
	require.NoError(t, a.Reset())
	b := r.endpoint(nil)
	r.connect(a, b)
	requireWorks(t, r, a, b)
}

func TestEachWayToFailHasItsEvent(t *testing.T) {
	r := newRig(t)
	for name, c := range map[string]struct {
		cfg  ConnectConfig
		want event.Number
	}{
		"nobody listens": {ConnectConfig{Qual: 1 << 15}, event.NonPeerRejected},
		"no such host":   {ConnectConfig{Addr: "nowhere", Qual: 1}, event.Unreachable},
		"time is up":     {ConnectConfig{Qual: r.psp.Qual(), Timeout: time.Millisecond}, event.TimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			e := r.endpoint(nil)
			require.NoError(t, e.Connect(c.cfg))
			ev := r.next(r.conn)
			assert.Equal(t, c.want, ev.Number)
			assert.Error(t, ev.Err())
			assert.Same(t, e, Of(ev))
			assert.Equal(t, Disconnected, e.State())
			require.NoError(t, e.Disconnect(Abrupt), "nothing is left to disconnect, and that is no error")
			r.none(r.conn)
			require.NoError(t, e.Reset())
			assert.Equal(t, Unconnected, e.State())
		})
	}
}

func TestALateAcceptEndsInAnError(t *testing.T) {
	r := newRig(t)
	a, b := r.endpoint(nil), r.endpoint(nil)
	require.NoError(t, a.Connect(ConnectConfig{Qual: r.psp.Qual(), Timeout: time.Millisecond}))
	cr := RequestOf(r.next(r.cr))
	assert.Equal(t, event.TimedOut, r.next(r.conn).Number)
	require.NoError(t, b.PostRecv(1, 0, r.lmr.Segment(0, 8)))
	require.NoError(t, cr.Accept(b, nil))
	ev := r.next(r.conn)
	assert.Equal(t, event.AcceptCompletionError, ev.Number)
	assert.Same(t, b, Of(ev))
	assert.Equal(t, hw.StatusFlushed, r.next(r.dto).Status)
}

func TestTheBacklogRejectsWhatExceedsIt(t *testing.T) {
	r := newRig(t)
	psp, err := r.adapter.NewPSP(PSPConfig{Dispatcher: r.cr, Backlog: 2})
	require.NoError(t, err)
	var waiting []*CR
	for range 2 {
		require.NoError(t, r.endpoint(nil).Connect(ConnectConfig{Qual: psp.Qual()}))
		waiting = append(waiting, RequestOf(r.next(r.cr)))
	}
	require.NoError(t, r.endpoint(nil).Connect(ConnectConfig{Qual: psp.Qual()}))
	assert.Equal(t, event.NonPeerRejected, r.next(r.conn).Number)
	require.NoError(t, waiting[0].Reject(nil))
	assert.Equal(t, event.PeerRejected, r.next(r.conn).Number)
	require.NoError(t, r.endpoint(nil).Connect(ConnectConfig{Qual: psp.Qual()}))
	require.NotNil(t, RequestOf(r.next(r.cr)), "an answer makes room")
	require.NoError(t, psp.Close())
	require.NoError(t, psp.Close())
	require.NoError(t, waiting[1].Accept(r.endpoint(nil), nil), "requests outlive the service point")
	require.NoError(t, r.endpoint(nil).Connect(ConnectConfig{Qual: psp.Qual()}))
}

func TestServicePointsAreRefused(t *testing.T) {
	r := newRig(t)
	_, err := r.adapter.NewPSP(PSPConfig{Dispatcher: r.cr, Qual: r.psp.Qual()})
	require.ErrorIs(t, err, hw.ErrConnQualInUse)
	_, err = r.adapter.NewPSP(PSPConfig{})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	_, err = r.adapter.NewPSP(PSPConfig{Dispatcher: r.cr, Backlog: -1})
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
}

func TestAGracefulDisconnectWaitsForRequestsAndFlushesReceives(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	require.NoError(t, a.PostRecv(1, 0, r.lmr.Segment(0, 8)))
	for i := range 3 {
		require.NoError(t, a.PostSend(uint64(10+i), 0, r.lmr.Segment(0, 8)))
	}
	require.NoError(t, a.Disconnect(Graceful))
	assert.Equal(t, DisconnectPending, a.State())
	require.NoError(t, a.Disconnect(Graceful), "a second one changes nothing")
	require.ErrorIs(t, a.PostSend(99, 0, r.lmr.Segment(0, 8)), &hw.Error{Type: hw.InvalidState, Sub: hw.StateEPDisconnectPending})
	require.NoError(t, a.PostRecv(2, 0, r.lmr.Segment(0, 8)))
	r.none(r.conn)
	for i := range 3 {
		require.NoError(t, b.PostRecv(uint64(20+i), 0, r.lmr.Segment(0, 8)))
	}
	for range 2 {
		assert.Equal(t, event.Disconnected, r.next(r.conn).Number)
	}
	status := map[uint64]hw.Status{}
	for range 8 {
		ev := r.next(r.dto)
		status[ev.Cookie] = ev.Status
	}
	assert.Equal(t, map[uint64]hw.Status{
		10: 0, 11: 0, 12: 0, 20: 0, 21: 0, 22: 0, 1: hw.StatusFlushed, 2: hw.StatusFlushed,
	}, status)
	r.none(r.conn)
}

func TestADrainThatTakesTooLongBecomesAbrupt(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(&Attr{DrainTimeout: time.Millisecond})
	require.NoError(t, a.PostSend(10, 0, r.lmr.Segment(0, 8)))
	require.NoError(t, a.Disconnect(Graceful))
	for range 2 {
		assert.Equal(t, event.Disconnected, r.next(r.conn).Number)
	}
	assert.Equal(t, hw.StatusFlushed, r.next(r.dto).Status)
}

func TestDisconnectedIsTheLastEventOfAConnection(t *testing.T) {
	r := newRig(t)
	both := r.dispatcher(evd.ModeQueue, 256)
	cfg := Config{PZ: r.pz, Recv: both, Request: both, Conn: both}
	a, b := r.endpointOf(cfg), r.endpointOf(cfg)
	require.NoError(t, a.Connect(ConnectConfig{Qual: r.psp.Qual()}))
	require.NoError(t, RequestOf(r.next(r.cr)).Accept(b, nil))
	first := map[*Endpoint]event.Number{}
	for range 2 {
		ev := r.next(both)
		first[Of(ev)] = ev.Number
	}
	assert.Equal(t, map[*Endpoint]event.Number{a: event.Established, b: event.Established}, first)
	for i := range 8 {
		require.NoError(t, a.PostRecv(uint64(i), 0, r.lmr.Segment(0, 8)))
		require.NoError(t, b.PostRecv(uint64(i), 0, r.lmr.Segment(0, 8)))
	}
	require.NoError(t, a.Disconnect(Abrupt))
	last := map[*Endpoint]event.Number{}
	for range 18 {
		ev := r.next(both)
		last[Of(ev)] = ev.Number
	}
	assert.Equal(t, map[*Endpoint]event.Number{a: event.Disconnected, b: event.Disconnected}, last)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	r.none(both)
	require.NoError(t, both.Close())
}

func TestARemoteAccessErrorBreaksBothEnds(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(nil)
	bad := r.lmr.Remote(0, 8)
	bad.Context ^= 0x5500
	require.NoError(t, a.PostRDMAWrite(1, hw.Suppress, bad, r.lmr.Segment(0, 8)))
	require.NoError(t, a.PostRecv(2, 0, r.lmr.Segment(0, 8)))
	got := map[uint64]hw.Status{}
	for range 2 {
		ev := r.next(r.dto)
		got[ev.Cookie] = ev.Status
	}
	assert.Equal(t, map[uint64]hw.Status{1: hw.StatusRemoteAccess, 2: hw.StatusFlushed}, got)
	for range 2 {
		assert.Equal(t, event.Broken, r.next(r.conn).Number)
	}
}

func TestQueryTellsWhatTheStateGivesMeaningTo(t *testing.T) {
	r := newRig(t)
	attr := &Attr{MaxRecvDTOs: 100, MaxRequestIOV: 7}
	a, _ := r.pair(attr)
	p, err := a.Query()
	require.NoError(t, err)
	assert.Equal(t, Connected, p.State)
	assert.GreaterOrEqual(t, p.Attr.MaxRecvDTOs, 100)
	assert.GreaterOrEqual(t, p.Attr.MaxRequestIOV, 7)
	assert.Equal(t, 16, p.Attr.MaxRequestDTOs)
	assert.Same(t, r.pz, p.PZ)
	assert.Same(t, r.dto, p.Recv)
	assert.Same(t, r.conn, p.Conn)
	assert.Equal(t, r.psp.Qual(), p.RemoteQual)
	assert.NotNil(t, p.RemoteAddr)
	require.NoError(t, a.Disconnect(Abrupt))
	p, err = a.Query()
	require.NoError(t, err)
	assert.Nil(t, p.RemoteAddr)
	assert.Zero(t, p.RemoteQual)
}

// While this process was paused, the program and its device ran as little as the alarm did.
func TestAPauseOfTheProcessGivesAnAlarmItsTimeAgain(t *testing.T) {
	const limit = 10 * time.Second
	for name, c := range map[string]struct {
		begin func(*rig) *Endpoint
		end   event.Number
	}{
		"a graceful disconnect": {func(r *rig) *Endpoint {
			a, _ := r.pair(&Attr{DrainTimeout: limit, ReceiverNotReady: time.Hour})
			require.NoError(r.t, a.PostSend(10, 0, r.lmr.Segment(0, 8)))
			require.NoError(r.t, a.Disconnect(Graceful))
			return a
		}, event.Disconnected},
		"a connect": {func(r *rig) *Endpoint {
			a := r.endpoint(nil)
			require.NoError(r.t, a.Connect(ConnectConfig{Qual: r.psp.Qual(), Timeout: limit}))
			r.next(r.cr)
			return a
		}, event.TimedOut},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				e := c.begin(r)
				var rings time.Duration // behind when it was set
				for range 3 {
					synctest.Wait()
					_, ok := e.box.Token.TryTake()
					require.True(t, ok)
					rings = e.alarm.limit
					require.GreaterOrEqual(t, rings, limit)
					e.alarm.due = e.alarm.due.Add(-time.Hour)
					require.True(t, e.box.Token.Release())
					time.Sleep(rings)
					synctest.Wait()
					r.none(r.conn)
				}
				time.Sleep(rings - 1)
				synctest.Wait()
				r.none(r.conn)
				time.Sleep(time.Nanosecond)
				assert.Equal(t, c.end, r.next(r.conn).Number)
			})
		})
	}
}
