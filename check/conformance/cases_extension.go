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

var extensionCases = []Case{
	{ID: "EXT-1", Claim: "RDMA writes with immediate data, both ways at once", needs: needs(immediate), run: func(r *rig) {
		client, server := r.pair()
		const size = 4096
		post := func(from, to *end, imm uint32, fill byte) {
			for i := range size {
				from.mem.Bytes()[i] = fill
			}
			require.NoError(r, from.ep.PostRDMAWriteImmediate(0x9999, 0, imm, to.mem.Remote(size, size), from.mem.Segment(0, size)))
		}
		for _, e := range []*end{client, server} {
			require.NoError(r, e.ep.PostRecv(5, 0))
		}
		post(client, server, 0x7777, 0xC1)
		post(server, client, 0x1111, 0x5E)
		check := func(e *end, imm uint32, fill byte) {
			sent := e.done(e.req, 0x9999, hw.StatusSuccess)
			assert.Equal(r, event.IBDTOEvent, sent.Number)
			assert.Equal(r, hw.OpWriteImm, sent.Op)
			got := e.done(e.recv, 5, hw.StatusSuccess)
			assert.Equal(r, event.IBDTOEvent, got.Number)
			assert.Equal(r, hw.OpRecvImm, got.Op)
			data, ok := got.Immediate()
			assert.True(r, ok)
			assert.Equal(r, imm, data)
			assert.EqualValues(r, size, got.Length)
			for i := range size {
				require.Equal(r, fill, e.mem.Bytes()[size+i])
			}
		}
		check(server, 0x7777, 0xC1)
		check(client, 0x1111, 0x5E)
	}},
	{ID: "EXT-2", Claim: "a compare-and-swap that doesn't match changes nothing and returns what is there", needs: needs(atomics), run: func(r *rig) {
		a := r.atom(0xBAD)
		require.NoError(r, a.client.ep.PostCompareSwap(1, 0, 0x12345, 0x98765, a.at, a.client.mem.Segment(0, 8)))
		a.returns(hw.OpCompareSwap, 0xBAD, 0xBAD)
	}},
	{ID: "EXT-3", Claim: "a compare-and-swap that matches swaps and returns what was there", needs: needs(atomics), run: func(r *rig) {
		a := r.atom(0x12345)
		require.NoError(r, a.client.ep.PostCompareSwap(1, 0, 0x12345, 0x98765, a.at, a.client.mem.Segment(0, 8)))
		a.returns(hw.OpCompareSwap, 0x12345, 0x98765)
	}},
	{ID: "EXT-4", Claim: "fetch-and-adds add up, and each returns what was there before", needs: needs(atomics), run: func(r *rig) {
		for _, add := range []uint64{0x10, 0x100} {
			a := r.atom(0)
			for i := range uint64(3) {
				require.NoError(r, a.client.ep.PostFetchAdd(1, 0, add, a.at, a.client.mem.Segment(0, 8)))
				a.returns(hw.OpFetchAdd, i*add, (i+1)*add)
			}
		}
	}},
	{ID: "EXT-6", Claim: "an atomic without its privilege is REMOTE_ACCESS", needs: needs(atomics), run: func(r *rig) {
		for _, priv := range []hw.Privileges{hw.AllPrivileges, hw.LocalRead | hw.RemoteRead} {
			client, server := r.pair()
			m := server.node.region(server.node.pz, 64, priv)
			require.NoError(r, client.ep.PostFetchAdd(1, 0, 1, m.Remote(0, 8), client.mem.Segment(0, 8)))
			client.done(client.req, 1, hw.StatusRemoteAccess)
			client.connection(event.Broken)
			assert.Zero(r, binary.NativeEndian.Uint64(m.Bytes()))
		}
	}},
	{ID: "EXT-7", Claim: "a send with invalidate tells the receiver which context is gone", needs: needs(sendInvalidate), run: func(r *rig) {
		client, server := r.pair()
		m := server.node.region(server.node.pz, 64, hw.AllPrivileges)
		gone := m.RemoteContext()
		server.postRecv(2, 64)
		require.NoError(r, client.ep.PostSendInvalidate(1, 0, gone, client.mem.Segment(0, 8)))
		ev := client.rig.next(client.req)
		if ev.Status != hw.StatusSuccess { // the device may be unable to invalidate a region's context, though it can a window's
			client.connection(event.Broken)
			return
		}
		assert.Equal(r, hw.OpSend, ev.Op)
		if !server.node.ia.Attr().Ops.Has(hw.OpRecvInvalidate) { // the server's device may be unable to invalidate, and its event does not report it
			got := server.rig.next(server.recv)
			_, ok := got.InvalidatedContext()
			assert.False(r, ok)
			if got.Status != hw.StatusSuccess {
				client.connection(event.Broken)
			}
			return
		}
		got := server.done(server.recv, 2, hw.StatusSuccess)
		context, ok := got.InvalidatedContext()
		assert.Equal(r, hw.OpRecvInvalidate, got.Op)
		assert.True(r, ok)
		assert.Equal(r, gone, context)
	}},
	{ID: "EXT-8", Claim: "an endpoint of datagrams, which no provider has, is refused", run: func(r *rig) {
		n := r.node()
		attr := &ep.Attr{ServiceType: ep.ReliableConnection + 1}
		_, err := n.ia.NewEndpoint(ep.Config{PZ: n.pz, Attr: attr})
		require.False(r, r.granted(err))
		require.False(r, r.granted(n.end().ep.Modify(ep.Param{Attr: *attr}, "ServiceType")), "nor is one made of another")
	}},
	{ID: "EXT-9", Claim: "an adapter's attributes say which extensions it has: those succeed, and others are refused", run: func(r *rig) {
		client, server := r.pair()
		server.postRecv(2, 64)
		for _, op := range []string{"fetch_and_add", "cmp_and_swap", "write_immed"} {
			granted := r.granted(client.post(op, 1, 0))
			require.Equal(r, !client.lacks(op), granted, op)
			if granted {
				assert.Equal(r, operations[op].called, client.done(client.req, 1, hw.StatusSuccess).Op, "%s arrives", op)
			}
		}
		assert.Equal(r, client.lacks("fetch_and_add"), client.lacks("cmp_and_swap"), "DAT has both atomics in one extension")
	}},
	// EXT-10 checks the counters of both sides of two connections, one of which breaks.
	{ID: "EXT-10", Claim: "adapters and endpoints count what happens on them", run: func(r *rig) {
		client, server := r.pair()
		for range 3 {
			say(client, server, 64)
		}
		client.disconnect(ep.Graceful)
		server.connection(event.Disconnected)
		c := get(r, client.ep.Counters)
		assert.Equal(r, ep.EndpointCounters{Connects: 1, Disconnects: 1, Requests: 3}, c)
		c = get(r, server.ep.Counters)
		assert.Equal(r, ep.EndpointCounters{Connects: 1, Disconnects: 1, Receives: 3}, c)

		d := get(r, server.recv.Counters)
		assert.EqualValues(r, 3, d.Events)
		assert.EqualValues(r, 3, d.Taken)
		assert.Zero(r, d.Lost)

		s := server.node.listen()
		other := client.node.end()
		require.NoError(r, other.ep.Connect(s.at()))
		require.NoError(r, s.request().Reject(nil))
		other.connection(event.PeerRejected)
		a := get(r, client.node.ia.Counters)
		assert.Equal(r, ep.Counters{
			Endpoints: 2, Connects: 2, ActiveEstablished: 1, PeerRejected: 1, Disconnected: 1,
		}, a.Counters)
		a = get(r, server.node.ia.Counters)
		assert.Equal(r, ep.Counters{
			Endpoints: 1, ServicePoints: 2, ServicePointsFreed: 1, Requests: 2, Accepted: 1, Rejected: 1, PassiveEstablished: 1, Disconnected: 1,
		}, a.Counters)
		require.NoError(r, server.ep.Close())
		assert.ErrorIs(r, errorOf(server.ep.Counters()), hw.ErrInvalidHandle)
		require.NoError(r, server.node.ia.Close())
		assert.ErrorIs(r, errorOf(server.node.ia.Counters()), hw.ErrInvalidHandle)
	}},
}

