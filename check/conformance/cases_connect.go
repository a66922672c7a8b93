package conformance

import (
	"bytes"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
)

var connectCases = []Case{
	{ID: "CO-1", Claim: "a service point without a qualifier gets one, and its own", run: func(r *rig) {
		n := r.node()
		seen := make(map[uint64]bool)
		for range 8 {
			s := n.listen()
			require.NotZero(r, s.psp.Qual())
			require.False(r, seen[s.psp.Qual()], "each its own")
			seen[s.psp.Qual()] = true
			_, p := s.askedBy(n.end(), nil)
			assert.Equal(r, s.psp.Qual(), p.Qual)
		}
	}},
	{ID: "CO-2", Claim: "a qualifier that is taken is CONN_QUAL_IN_USE, and free again afterwards", run: func(r *rig) {
		n := r.node()
		s := n.listen()
		cfg := ep.PSPConfig{Dispatcher: s.cr, Qual: s.psp.Qual()}
		require.ErrorIs(r, errorOf(n.ia.NewPSP(cfg)), hw.ErrConnQualInUse)
		require.NoError(r, s.psp.Close())
		assert.Equal(r, cfg.Qual, n.listenOn(cfg).psp.Qual())
	}},
	{ID: "CO-3", Claim: "requests outlive their service point", run: func(r *rig) {
		client, server := r.node().end(), r.node().end()
		s := server.node.listen()
		cr := s.requestOf(client)
		require.NoError(r, s.psp.Close())
		// The qualifier is free, though a request waits.
		require.NoError(r, server.node.listenOn(ep.PSPConfig{Dispatcher: s.cr, Qual: s.psp.Qual()}).psp.Close())
		accept(cr, client, server)
		say(client, server, 64)
		late := r.node().end()
		late.fails(s.at(), event.NonPeerRejected)
	}},
	{ID: "CO-4", Claim: "a reserved service point takes one request, for its endpoint", run: func(r *rig) {
		client, server := r.node().end(), r.node().end()
		rsp, s := server.reserved()
		require.Equal(r, ep.Reserved, server.ep.State())
		at := ep.ConnectConfig{Addr: server.node.addr(), Qual: rsp.Qual()}
		require.NoError(r, client.ep.Connect(at))
		cr := s.request()
		require.Equal(r, ep.PassiveConnectionPending, server.ep.State())
		r.node().end().fails(at, event.NonPeerRejected)
		p := get(r, cr.Query)
		assert.Same(r, server.ep, p.Endpoint)
		require.NoError(r, cr.Accept(nil, nil))
		client.established()
		server.established()
		say(client, server, 64)

		// After a reject, and when its service point is freed without a request, the
		// endpoint is UNCONNECTED.
		client, server = r.node().end(), r.node().end()
		rsp, s = server.reserved()
		require.NoError(r, client.ep.Connect(ep.ConnectConfig{Addr: server.node.addr(), Qual: rsp.Qual()}))
		require.NoError(r, s.request().Reject(nil))
		client.connection(event.PeerRejected)
		require.Equal(r, ep.Unconnected, server.ep.State())
		rsp, _ = server.reserved()
		require.NoError(r, rsp.Close())
		require.Equal(r, ep.Unconnected, server.ep.State())
	}},
	{ID: "CO-5", Claim: "a service point with PROVIDER makes the endpoint, which is TENTATIVE", needs: needs(providerEndpoints), run: func(r *rig) {
		client := r.node().end()
		s := r.node().providing()
		cr, p := s.askedBy(client, nil)
		require.NotNil(r, p.Endpoint)
		require.Equal(r, ep.TentativeConnectionPending, p.Endpoint.State())
		q := get(r, p.Endpoint.Query)
		assert.Nil(r, q.PZ)
		assert.Nil(r, q.Conn)
		m := s.node.lmr(64)
		assert.ErrorIs(r, p.Endpoint.PostRecv(1, 0, m.Segment(0, 8)), code(hw.InvalidState, hw.StateEPPZ))
		require.NoError(r, cr.Reject(nil))
		client.connection(event.PeerRejected)
		assert.ErrorIs(r, errorOf(p.Endpoint.Status()), hw.ErrInvalidHandle, "it is gone with the request")
	}},
	{ID: "CO-6", Claim: "private data of 0 bytes, one and the most arrive; one more is INVALID_PARAMETER", run: func(r *rig) {
		most := r.open().Attr().MaxPrivate
		for _, n := range []int{0, 1, most} {
			client, server := r.node().end(), r.node().end()
			cr, q := server.node.listen().askedBy(client, private(n, 1))
			carries(r, private(n, 1), q.Private)
			assert.False(r, q.Truncated)
			require.ErrorIs(r, cr.Accept(server.ep, private(most+1, 0)), hw.ErrInvalidParameter)
			require.ErrorIs(r, cr.Reject(private(most+1, 0)), hw.ErrInvalidParameter)
			require.NoError(r, cr.Accept(server.ep, private(n, 2)))
			carries(r, private(n, 2), r.privateOf(client.established()))
			assert.Empty(r, r.privateOf(server.established()), "it came with the request")
		}
		client := r.node().end()
		at := r.node().listen().at()
		at.Private = private(most+1, 0)
		require.ErrorIs(r, client.ep.Connect(at), hw.ErrInvalidParameter)
		require.Equal(r, ep.Unconnected, client.ep.State())
	}},
	{ID: "CO-7", Claim: "a rejection carries private data, or none", run: func(r *rig) {
		client := r.node().end()
		s := r.node().listen()
		for _, data := range [][]byte{nil, []byte("go away")} {
			require.NoError(r, client.ep.Connect(s.at()))
			require.NoError(r, s.request().Reject(data))
			got := r.privateOf(client.connection(event.PeerRejected))
			carries(r, data, got)
			if data == nil {
				assert.Empty(r, bytes.Trim(got, "\x00"))
			}
			require.NoError(r, client.ep.Reset())
		}
	}},
	{ID: "CO-8", Claim: "an endpoint in another state can't accept, and the request stays valid", run: func(r *rig) {
		for _, state := range []string{"ACT", "CON", "DIS"} {
			r.each(state, func(r *rig) {
				e := r.enter(state)
				peer, s := r.node().end(), e.node.listen()
				cr := s.requestOf(peer)
				require.ErrorIs(r, cr.Accept(e.ep, nil), code(hw.InvalidState, stateSubtypes[state]))
				require.ErrorIs(r, cr.Accept(peer.ep, nil), hw.ErrInvalidHandle, "an endpoint of another adapter")
				require.NoError(r, cr.Accept(e.node.end().ep, nil))
				peer.established()
			})
		}
	}},
	{ID: "CO-9", Claim: "a request is handed off to another service point", run: func(r *rig) {
		n := r.node()
		client, first, second := r.node().end(), n.listen(), n.listen()
		cr, asked := first.askedBy(client, []byte("to whom"))
		carries(r, []byte("to whom"), asked.Private)
		require.ErrorIs(r, cr.Handoff(1), hw.ErrInvalidParameter, "no service point is there")
		require.NoError(r, cr.Handoff(second.psp.Qual()))
		require.ErrorIs(r, errorOf(cr.Query()), code(hw.InvalidHandle, hw.HandleCR))
		r.none(first.cr)
		cr = second.request()
		p := get(r, cr.Query)
		carries(r, asked.Private, p.Private)
		assert.Equal(r, second.psp.Qual(), p.Qual)
		server := n.end()
		accept(cr, client, server)
		say(client, server, 64)
	}},
	{ID: "CO-10", Claim: "an endpoint connects to where another is connected", run: func(r *rig) {
		client, server := r.node().end(), r.node().end()
		s := server.node.listen()
		s.join(client, server)
		second, other := client.node.end(), server.node.end()
		require.NoError(r, second.ep.DupConnect(client.ep, ep.ConnectConfig{Private: []byte("again")}))
		cr, p := s.asked()
		carries(r, []byte("again"), p.Private)
		accept(cr, second, other)
		say(second, other, 64)
		third := client.node.end()
		assert.ErrorIs(r, third.ep.DupConnect(client.node.end().ep, ep.ConnectConfig{}), code(hw.InvalidState, hw.StateEPUnconnected))
		assert.ErrorIs(r, second.ep.DupConnect(client.ep, ep.ConnectConfig{}), code(hw.InvalidState, hw.StateEPConnected))
	}},
	{ID: "CO-11", Claim: "more requests than the backlog are NON_PEER_REJECTED", run: func(r *rig) {
		n := r.node()
		d := n.dispatcher(2, event.StreamCR)
		at := n.listenOn(ep.PSPConfig{Dispatcher: d, Backlog: 2}).at()
		peers := r.node()
		for range 2 {
			require.NoError(r, peers.end().ep.Connect(at))
		}
		r.until("two requests", func() bool {
			_, nmore, err := d.Wait(r.soon(), 2)
			return err == nil && nmore == 1
		})
		peers.end().fails(at, event.NonPeerRejected)
	}},
	{ID: "CO-13", Claim: "a request that was answered is INVALID_HANDLE", run: func(r *rig) {
		n := r.node()
		s := n.listen()
		for name, answer := range map[string]func(*ep.CR) error{
			"accept":  func(c *ep.CR) error { return c.Accept(n.end().ep, nil) },
			"reject":  func(c *ep.CR) error { return c.Reject(nil) },
			"handoff": func(c *ep.CR) error { return c.Handoff(n.listen().psp.Qual()) },
		} {
			client := n.end()
			cr := s.requestOf(client)
			require.NoError(r, answer(cr), name)
			dead := code(hw.InvalidHandle, hw.HandleCR)
			assert.ErrorIs(r, errorOf(cr.Query()), dead, name)
			assert.ErrorIs(r, cr.Accept(n.end().ep, nil), dead, name)
			assert.ErrorIs(r, cr.Reject(nil), dead, name)
			assert.ErrorIs(r, cr.Handoff(s.psp.Qual()), dead, name)
		}
		var none *ep.CR
		assert.ErrorIs(r, none.Reject(nil), code(hw.InvalidHandle, hw.HandleCR))
	}},
	// CO-14 checks the providers whose qualifiers are ports.
	{ID: "CO-14", Claim: "a qualifier beyond a port is refused, and never another", run: func(r *rig) {
		n := r.node()
		s := n.listen()
		at := s.at()
		at.Qual += 1 << 16
		client := n.end()
		if err := client.ep.Connect(at); err != nil {
			require.ErrorIs(r, err, hw.ErrInvalidParameter)
			require.Equal(r, ep.Unconnected, client.ep.State())
		} else {
			client.connection(event.NonPeerRejected)
		}
		r.none(client.conn)
		r.none(s.cr)
	}},
	{ID: "CO-15", Claim: "both ends know where the other is", run: func(r *rig) {
		client, server := r.node().end(), r.node().end()
		cr, asks := server.node.listen().askedBy(client, nil)
		accept(cr, client, server)
		c := get(r, client.ep.Query)
		v := get(r, server.ep.Query)
		assert.Equal(r, asks.Remote.String(), v.RemoteAddr.String())
		assert.Equal(r, c.LocalAddr.String(), v.RemoteAddr.String())
		assert.Equal(r, v.LocalAddr.String(), c.RemoteAddr.String())
	}},
}

