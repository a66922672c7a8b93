package conformance

import (
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

var windowCases = []Case{
	{ID: "Q-9", Claim: "a query of a window says what it is bound to", needs: needs(windows), run: func(r *rig) {
		w := r.wire()
		rmr := w.server.node.window()
		p := get(r, rmr.Query)
		assert.Same(r, w.server.node.pz, rmr.PZ())
		assert.Zero(r, p.Segment, "it is bound to nothing")
		assert.Zero(r, p.Privileges)
		remote := w.server.bind(rmr, w.server.mem.Segment(8, 64), hw.RemoteRead)
		p = get(r, rmr.Query)
		assert.Equal(r, w.server.mem.Segment(8, 64), p.Segment)
		assert.Equal(r, hw.RemoteRead, p.Privileges)
		assert.Equal(r, remote.Context, p.RemoteContext)
		require.NoError(r, rmr.Free())
		assert.ErrorIs(r, errorOf(rmr.Query()), code(hw.InvalidHandle, hw.HandleRMR))
	}},
	{ID: "PZ-3", Claim: "a zone with a window or a shared receive queue in it is in use", needs: needs(windows, sharedReceives), run: func(r *rig) {
		n := r.node()
		w := n.window()
		require.ErrorIs(r, n.pz.Close(), code(hw.InvalidState, hw.StatePZInUse))
		require.NoError(r, w.Free())
		q := n.srq(0, 0)
		require.ErrorIs(r, n.pz.Close(), code(hw.InvalidState, hw.StatePZInUse))
		require.ErrorIs(r, n.ia.CloseGraceful(), code(hw.InvalidState, hw.StateIAInUse))
		r.ok(q.Close(), n.pz.Close())
	}},
	{ID: "ME-1", Claim: "a window is bound, written through, bound anew, unbound and freed", needs: needs(windows), run: func(r *rig) {
		w := r.wire()
		rmr := w.server.node.window()
		first := w.server.bind(rmr, w.server.mem.Segment(0, 64), remoteBoth)
		copy(w.client.mem.Bytes(), "through!")
		w.client.completes(1, w.client.ep.PostRDMAWrite(1, 0, first, w.client.mem.Segment(0, 8)))
		say(w.client, w.server, 0)
		assert.Equal(r, "through!", string(w.server.mem.Bytes()[:8]))

		second := w.server.bind(rmr, w.server.mem.Segment(64, 64), remoteBoth)
		w.remote("post_rdma_read", second, true, "the new name")
		w.remote("post_rdma_read", first, false, "the old name")

		third := w.server.bind(rmr, w.server.mem.Segment(128, 64), hw.RemoteRead)
		w.remote("post_rdma_read", third, true, "for reading")
		w.remote("post_rdma_write", third, false, "not for writing")

		fourth := w.server.bind(rmr, w.server.mem.Segment(0, 64), remoteBoth)
		beyond := fourth
		beyond.Addr += 57
		w.remote("post_rdma_write", beyond, false, "beyond the window, within the region")

		fifth := w.server.bind(rmr, w.server.mem.Segment(0, 64), remoteBoth)
		w.server.bind(rmr, mem.Segment{}, 0)
		w.remote("post_rdma_read", fifth, false, "after the unbind")

		sixth := w.server.bind(rmr, w.server.mem.Segment(0, 64), remoteBoth)
		require.NoError(r, rmr.Free(), "bound or not")
		w.remote("post_rdma_read", sixth, false, "after the free")
	}},
	{ID: "ME-2", Claim: "a bind needs the region's privilege for each it gives", needs: needs(windows), run: func(r *rig) {
		w := r.wire()
		for _, c := range []struct {
			region, gives hw.Privileges
			ok            bool
		}{
			{hw.LocalRead, hw.RemoteRead, true},
			{hw.LocalWrite, hw.RemoteRead, false},
			{hw.LocalWrite, hw.RemoteWrite, true},
			{hw.LocalRead, hw.RemoteWrite, false},
			{hw.LocalRead, remoteBoth, false},
			{hw.LocalRead | hw.LocalWrite, remoteBoth, true},
		} {
			what := fmt.Sprintf("%v of %v", c.gives, c.region)
			m, rmr := w.server.node.region(w.server.node.pz, 64, c.region), w.server.node.window()
			_, err := w.server.ep.PostBind(1, 0, rmr, mem.Binding{Segment: m.Segment(0, 64), Privileges: c.gives})
			if !c.ok {
				require.ErrorIs(r, err, hw.ErrPrivileges, what)
				continue
			}
			require.NoError(r, err, what)
			w.server.done(w.server.req, 1, hw.StatusSuccess)
			require.NoError(r, rmr.Free())
		}
	}},
	{ID: "ME-3", Claim: "a bind beyond the region or of another zone is refused", needs: needs(windows), run: func(r *rig) {
		w := r.wire()
		rmr, m := w.server.node.window(), w.server.node.lmr(64)
		bind := func(seg mem.Segment) error {
			_, err := w.server.ep.PostBind(1, 0, rmr, mem.Binding{Segment: seg, Privileges: remoteBoth})
			return err
		}
		for _, at := range []int{-1, 1} {
			seg := m.Segment(0, 64)
			seg.Addr += uint64(at)
			assert.ErrorIs(r, bind(seg), hw.ErrInvalidParameter, "%d bytes off", at)
		}
		other := w.server.node.region(w.server.node.zone(), 64, hw.AllPrivileges)
		assert.ErrorIs(r, bind(other.Segment(0, 64)), hw.ErrProtection)
		foreign, err := w.server.node.zone().NewRMR()
		w.server.rig.made(err, foreign.Free)
		assert.ErrorIs(r, errorOf(w.server.ep.PostBind(1, 0, foreign, mem.Binding{Segment: m.Segment(0, 64), Privileges: remoteBoth})), hw.ErrProtection)
		r.none(w.server.req)
	}},
	{ID: "ME-4", Claim: "a region that a window is bound to can't be freed", needs: needs(windows), run: func(r *rig) {
		w := r.wire()
		rmr, m := w.server.node.window(), w.server.node.lmr(64)
		w.server.bind(rmr, m.Segment(0, 64), remoteBoth)
		require.ErrorIs(r, m.Free(), code(hw.InvalidState, hw.StateLMRInUse))
		require.NoError(r, errorOf(m.Query()), "it is there still")
		w.server.bind(rmr, mem.Segment{}, 0)
		require.NoError(r, m.Free())
	}},
	{ID: "ME-5", Claim: "an invalidated window is out of reach, and the receiver is told", needs: needs(windows, sendInvalidate), run: func(r *rig) {
		w := r.wire()
		rmr, err := w.server.ep.NewRMR()
		w.server.rig.made(err, rmr.Free)
		at := w.server.bind(rmr, w.server.mem.Segment(0, 64), remoteBoth)
		w.remote("post_rdma_write", at, true, "before")
		require.NoError(r, w.server.ep.PostRecv(2, 0, w.server.mem.Segment(128, 64)))
		assert.Equal(r, hw.OpSend, w.client.completes(1, w.client.ep.PostSendInvalidate(1, 0, at.Context, w.client.mem.Segment(0, 8))).Op)
		got := w.server.done(w.server.recv, 2, hw.StatusSuccess)
		assert.Equal(r, hw.OpRecvInvalidate, got.Op)
		context, ok := got.InvalidatedContext()
		assert.True(r, ok)
		assert.Equal(r, at.Context, context)
		w.remote("post_rdma_write", at, false, "after")
	}},
	{ID: "ME-6", Claim: "the same memory is shared by regions of one id", run: func(r *rig) {
		n := r.node()
		id := mem.SharedID{1, 2, 3}
		buf := make([]byte, 4096)
		first, err := n.pz.RegisterShared(id, buf, hw.AllPrivileges)
		n.rig.made(err, first.Free)
		// Another adapter of the same process finds the memory by its id.
		other := r.node()
		second, err := other.pz.RegisterShared(id, nil, hw.AllPrivileges)
		other.rig.made(err, second.Free)
		assert.Equal(r, address(buf), address(second.Bytes()))
		assert.ErrorIs(r, errorOf(other.pz.RegisterShared(id, make([]byte, 64), hw.AllPrivileges)), hw.ErrInvalidParameter, "other memory")
		assert.Error(r, errorOf(other.pz.RegisterShared(mem.SharedID{9}, nil, hw.AllPrivileges)), "no region has that id")
		require.NoError(r, first.Free())
		second.Bytes()[0] = 1
	}},
	{ID: "ME-7", Claim: "the sync calls check their segments", run: func(r *rig) {
		n := r.node()
		m, other := n.lmr(64), n.region(n.zone(), 64, hw.AllPrivileges)
		outside := m.Segment(0, 64)
		outside.Addr++
		freed := n.lmr(64)
		gone := freed.Segment(0, 64)
		require.NoError(r, freed.Free())
		for _, sync := range []func(...mem.Segment) error{n.ia.SyncRDMARead, n.ia.SyncRDMAWrite} {
			assert.NoError(r, sync())
			assert.NoError(r, sync(m.Segment(0, 64), other.Segment(8, 8)), "of several zones")
			assert.ErrorIs(r, sync(m.Segment(0, 64), outside), hw.ErrInvalidParameter)
			assert.ErrorIs(r, sync(gone), hw.ErrInvalidHandle)
		}
	}},
	{ID: "ME-9", Claim: "a region of a region is the same memory with privileges of its own", run: func(r *rig) {
		w := r.wire()
		all := w.server.node.lmr(64)
		reads, err := w.server.node.pz.RegisterLMR(all, hw.LocalRead|hw.RemoteRead)
		w.server.rig.made(err, reads.Free)
		assert.Equal(r, address(all.Bytes()), address(reads.Bytes()))
		assert.NotEqual(r, all.Context(), reads.Context())
		w.remote("post_rdma_read", reads.Remote(0, 8), true, "read")
		w.remote("post_rdma_write", reads.Remote(0, 8), false, "write")
		require.NoError(r, all.Free())
		reads.Bytes()[0] = 7
		w.remote("post_rdma_read", reads.Remote(0, 8), true, "the memory lives on")
		assert.EqualValues(r, 7, w.client.mem.Bytes()[0])
		assert.ErrorIs(r, errorOf(w.server.node.pz.RegisterLMR(all, hw.LocalRead)), code(hw.InvalidHandle, hw.HandleLMR))
	}},
}

// windows: the provider has memory windows (RMR).
var windows = &capability{"windows", func(r *rig) bool {
	w, err := r.node().pz.NewRMR()
	return r.granted(err, w.Free)
}}

func (n *node) window() *mem.RMR {
	w, err := n.pz.NewRMR()
	n.rig.made(err, w.Free)
	return w
}

const remoteBoth = hw.RemoteRead | hw.RemoteWrite

// bind binds a window of the end to a segment, and waits until it is bound.
func (e *end) bind(w *mem.RMR, seg mem.Segment, priv hw.Privileges) mem.RemoteSegment {
	remote, err := e.ep.PostBind(77, 0, w, mem.Binding{Segment: seg, Privileges: priv})
	require.NoError(e.rig, err)
	ev := e.done(e.req, 77, hw.StatusSuccess)
	require.Equal(e.rig, event.BindCompletion, ev.Number)
	return remote
}

var moreWindowCases = []Case{
	{ID: "ME-11", Claim: "a read goes into a window of the reader's, and nowhere else", needs: needs(windows, readToRMR), run: func(r *rig) {
		const size = 16
		w := r.wire()
		copy(w.server.mem.Bytes(), "sixteen bytes 16")
		from := w.server.mem.Remote(0, size)
		rmr := w.client.node.window()
		sink := w.client.bind(rmr, w.client.mem.Segment(100, size), hw.RemoteWrite)
		ev := w.client.completes(1, w.client.ep.PostRDMAReadToRMR(1, 0, sink, from))
		assert.Equal(r, hw.OpRead, ev.Op)
		assert.EqualValues(r, size, ev.Length)
		assert.Equal(r, "\x00sixteen bytes 16\x00", string(w.client.mem.Bytes()[99:99+size+2]))

		short := sink
		short.Len--
		require.ErrorIs(r, w.client.ep.PostRDMAReadToRMR(1, 0, short, from), hw.ErrLength)

		refused := func(to mem.RemoteSegment, what string) {
			require.NoError(r, w.client.ep.PostRDMAReadToRMR(1, 0, to, from), what)
			w.client.done(w.client.req, 1, hw.StatusLocalProtection)
			brokenBoth(w.client, w.server)
			w.reconnect()
		}
		beyond := sink
		beyond.Addr++
		refused(beyond, "a byte beyond the window")
		refused(w.client.bind(w.client.node.window(), w.client.mem.Segment(0, size), hw.RemoteRead), "a window for reading")
		w.client.bind(rmr, mem.Segment{}, 0)
		refused(sink, "a window that was unbound")

		sink = w.client.bind(rmr, w.client.mem.Segment(100, size), hw.RemoteWrite)
		for _, set := range w.client.node.privilegeSets() {
			source := w.server.node.region(w.server.node.pz, size, set).Remote(0, size)
			require.NoError(r, w.client.ep.PostRDMAReadToRMR(1, 0, sink, source), "%v", set)
			if set&hw.RemoteRead != 0 {
				w.client.done(w.client.req, 1, hw.StatusSuccess)
				continue
			}
			w.client.done(w.client.req, 1, hw.StatusRemoteAccess)
			brokenBoth(w.client, w.server)
			w.reconnect()
		}
	}},
	{ID: "ME-12", Claim: "the addresses of a zero-based window count from its first byte", needs: needs(windows, zeroBased), run: func(r *rig) {
		const at, size = 100, 16
		w := r.wire()
		rmr := w.server.node.window()
		remote, err := w.server.ep.PostBind(1, 0, rmr, mem.Binding{
			Segment: w.server.mem.Segment(at, size), Privileges: remoteBoth, ZeroBased: true,
		})
		require.NoError(r, err)
		w.server.done(w.server.req, 1, hw.StatusSuccess)
		assert.Zero(r, remote.Addr)
		p := get(r, rmr.Query)
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
		w.server.rig.made(err, rmr.Free)
		p := get(r, rmr.Query)
		assert.Equal(r, mem.RMRScopeEP, p.Scope)
		assert.Same(r, w.server.node.pz, rmr.PZ())

		client, other := r.node().end(), w.server.node.end()
		r.connect(client, other)
		assert.ErrorIs(r, errorOf(other.ep.PostBind(1, 0, rmr, mem.Binding{Segment: other.mem.Segment(0, 64), Privileges: remoteBoth})), hw.ErrProtection, "another endpoint's window")
		at := w.server.bind(rmr, w.server.mem.Segment(0, 64), remoteBoth)
		w.remote("post_rdma_write", at, true, "from its peer")
		at.Len = 8
		require.NoError(r, client.ep.PostRDMARead(1, 0, at, client.mem.Segment(0, 8)))
		client.done(client.req, 1, hw.StatusRemoteAccess)
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
	w := client.node.window()
	_, err := client.ep.PostBind(1, 0, w, mem.Binding{Segment: client.mem.Segment(8, 64), Privileges: remoteBoth, ZeroBased: true})
	if err == nil {
		client.done(client.req, 1, hw.StatusSuccess)
	}
	has := r.granted(err)
	require.Equal(r, has, client.node.ia.Attr().ZeroBased, "the adapter says so")
	return has
}}
