package conformance

import (
	"math"
	"net"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

var serviceCases = []Case{
	{ID: "Q-4", Claim: "a query of a reserved service point says what it was made with", run: func(r *rig) {
		e := r.node().end()
		rsp, s := e.reserved()
		p := get(r, rsp.Query)
		home, err := dat.IAOf(rsp)
		require.NoError(r, err)
		assert.Same(r, e.node.ia, home)
		assert.NotZero(r, p.Qual)
		assert.Equal(r, rsp.Qual(), p.Qual)
		assert.Same(r, s.cr, p.Dispatcher)
		assert.Same(r, e.ep, p.Endpoint)
	}},
	{ID: "Q-16", Claim: "a query of a service point says all of it, of none it is INVALID_HANDLE", run: func(r *rig) {
		s := r.node().listen()
		p := get(r, s.psp.Query)
		assert.Equal(r, ep.PSPConfig{Addr: p.Addr, Qual: s.psp.Qual(), Dispatcher: s.cr, Backlog: p.Backlog, Flags: ep.PSPConsumer}, p)
		rsp, _ := r.node().end().reserved()
		csp := s.common()
		assert.Equal(r, rsp.Qual(), get(r, rsp.Query).Qual)
		assert.Equal(r, csp.Addr().String(), get(r, csp.Query).Address)

		r.ok(s.psp.Close(), rsp.Close(), csp.Close())
		for _, psp := range []*ep.PSP{s.psp, nil} {
			assert.ErrorIs(r, errorOf(psp.Query()), code(hw.InvalidHandle, hw.HandlePSP))
		}
		for _, rsp := range []*ep.RSP{rsp, nil} {
			assert.ErrorIs(r, errorOf(rsp.Query()), code(hw.InvalidHandle, hw.HandleRSP))
		}
		for _, csp := range []*ep.CSP{csp, nil} {
			assert.ErrorIs(r, errorOf(csp.Query()), code(hw.InvalidHandle, hw.HandleCSP))
		}
	}},
	{ID: "Q-19", Claim: "a query of a common service point says what it was made with", run: func(r *rig) {
		s := r.node().listen()
		csp := s.common()
		p := get(r, csp.Query)
		assert.Equal(r, ep.CSPConfig{Address: csp.Addr().String(), Dispatcher: s.cr, Backlog: p.Backlog}, p)
		_, port, err := net.SplitHostPort(p.Address)
		require.NoError(r, err)
		assert.NotEqual(r, "0", port, "it got one")
	}},
	{ID: "LIM-RSP", Claim: "reserved service points can be made until there are no more", run: exhausts("limit_rsp", most/4)},
	{ID: "CO-16", Claim: "an endpoint that a service point made is configured, accepted and connected", needs: needs(providerEndpoints), run: func(r *rig) {
		client, e := r.node().end(), r.node().end()
		s := e.node.providing()
		cr, p := s.askedBy(client, nil)
		// The provider's endpoint has no zone yet, so it can't be accepted.
		require.ErrorIs(r, cr.Accept(nil, nil), code(hw.InvalidState, hw.StateEPPZ))
		require.NoError(r, errorOf(cr.Query()), "the request is valid still")
		e.cr = cr
		e.become(p.Endpoint)
		e.postRecv(1, 64)
		require.ErrorIs(r, cr.Accept(e.node.end().ep, nil), hw.ErrInvalidParameter, "it came with an endpoint")
		require.NoError(r, cr.Accept(nil, nil))
		client.established()
		e.established()
		client.postSend(2, 8)
		e.done(e.recv, 1, hw.StatusSuccess)
		client.done(client.req, 2, hw.StatusSuccess)
		say(e, client, 64)
		require.NoError(r, client.ep.Disconnect(ep.Graceful))
		e.connection(event.Disconnected)
		require.NoError(r, e.ep.Reset())
		require.NoError(r, e.ep.Close())
	}},
	{ID: "CO-17", Claim: "a request that came with an endpoint is handed off, and the endpoint is as before, or gone", needs: needs(providerEndpoints), run: func(r *rig) {
		for _, state := range []string{"PAS", "TEN"} {
			r.each(state, func(r *rig) {
				e := r.enter(state)
				other := e.node.listen()
				require.NoError(r, e.cr.Handoff(other.psp.Qual()))
				if state == "PAS" {
					require.Equal(r, ep.Unconnected, e.ep.State())
				} else {
					require.ErrorIs(r, errorOf(e.ep.Status()), hw.ErrInvalidHandle)
				}
				server := e.node.end()
				require.NoError(r, other.request().Accept(server.ep, nil))
				server.established()
			})
		}
	}},
	{ID: "CO-18", Claim: "a common service point listens at an address, to which endpoints connect", run: func(r *rig) {
		client, server := r.node().end(), r.node().end()
		s := &service{rig: server.rig, node: server.node, cr: server.node.dispatcher(16, event.StreamCR)}
		csp := s.common()
		_, port, err := net.SplitHostPort(csp.Addr().String())
		require.NoError(r, err)
		at := net.JoinHostPort(server.node.addr(), port)
		require.NoError(r, client.ep.CommonConnect(at, ep.ConnectConfig{Private: []byte("hello")}))
		cr, p := s.asked()
		carries(r, []byte("hello"), p.Private)
		accept(cr, client, server)
		say(client, server, 64)

		require.NoError(r, csp.Close())
		late := r.node().end()
		require.NoError(r, late.ep.CommonConnect(at, ep.ConnectConfig{}))
		late.connection(event.NonPeerRejected)
	}},
	{ID: "CO-19", Claim: "a malformed address and an unknown domain are refused", run: func(r *rig) {
		e, s := r.node().end(), r.node().listen()
		for _, address := range []string{"", "no port", "a:b:c", "host:many", "127.0.0.1:65536", "127.0.0.1:99999999"} {
			assert.ErrorIs(r, e.ep.CommonConnect(address, ep.ConnectConfig{}), hw.ErrInvalidAddress, address)
			assert.ErrorIs(r, errorOf(s.node.ia.NewCSP(ep.CSPConfig{Address: address, Dispatcher: s.cr})), hw.ErrInvalidAddress, address)
		}
		for _, qual := range []uint64{65536, 99999999, math.MaxUint64} {
			assert.ErrorIs(r, e.ep.Connect(ep.ConnectConfig{Addr: "127.0.0.1", Qual: qual}), hw.ErrInvalidParameter, qual)
			assert.ErrorIs(r, errorOf(s.node.ia.NewPSP(ep.PSPConfig{Qual: qual, Dispatcher: s.cr})), hw.ErrInvalidParameter, qual)
		}
		for _, addr := range []string{"localhost:4444", "[::1]:4444"} {
			const says = "the port 4444 goes into Qual"
			err := e.ep.Connect(ep.ConnectConfig{Addr: addr, Qual: 4444})
			assert.ErrorIs(r, err, code(hw.InvalidAddress, hw.AddressMalformed), addr)
			assert.ErrorContains(r, err, says)
			err = errorOf(s.node.ia.NewPSP(ep.PSPConfig{Addr: addr, Dispatcher: s.cr}))
			assert.ErrorIs(r, err, code(hw.InvalidAddress, hw.AddressMalformed), addr)
			assert.ErrorContains(r, err, says)
		}
		const unix, datagram = 1, 2
		for _, c := range []ep.Comm{{Domain: unix, Type: 1}, {Domain: 2, Type: datagram}, {Domain: 2, Type: 1, Protocol: 132}} {
			assert.ErrorIs(r, errorOf(s.node.ia.NewCSP(ep.CSPConfig{Comm: c, Address: ":0", Dispatcher: s.cr})), code(hw.CommNotSupported, hw.NoSubtype))
		}
		assert.ErrorIs(r, errorOf(s.node.ia.NewCSP(ep.CSPConfig{Address: ":0"})), code(hw.InvalidHandle, hw.HandleEVDCR))
		require.Equal(r, ep.Unconnected, e.ep.State())
	}},
}

// common makes a common service point (CSP) at any port of the adapter.
func (s *service) common() *ep.CSP {
	csp, err := s.node.ia.NewCSP(ep.CSPConfig{Address: ":0", Dispatcher: s.cr})
	s.rig.made(err, csp.Close)
	return csp
}