// atomics, immediate and sendInvalidate are operations that not all devices have.
var (
	atomics = &capability{"atomics", func(r *rig) bool {
		client, server := r.pair()
		at, into := server.mem.Remote(0, 8), client.mem.Segment(0, 8)
		swaps := r.granted(client.ep.PostCompareSwap(1, 0, 1, 1, at, into))
		adds := r.granted(client.ep.PostFetchAdd(1, 0, 1, at, into))
		require.Equal(r, swaps, adds)
		return adds
	}}
	immediate = &capability{"immediate", func(r *rig) bool {
		client, server := r.pair()
		require.NoError(r, server.ep.PostRecv(1, 0))
		return r.granted(client.ep.PostRDMAWriteImmediate(1, 0, 1, server.mem.Remote(0, 8), client.mem.Segment(0, 8)))
	}}
	sendInvalidate = &capability{"send-invalidate", func(r *rig) bool {
		client, _ := r.pair()
		return r.granted(client.ep.PostSendInvalidate(1, 0, 42, client.mem.Segment(0, 8)))
	}}
)

// atom is a connection, and 8 bytes of the server's memory that atomics may change.
type atom struct {
	client *end
	word   []byte
	at     mem.RemoteSegment
}

func (r *rig) atom(start uint64) *atom {
	client, server := r.pair()
	m := server.node.region(server.node.pz, 64, hw.LocalRead|hw.LocalWrite|hw.RemoteAtomic)
	a := &atom{client, m.Bytes()[:8], m.Remote(0, 8)}
	binary.NativeEndian.PutUint64(a.word, start)
	return a
}

// returns waits for the completion of the atomic that was posted, and checks the
// value that it returned and the value that it left.
func (a *atom) returns(op hw.Op, old, now uint64) {
	c := a.client
	ev := c.done(c.req, 1, hw.StatusSuccess)
	assert.Equal(c.rig, op, ev.Op)
	assert.Equal(c.rig, event.IBDTOEvent, ev.Number)
	assert.EqualValues(c.rig, 8, ev.Length)
	assert.Equal(c.rig, old, binary.NativeEndian.Uint64(c.mem.Bytes()))
	assert.Equal(c.rig, now, binary.NativeEndian.Uint64(a.word))
}