// reserved makes a reserved service point (RSP) for the endpoint.
func (e *end) reserved() (*ep.RSP, *service) {
	s := &service{rig: e.rig, node: e.node, cr: e.node.dispatcher(16, event.StreamCR)}
	rsp, err := e.node.ia.NewRSP(ep.RSPConfig{Endpoint: e.ep, Dispatcher: s.cr})
	e.rig.made(err, rsp.Close)
	return rsp, s
}

// providerEndpoints: the provider makes endpoints for the requests of a service
// point.
var providerEndpoints = &capability{"provider-endpoints", func(r *rig) bool {
	n := r.node()
	psp, err := n.ia.NewPSP(ep.PSPConfig{Dispatcher: n.dispatcher(4), Flags: ep.PSPProvider})
	return r.granted(err, psp.Close)
}}

// providing makes a service point whose endpoints the provider makes.
func (n *node) providing() *service {
	return n.listenOn(ep.PSPConfig{Dispatcher: n.dispatcher(16, event.StreamCR), Flags: ep.PSPProvider})
}

// privateOf returns the private data of a connection event.
func (r *rig) privateOf(ev event.Event) []byte {
	require.Equal(r, event.StreamConnection, ev.Number.Stream())
	return ev.Private()
}

// carries requires that got begins with sent; a transport may pad it.
func carries(r *rig, sent, got []byte) {
	require.True(r, bytes.HasPrefix(got, sent), "sent %x, got %x", sent, got)
}

func private(n int, first byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = first + byte(i)
	}
	return b
}
