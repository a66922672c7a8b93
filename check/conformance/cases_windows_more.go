package conformance

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

var moreWindowCases = []Case{
	{ID: "ME-11", Claim: "a read goes into a window of the reader's, and nowhere else", needs: needs(windows, readToRMR), run: func(r *rig) {
		const size = 16
		w := r.wire()
		copy(w.server.mem.Bytes(), "sixteen bytes 16")
		from := w.server.mem.Remote(0, size)
		rmr := w.client.window()
		sink := w.client.bind(rmr, w.client.mem.Segment(100, size), dat.RemoteWrite)
		require.NoError(r, w.client.ep.PostRDMAReadToRMR(1, 0, sink, from))
		ev := w.client.done(w.client.req, 1, dat.StatusSuccess)
		assert.Equal(r, dat.OpRead, ev.Op)
		assert.EqualValues(r, size, ev.Length)
		assert.Equal(r, "\x00sixteen bytes 16\x00", string(w.client.mem.Bytes()[99:99+size+2]))

		short := sink
		short.Len--
		require.ErrorIs(r, w.client.ep.PostRDMAReadToRMR(1, 0, short, from), dat.ErrLength)

		refused := func(to dat.RemoteSegment, what string) {
			r.Helper()
			require.NoError(r, w.client.ep.PostRDMAReadToRMR(1, 0, to, from), what)
			w.client.done(w.client.req, 1, dat.StatusLocalProtection)
			brokenBoth(w.client, w.server)
			w.again()
		}
		beyond := sink
		beyond.Addr++
		refused(beyond, "a byte beyond the window")
		refused(w.client.bind(w.client.window(), w.client.mem.Segment(0, size), dat.RemoteRead), "a window for reading")
		w.client.bind(rmr, dat.Segment{}, 0)
		refused(sink, "a window that was unbound")

		sink = w.client.bind(rmr, w.client.mem.Segment(100, size), dat.RemoteWrite)
		for _, set := range w.client.privilegeSets() {
			source := w.server.region(w.server.pz, size, set).Remote(0, size)
			require.NoError(r, w.client.ep.PostRDMAReadToRMR(1, 0, sink, source), "%v", set)
			if set&dat.RemoteRead != 0 {
				w.client.done(w.client.req, 1, dat.StatusSuccess)
				continue
			}
			w.client.done(w.client.req, 1, dat.StatusRemoteAccess)
			brokenBoth(w.client, w.server)
			w.again()
		}
	}},
	{ID: "ME-12", Claim: "the addresses of a zero-based window count from its first byte", needs: needs(windows, zeroBased), run: func(r *rig) {
		const at, size = 100, 16
		w := r.wire()
		rmr := w.server.window()
		remote, err := w.server.ep.PostBind(1, 0, rmr, dat.Binding{
			Segment: w.server.mem.Segment(at, size), Privileges: remoteBoth, ZeroBased: true,
		})
		require.NoError(r, err)
		w.server.done(w.server.req, 1, dat.StatusSuccess)
		assert.Zero(r, remote.Addr)
		p := query(r, rmr.Query, dat.RMRFieldAll)
		assert.True(r, p.ZeroBased)

		copy(w.client.mem.Bytes(), "12345678")
		remote.Addr = size - 8
		w.remote("post_rdma_write", remote, true, "the last bytes")
		say(w.client, w.server, 0)
		assert.Equal(r, "12345678\x00", string(w.server.mem.Bytes()[at+size-8:at+size+1]))
		remote.Addr++
		w.remote("post_rdma_write", remote, false, "a byte beyond")
		remote.Addr = address(w.server.mem.Bytes()) + at
		w.remote("post_rdma_write", remote, false, "as if it were not zero-based")
	}},
	{ID: "ME-13", Claim: "a window of one endpoint is bound by that one and reached by its peer", needs: needs(windows), run: func(r *rig) {
		w := r.wire()
		rmr, err := w.server.ep.NewRMR()
		require.NoError(r, err)
		w.server.later(rmr.Free)
		p := query(r, rmr.Query, dat.RMRFieldAll)
		assert.Equal(r, dat.RMRScopeEP, p.Scope)
		assert.Same(r, w.server.pz, p.PZ)

		client, other := r.node().end(), w.server.node.end()
		r.connect(client, other)
		_, err = other.ep.PostBind(1, 0, rmr, dat.Binding{Segment: other.mem.Segment(0, 64), Privileges: remoteBoth})
		assert.ErrorIs(r, err, dat.ErrProtection, "another endpoint's window")
		at := w.server.bind(rmr, w.server.mem.Segment(0, 64), remoteBoth)
		w.remote("post_rdma_write", at, true, "from its peer")
		at.Len = 8
		require.NoError(r, client.ep.PostRDMARead(1, 0, at, client.mem.Segment(0, 8)))
		client.done(client.req, 1, dat.StatusRemoteAccess)
	}},
}

// readToRMR: the provider has reads into windows.
var readToRMR = &capability{"read-to-rmr", func(r *rig) bool {
	client, server := r.pair()
	err := client.ep.PostRDMAReadToRMR(1, 0, client.mem.Remote(0, 8), server.mem.Remote(0, 8))
	return r.granted(err)
}}

// zeroBased: the provider has windows whose addresses count from zero.
var zeroBased = &capability{"zero-based", func(r *rig) bool {
	client, _ := r.pair()
	p, err := client.ia.Query(dat.IAFieldAll, 0)
	require.NoError(r, err)
	w := client.window()
	_, err = client.ep.PostBind(1, 0, w, dat.Binding{Segment: client.mem.Segment(8, 64), Privileges: remoteBoth, ZeroBased: true})
	if err == nil {
		client.done(client.req, 1, dat.StatusSuccess)
	}
	has := r.granted(err)
	require.Equal(r, has, p.IA.ZeroBased, "the adapter says so")
	return has
}}
