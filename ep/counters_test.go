package ep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep/internal/line"
	"godat/hw"
	"godat/hw/event"
)

func TestCallsAndConnectionsAreCounted(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(nil)
	require.NoError(t, a.Disconnect(Abrupt))
	for range 2 {
		r.next(r.conn)
	}
	require.NoError(t, b.Reset())
	require.NoError(t, b.Connect(ConnectConfig{Qual: r.psp.Qual()}))
	require.NoError(t, RequestOf(r.next(r.cr)).Reject(nil))
	require.Equal(t, event.PeerRejected, r.next(r.conn).Number)
	require.NoError(t, b.Reset())
	require.NoError(t, b.Connect(ConnectConfig{Qual: 1 << 15}))
	require.Equal(t, event.NonPeerRejected, r.next(r.conn).Number)
	require.NoError(t, b.Reset())
	require.NoError(t, b.Connect(ConnectConfig{Addr: "nowhere", Qual: 1}))
	require.Equal(t, event.Unreachable, r.next(r.conn).Number)
	require.NoError(t, b.Reset())
	require.NoError(t, b.Connect(ConnectConfig{Qual: r.psp.Qual(), Timeout: time.Millisecond}))
	require.Equal(t, event.TimedOut, r.next(r.conn).Number)
	require.NoError(t, a.Close())
	require.NoError(t, r.psp.Close())
	assert.Equal(t, Counters{
		Endpoints: 2, EndpointsFreed: 1, ServicePoints: 1, ServicePointsFreed: 1,
		Requests: 3, Accepted: 1, Rejected: 1, Connects: 5, ActiveEstablished: 1, PassiveEstablished: 1,
		PeerRejected: 1, NonPeerRejected: 1, Unreachable: 1, TimedOut: 1, Disconnected: 2,
	}, r.adapter.Counters())
	c, err := b.Counters()
	require.NoError(t, err)
	assert.Equal(t, EndpointCounters{Connects: 1, Disconnects: 5}, c)
	_, err = a.Counters()
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
}

// A program may post more than 2^24 times between two calls of Counters.
func TestPostsAreCountedHoweverRarelyAProgramAsks(t *testing.T) {
	const numbers = line.TicketMask + 1
	r := newRig(t)
	e := r.endpoint(nil)
	e.box.Inside().Age(&e.box.Recvs, line.TicketMask-1)
	e.box.Inside().Age(&e.box.Requests, line.TicketMask-1)
	a := r.accept(e)
	for range 4 {
		require.NoError(t, e.PostRecv(1, 0, r.lmr.Segment(0, 8)))
		require.NoError(t, a.PostRecv(1, 0, r.lmr.Segment(0, 8)))
		require.NoError(t, e.PostSend(1, 0, r.lmr.Segment(0, 8)))
	}
	c, err := e.ResetCounters()
	require.NoError(t, err)
	assert.Equal(t, EndpointCounters{Connects: 1, Requests: numbers + 2, Receives: numbers + 2}, c)
	require.NoError(t, e.PostRecv(1, 0, r.lmr.Segment(0, 8)))
	c, err = e.Counters()
	require.NoError(t, err)
	assert.Equal(t, EndpointCounters{Receives: 1}, c)
}

func TestPostsAreCountedAlthoughTheirNumbersGoRound(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(nil)
	e.box.Inside().Age(&e.box.Recvs, line.TicketMask-1)
	e.box.Inside().Skip(&e.box.Recvs, line.TicketMask-1)
	want := EndpointCounters{}
	for range 4 {
		require.NoError(t, e.PostRecv(1, 0))
		want.Receives++
		if want.Receives%2 == 0 {
			c, err := e.Counters()
			require.NoError(t, err)
			assert.Equal(t, want, c)
		}
	}
	require.NoError(t, e.Modify(Param{Attr: Attr{MaxRecvDTOs: 99}}, "MaxRecvDTOs"))
	require.NoError(t, e.PostRecv(1, 0))
	want.Receives++
	require.ErrorIs(t, e.PostSend(1, 0), hw.ErrInvalidState)
	c, err := e.Counters()
	require.NoError(t, err)
	assert.Equal(t, want, c)
	a := r.accept(e)
	for range 5 {
		require.NoError(t, a.PostSend(2, hw.Suppress))
	}
	c, err = a.Counters()
	require.NoError(t, err)
	assert.Equal(t, EndpointCounters{Connects: 1, Requests: 5}, c)
}
