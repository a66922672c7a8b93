package conformance

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

var moreStateCases = []Case{
	{ID: "ST-3", Claim: "what is posted in DISCONNECTED is flushed, in order, to its dispatcher", run: func(r *rig) {
		e := r.enter("DIS")
		seg := e.mem.Segment(0, 64)
		for i := range uint64(3) {
			require.NoError(r, e.ep.PostSend(10+i, hw.Suppress, seg), "a flush is no success, and not suppressed")
			require.NoError(r, e.ep.PostRecv(20+i, 0, seg))
		}
		for i := range uint64(3) {
			assert.Equal(r, hw.OpSend, e.done(e.req, 10+i, hw.StatusFlushed).Op)
			assert.Equal(r, hw.OpRecv, e.done(e.recv, 20+i, hw.StatusFlushed).Op)
		}
		r.none(e.req)
		r.none(e.recv)
	}},
	{ID: "ST-5", Claim: "an endpoint that was reset can be connected again", run: func(r *rig) {
		client, server := r.pair()
		for range 3 {
			server.postRecv(1, 64)
			client.sends(2, 64)
			server.done(server.recv, 1, hw.StatusSuccess)
			client.postRecv(3, 64)
			require.NoError(r, client.ep.Disconnect(ep.Graceful))
			client.done(client.recv, 3, hw.StatusFlushed)
			client.connection(event.Disconnected)
			server.connection(event.Disconnected)
			for _, e := range []*end{client, server} {
				require.NoError(r, e.ep.Reset())
				st := get(r, e.ep.Status)
				require.Equal(r, ep.Status{State: ep.Unconnected, RecvIdle: true, RequestIdle: true}, st)
			}
			r.connect(client, server)
		}
	}},
	{ID: "ST-6", Claim: "an endpoint is idle when nothing is outstanding, and not when something is", run: func(r *rig) {
		client, server := r.pair()
		idle := func(e *end, recv, request bool) {
			st := get(r, e.ep.Status)
			assert.Equal(r, ep.Status{State: ep.Connected, RecvIdle: recv, RequestIdle: request}, st)
		}
		idle(server, true, true)
		server.postRecv(1, 64)
		idle(server, false, true)
		client.sends(2, 64)
		server.done(server.recv, 1, hw.StatusSuccess)
		idle(server, true, true)
		idle(client, true, true)
		server.receives(3)
		for cookie := range uint64(3) {
			require.NoError(r, client.ep.PostSend(cookie, hw.Suppress, client.mem.Segment(0, 64)))
			server.done(server.recv, cookie, hw.StatusSuccess)
		}
		if r.differs(SilentSuccess) {
			idle(client, true, false)
			server.postRecv(3, 64)
			client.sends(4, 64)
			server.done(server.recv, 3, hw.StatusSuccess)
			idle(client, true, true)
		} else {
			r.until("the endpoint is idle", func() bool { return get(r, client.ep.Status).RequestIdle })
		}
		r.none(client.req)
		if client.node.waitsForReceives() {
			client.postSend(3, 64)
			idle(client, true, false)
		}
	}},
	// ST-7 checks in which states the addresses of an endpoint have a meaning. The local address is
	// the adapter's while there is no connection.
	{ID: "ST-7", Claim: "a query has the addresses in the states that give them a meaning", run: func(r *rig) {
		for state, means := range map[string]struct{ local, remote bool }{
			"UNC": {false, false}, "ACT": {true, true}, "CON": {true, true}, "DIS": {false, false},
		} {
			r.each(state, func(r *rig) {
				e := r.enter(state)
				p := get(r, e.ep.Query)
				assert.Equal(r, stateNames[state], p.State)
				if !means.local {
					assert.Equal(r, e.node.ia.Attr().Address, p.LocalAddr.String())
					assert.Zero(r, p.LocalQual)
				}
				if !means.remote {
					assert.Nil(r, p.RemoteAddr)
					assert.Zero(r, p.RemoteQual)
				}
				if means.remote {
					assert.NotNil(r, p.RemoteAddr)
				}
				if state == "ACT" {
					assert.NotZero(r, p.RemoteQual, "what was asked for")
				}
				assert.NotNil(r, p.LocalAddr)
			})
		}
	}},
	{ID: "ST-8", Claim: "what attributes were asked for is given, or more", run: func(r *rig) {
		for _, n := range []int{1, 3, 64, 200} {
			asked := ep.Attr{
				MaxRecvDTOs: n, MaxRequestDTOs: n, MaxRecvIOV: min(n, 4), MaxRequestIOV: 1, MaxMessageSize: uint64(n),
			}
			e := r.node().end(attr(func(a *ep.Attr) { *a = asked }))
			atLeast(r, get(r, e.ep.Query).Attr, asked)
		}
		n := r.node()
		d, limits := n.dispatcher(64), n.ia.Attr()
		for name, a := range map[string]ep.Attr{
			"deeper": {MaxRecvDTOs: limits.MaxDepth + 1}, "more segments": {MaxRequestIOV: limits.MaxSendSegments + 1},
			"longer": {MaxMessageSize: limits.MaxMessage + 1}, "negative": {MaxRequestDTOs: -2},
			"no such flag": {RecvFlags: hw.BarrierFence}, "not for requests": {RequestFlags: hw.SolicitedWait},
		} {
			assert.ErrorIs(r, errorOf(n.ia.NewEndpoint(ep.Config{PZ: n.pz, Recv: d, Request: d, Conn: d, Attr: &a})), hw.ErrInvalidParameter, name)
		}
	}},
	{ID: "ST-9", Claim: "a second disconnect does nothing and has no second event", run: func(r *rig) {
		for _, how := range []ep.CloseFlags{ep.Abrupt, ep.Graceful} {
			e := r.enter("DIS")
			require.NoError(r, e.ep.Disconnect(how))
			require.Equal(r, ep.Disconnected, e.ep.State())
			r.none(e.conn)

			e = r.enter("ACT")
			e.disconnect(how)
			require.Equal(r, ep.Disconnected, e.ep.State())
			require.NoError(r, e.ep.Disconnect(how))
			r.none(e.conn)
		}
	}},
	{ID: "ST-11", Claim: "no listener, no such address, no answer in time: each has its own event", run: func(r *rig) {
		e := r.node().end()
		s := r.node().listen()
		at := s.at()

		unheard := at
		unheard.Timeout = time.Millisecond
		e.fails(unheard, event.TimedOut)

		require.NoError(r, s.psp.Close())
		e.fails(at, event.NonPeerRejected)

		nowhere := at
		nowhere.Addr = r.p.Absent
		e.fails(nowhere, event.Unreachable)
	}},
	{ID: "ST-12", Claim: "an attempt that failed leaves DISCONNECTED, and receives flushed", run: func(r *rig) {
		e := r.node().end()
		s := r.node().listen()
		for range 3 { // after each the endpoint can be used again
			e.postRecv(5, 64)
			require.NoError(r, e.ep.Connect(s.at()))
			require.NoError(r, s.request().Reject([]byte("no")))
			carries(r, []byte("no"), r.privateOf(e.connection(event.PeerRejected)))
			require.Equal(r, ep.Disconnected, e.ep.State())
			e.done(e.recv, 5, hw.StatusFlushed)
			require.NoError(r, e.ep.Reset())
		}
	}},
	{ID: "ST-13", Claim: "the marker: when its flush is seen, everything before was seen", run: func(r *rig) {
		client, server := r.pair()
		const posted = 5
		client.receives(posted)
		require.NoError(r, server.ep.Disconnect(ep.Abrupt))
		r.until("the end", func() bool { return client.ep.State() == ep.Disconnected })
		client.postRecv(99, 64)
		for i := range uint64(posted) {
			client.done(client.recv, i, hw.StatusFlushed)
		}
		client.done(client.recv, 99, hw.StatusFlushed)
		require.NoError(r, client.ep.Reset())
		r.none(client.recv)
	}},
	{ID: "ST-14", Claim: "a modify changes what it says, all of it or nothing", run: func(r *rig) {
		n := r.node()
		recv, conn, closed := n.dispatcher(64, event.StreamDTO), n.dispatcher(8, event.StreamConnection), n.dispatcher(8)
		require.NoError(r, closed.Close())
		e := n.end()
		is := func(r1, q1, c1 *evd.Dispatcher) {
			p := get(r, e.ep.Query)
			assert.Same(r, r1, p.Recv)
			assert.Same(r, q1, p.Request)
			assert.Same(r, c1, p.Conn)
		}
		require.ErrorIs(r, e.ep.Modify(ep.Param{Recv: recv, Conn: closed}, "Recv", "Conn"), hw.ErrInvalidHandle)
		is(e.recv, e.req, e.conn)
		require.ErrorIs(r, e.ep.Modify(ep.Param{Recv: recv}, "Recv", "State"), hw.ErrInvalidParameter)
		is(e.recv, e.req, e.conn)
		require.NoError(r, e.ep.Modify(ep.Param{Recv: recv}, "Recv"))
		is(recv, e.req, e.conn)
		require.NoError(r, e.ep.Modify(ep.Param{Conn: conn}, "Conn"))
		is(recv, e.req, conn)
		require.NoError(r, e.recv.Close(), "nothing feeds it any more")
		e.recv, e.conn = recv, conn
		peer := r.node().end()
		r.connect(peer, e)
		say(peer, e, 64)
	}},
	{ID: "ST-16", Claim: "the receives of an endpoint are counted", run: func(r *rig) {
		client, server := r.pair()
		counts := func(want int) {
			allocated, span, err := server.ep.RecvQuery()
			require.NoError(r, err)
			assert.Equal(r, want, allocated)
			assert.GreaterOrEqual(r, span, want)
		}
		counts(0)
		server.receives(3)
		counts(3)
		client.postSend(1, 8)
		server.done(server.recv, 0, hw.StatusSuccess)
		counts(2)
		require.NoError(r, client.ep.Disconnect(ep.Abrupt))
		server.connection(event.Disconnected)
		counts(0)
	}},
	{ID: "ST-15", Claim: "a graceful disconnect lets requests complete, an abrupt one flushes them", needs: needs(notReadyWait), run: func(r *rig) {
		for how, want := range map[ep.CloseFlags]hw.Status{ep.Graceful: hw.StatusSuccess, ep.Abrupt: hw.StatusFlushed} {
			client, server := r.pair()
			client.postSend(1, 64)
			client.postRecv(2, 64)
			require.NoError(r, client.ep.Disconnect(how))
			if how == ep.Graceful {
				require.Equal(r, ep.DisconnectPending, client.ep.State())
				server.postRecv(3, 64)
				server.done(server.recv, 3, hw.StatusSuccess)
			}
			client.done(client.req, 1, want)
			client.done(client.recv, 2, hw.StatusFlushed)
			client.connection(event.Disconnected)
			if how == ep.Abrupt && r.differs(UntoldEnd) {
				server.connection(event.Broken)
			} else {
				server.connection(event.Disconnected)
			}
		}
	}},
	// ST-17 accepts a request with an endpoint whose provider never reports that the
	// connection is established.
	{ID: "ST-17", Claim: "an accepted connection is announced by its first message, or its end is an error of the accept", run: func(r *rig) {
		e := r.enter("CMP")
		e.postRecv(1, 64)
		e.peer.postSend(2, 8)
		e.established()
		e.done(e.recv, 1, hw.StatusSuccess)
		require.Equal(r, ep.Connected, e.ep.State())

		e = r.enter("CMP")
		e.postRecv(1, 64)
		require.NoError(r, e.peer.ep.Disconnect(ep.Abrupt))
		e.done(e.recv, 1, hw.StatusFlushed)
		e.connection(event.AcceptCompletionError)
		require.Equal(r, ep.Disconnected, e.ep.State())

		for _, how := range []ep.CloseFlags{ep.Abrupt, ep.Graceful} {
			e = r.enter("CMP")
			e.postRecv(1, 64)
			require.NoError(r, e.ep.Disconnect(how))
			e.done(e.recv, 1, hw.StatusFlushed)
			e.connection(event.Disconnected)
			require.Equal(r, ep.Disconnected, e.ep.State())
			r.none(e.conn)
		}
	}},
}

// fails connects, and requires the event with which the attempt ends.
func (e *end) fails(at ep.ConnectConfig, want event.Number) {
	require.NoError(e.rig, e.ep.PostRecv(5, 0, e.mem.Segment(0, 64)))
	require.NoError(e.rig, e.ep.Connect(at))
	e.connection(want)
	require.Equal(e.rig, ep.Disconnected, e.ep.State())
	e.done(e.recv, 5, hw.StatusFlushed)
	require.NoError(e.rig, e.ep.Reset())
	require.Equal(e.rig, ep.Unconnected, e.ep.State())
}
