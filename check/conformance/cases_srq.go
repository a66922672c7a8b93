package conformance

import (
	"encoding/binary"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

var srqCases = []Case{
	{ID: "DS-1", Claim: "a shared receive queue says what it was made with", needs: needs(sharedReceives), run: func(r *rig) {
		n := r.node()
		q := n.srq(33, 2)
		p := get(r, q.Query)
		assert.GreaterOrEqual(r, p.MaxRecvDTOs, 33)
		assert.GreaterOrEqual(r, p.MaxRecvIOV, 2)
		assert.Equal(r, ep.SRQOperational, p.State)
		assert.Same(r, n.pz, p.PZ)
		assert.Zero(r, p.Outstanding)
		require.NoError(r, q.PostRecv(1, n.lmr(64).Segment(0, 64)))
		p = get(r, q.Query)
		assert.Equal(r, 1, p.Outstanding)
		require.NoError(r, q.Close())
		assert.ErrorIs(r, errorOf(q.Query()), code(hw.InvalidHandle, hw.HandleSRQ))
	}},
	{ID: "DS-3", Claim: "many endpoints share a queue: all messages arrive, in each connection's order", needs: needs(sharedReceives), run: func(r *rig) { ds3(r, true) }},
	{ID: "DS-5", Claim: "many endpoints without a shared queue: all messages arrive, in each connection's order", run: func(r *rig) { ds3(r, false) }},
	{ID: "DS-7", Claim: "one more receive than it holds is INSUFFICIENT_RESOURCES, until it is resized", needs: needs(sharedReceives), run: func(r *rig) {
		n := r.node()
		q, m := n.srq(4, 0), n.lmr(64)
		p := get(r, q.Query)
		for i := range p.MaxRecvDTOs {
			require.NoError(r, q.PostRecv(uint64(i), m.Segment(0, 64)))
		}
		require.ErrorIs(r, q.PostRecv(9, m.Segment(0, 64)), code(hw.InsufficientResources, hw.ResourceSRQ))
		require.NoError(r, q.Resize(p.MaxRecvDTOs+4))
		require.NoError(r, q.PostRecv(9, m.Segment(0, 64)))
		require.ErrorIs(r, q.Resize(2), hw.ErrInvalidState, "more than that are outstanding")
		p = get(r, q.Query)
		assert.GreaterOrEqual(r, p.Outstanding, 5)
	}},
	{ID: "DS-8", Claim: "the low watermark is reported once for each time it is set", needs: needs(sharedReceives), run: func(r *rig) {
		n := r.node()
		q := n.srq(16, 0)
		server, client := n.end(from(q)), r.node().end()
		r.connect(client, server)
		for i := range uint64(4) {
			require.NoError(r, q.PostRecv(i, server.mem.Segment(0, 64)))
		}
		require.NoError(r, q.SetLowWatermark(3))
		take := func(cookie uint64) {
			client.sends(cookie, 8)
			server.done(server.recv, cookie, hw.StatusSuccess)
		}
		take(0)
		r.none(n.ia.Async())
		take(1)
		ev := r.next(n.ia.Async())
		assert.Same(r, q, ep.SRQOf(ev))
		_, why, ok := ev.Async()
		assert.True(r, ok)
		assert.Equal(r, event.SRQLowWatermark, why)
		take(2)
		r.none(n.ia.Async())
		require.NoError(r, q.SetLowWatermark(3), "it is below already")
		assert.Same(r, q, ep.SRQOf(r.next(n.ia.Async())))
	}},
	{ID: "DS-9", Claim: "a shared receive queue with an endpoint can't be freed", needs: needs(sharedReceives), run: func(r *rig) {
		n := r.node()
		q := n.srq(0, 0)
		e := n.end(from(q))
		require.ErrorIs(r, q.Close(), code(hw.InvalidState, hw.StateSRQInUse))
		r.ok(e.ep.Close(), q.Close())
	}},
	{ID: "DS-10", Claim: "an endpoint of a shared receive queue takes no receives of its own", needs: needs(sharedReceives), run: func(r *rig) {
		n := r.node()
		e := n.end(from(n.srq(0, 0)))
		require.ErrorIs(r, e.ep.PostRecv(1, 0, e.mem.Segment(0, 64)), code(hw.InvalidState, hw.StateSRQInUse))
		r.connect(r.node().end(), e)
		require.ErrorIs(r, e.ep.PostRecv(1, 0, e.mem.Segment(0, 64)), code(hw.InvalidState, hw.StateSRQInUse))
	}},
	{ID: "DS-11", Claim: "receives that an endpoint did not take stay when the endpoint closes", needs: needs(sharedReceives), run: func(r *rig) {
		n := r.node()
		q := n.srq(0, 0)
		for i := range uint64(2) {
			require.NoError(r, q.PostRecv(i, n.lmr(64).Segment(0, 64)))
		}
		for i := range uint64(2) {
			server, client := n.end(from(q)), r.node().end()
			r.connect(client, server)
			client.sends(5, 64)
			server.done(server.recv, i, hw.StatusSuccess)
			require.NoError(r, client.ep.Disconnect(ep.Graceful))
			server.connection(event.Disconnected)
			r.none(server.recv)
			require.NoError(r, server.ep.Close())
		}
	}},
	// DS-12 sets watermarks that one receive exceeds.
	{ID: "DS-12", Claim: "an endpoint beyond its soft watermark is reported, and one beyond its hard watermark is broken", needs: needs(sharedReceives), run: func(r *rig) {
		n := r.node()
		q := n.srq(0, 0)
		server, client := n.end(from(q)), r.node().end()
		r.connect(client, server)
		for i := range uint64(2) {
			require.NoError(r, q.PostRecv(i, server.mem.Segment(0, 64)))
		}
		const none = -1
		require.ErrorIs(r, server.ep.SetWatermark(-2, none), hw.ErrInvalidParameter)
		require.NoError(r, server.ep.SetWatermark(0, none))
		client.sends(1, 8)
		server.done(server.recv, 0, hw.StatusSuccess)
		ev := r.next(n.ia.Async())
		source, why, ok := ev.Async()
		require.True(r, ok)
		require.Same(r, server.ep, source)
		require.Equal(r, event.EPSoftHighWatermark, why)
		require.NoError(r, server.ep.SetWatermark(none, 0))
		client.postSend(2, 8)
		server.connection(event.Broken)
	}},
}

// sharedReceives: the provider has shared receive queues (SRQ).
var sharedReceives = &capability{"srq", func(r *rig) bool {
	n := r.node()
	q, err := n.ia.NewSRQ(n.pz, 0, 0)
	return r.granted(err, q.Close)
}}

func (n *node) srq(receives, segments int) *ep.SRQ {
	q, err := n.ia.NewSRQ(n.pz, receives, segments)
	n.rig.made(err, q.Close)
	return q
}

func from(q *ep.SRQ) func(*ep.Config) {
	return func(cfg *ep.Config) { cfg.SRQ = q }
}

// ds3 sends bursts over many connections. Each message says of which connection it
// is, and its number there. While messages come, the server posts again the receives
// that have completed.
func ds3(r *rig, shared bool) {
	const burst, size = 10, 16
	eps, bursts := r.p.Scale.of(100, 4), r.p.Scale.of(80, 4)
	server, client := r.node(), r.node()
	recv := server.dispatcher(eps*2*burst, event.StreamDTO)
	into := server.lmr(eps * 2 * burst * size)
	at := func(slot uint64) mem.Segment { return into.Segment(int(slot)*size, size) }
	cfg := func(cfg *ep.Config) { cfg.Recv = recv }
	post := func(ep *ep.Endpoint, slot uint64) error { return ep.PostRecv(slot, 0, at(slot)) }
	if shared {
		q := server.srq(eps*2*burst, 0)
		cfg = func(cfg *ep.Config) { cfg.Recv, cfg.SRQ = recv, q }
		post = func(_ *ep.Endpoint, slot uint64) error { return q.PostRecv(slot, at(slot)) }
	}
	number := make(map[*ep.Endpoint]int)
	var clients, servers []*end
	depth := attr(func(a *ep.Attr) { a.MaxRecvDTOs, a.MaxRequestDTOs = 2*burst, 2*burst })
	for i := range eps {
		s := server.end(depth, cfg)
		for k := range uint64(2 * burst) {
			require.NoError(r, post(s.ep, uint64(i*2*burst)+k))
		}
		number[s.ep] = i
		servers = append(servers, s)
	}
	for i := range eps {
		c := client.end(depth)
		r.connect(c, servers[i])
		clients = append(clients, c)
	}
	next := make([]uint64, eps)
	sent := make([]uint64, eps)
	for range bursts {
		for i, c := range clients {
			for k := range burst {
				b := c.mem.Bytes()[k*size:]
				binary.LittleEndian.PutUint64(b, uint64(i))
				binary.LittleEndian.PutUint64(b[8:], sent[i])
				sent[i]++
				require.NoError(r, c.ep.PostSend(uint64(k), 0, c.mem.Segment(k*size, size)))
			}
		}
		for range eps * burst {
			ev := r.next(recv)
			require.Equal(r, hw.StatusSuccess, ev.Status, "%v", ev)
			ep := ep.Of(ev)
			i, ok := number[ep]
			require.True(r, ok, "the event names the endpoint that took the message")
			b := into.Bytes()[int(ev.Cookie)*size:]
			require.EqualValues(r, i, binary.LittleEndian.Uint64(b))
			require.Equal(r, next[i], binary.LittleEndian.Uint64(b[8:]), "in the connection's order")
			next[i]++
			require.NoError(r, post(ep, ev.Cookie))
		}
		for _, c := range clients {
			for k := range uint64(burst) {
				c.done(c.req, k, hw.StatusSuccess)
			}
		}
	}
}
