package conformance

import (
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

var protectionCases = []Case{
	{ID: "DTO-10", Claim: "each operation needs its privilege on each side, and no other", run: func(r *rig) {
		for _, row := range privilegeTable {
			r.each(row.op+" "+row.side, func(r *rig) {
				w := r.wire()
				if !w.can(row.op) {
					return
				}
				for _, set := range w.client.node.privilegeSets() {
					what := fmt.Sprintf("%v", set)
					if row.side == "local" {
						w.local(row.op, w.client.node.region(w.client.node.pz, 64, set), set&row.need != 0, hw.ErrPrivileges, what)
					} else {
						w.remote(row.op, w.server.node.region(w.server.node.pz, 64, set).Remote(0, 8), set&row.need != 0, what)
					}
				}
			})
		}
		r.each("send_invalidate local", func(r *rig) {
			if sendInvalidate.has(r) && windows.has(r) {
				dto10Invalidate(r)
			}
		})
		r.each("srq_post_recv local", dto10Shared)
	}},
	{ID: "DTO-11", Claim: "memory of another zone is out of reach, local and remote", run: func(r *rig) {
		w := r.wire()
		mine := w.client.node.region(w.client.node.zone(), 64, hw.AllPrivileges)
		for _, op := range localOps {
			w.local(op, mine, false, hw.ErrProtection, op)
		}
		theirs := w.server.node.region(w.server.node.zone(), 64, hw.AllPrivileges)
		for _, op := range remoteOps {
			w.remote(op, theirs.Remote(0, 8), false, op)
		}
	}},
	{ID: "DTO-12", Claim: "a byte outside the region is out of reach, local and remote", run: func(r *rig) {
		w := r.wire()
		const size = 4096
		m := w.client.node.lmr(size)
		theirs := w.server.node.lmr(size)
		for at, works := range map[int]bool{-1: false, 0: true, size - 8: true, size - 7: false} {
			what := fmt.Sprintf("at %d", at)
			for _, op := range localOps {
				seg := m.Segment(0, 8)
				seg.Addr += uint64(at)
				w.segment(op, seg, works, hw.ErrProtection, op+" "+what)
			}
			for _, op := range remoteOps {
				remote := theirs.Remote(0, 8)
				remote.Addr += uint64(at)
				w.remote(op, remote, works, op+" "+what)
			}
		}
		seg := m.Segment(0, 8)
		seg.Addr = ^uint64(0) - 3 // the segment ends beyond the address space
		w.segment("post_send", seg, false, hw.ErrProtection, "around the end")
	}},
	{ID: "DTO-13", Claim: "a region that was freed is out of reach, local and remote", run: func(r *rig) {
		w := r.wire()
		m, theirs := w.client.node.lmr(64), w.server.node.lmr(64)
		seg, remote := m.Segment(0, 8), theirs.Remote(0, 8)
		r.ok(m.Free(), theirs.Free())
		for _, op := range localOps {
			w.segment(op, seg, false, hw.ErrInvalidHandle, op)
		}
		for _, op := range remoteOps {
			w.remote(op, remote, false, op)
		}
	}},
	{ID: "DTO-20", Claim: "a receive whose region was freed meanwhile is LOCAL_PROTECTION", run: func(r *rig) {
		client, server := r.pair()
		m := server.node.lmr(64)
		require.NoError(r, server.ep.PostRecv(1, 0, m.Segment(0, 64)))
		require.NoError(r, m.Free())
		client.postSend(2, 64)
		server.done(server.recv, 1, hw.StatusLocalProtection)
		server.connection(event.Broken)
	}},
	{ID: "ME-8", Claim: "what is registered covers what was asked for", run: func(r *rig) {
		n := r.node()
		buf := make([]byte, 10000)
		for _, at := range []struct{ off, len int }{{0, 1}, {1, 1}, {4095, 2}, {100, 9000}} {
			b := buf[at.off : at.off+at.len]
			m, err := n.pz.Register(b, hw.AllPrivileges)
			require.NoError(r, err)
			assert.Equal(r, mem.Segment{Addr: address(b), Len: uint32(at.len), Context: m.Context()}, m.Segment(0, at.len))
			require.NoError(r, m.Free())
		}
	}},
	{ID: "ME-10", Claim: "regions of the same memory have their own privileges each", run: func(r *rig) {
		w := r.wire()
		buf := make([]byte, 4096)
		register := func(n *node, priv hw.Privileges) *mem.LMR {
			m := n.register(buf, priv)
			return m
		}
		readable := register(w.server.node, hw.LocalRead|hw.RemoteRead)
		writable := register(w.server.node, hw.LocalWrite|hw.RemoteWrite)
		w.remote("post_rdma_read", readable.Remote(0, 8), true, "read")
		w.remote("post_rdma_write", writable.Remote(0, 8), true, "write")
		w.remote("post_rdma_read", writable.Remote(0, 8), false, "read of what is for writing")
		w.remote("post_rdma_write", readable.Remote(0, 8), false, "write to what is for reading")
	}},
}

// privilegeTable says which privilege an operation needs of the memory on each
// side.
var privilegeTable = []struct {
	op, side string
	need     hw.Privileges
}{
	{"post_recv", "local", hw.LocalWrite},
	{"post_send", "local", hw.LocalRead},
	{"post_rdma_read", "local", hw.LocalWrite},
	{"post_rdma_read", "remote", hw.RemoteRead},
	{"post_rdma_write", "local", hw.LocalRead},
	{"post_rdma_write", "remote", hw.RemoteWrite},
	{"write_immed", "local", hw.LocalRead},
	{"write_immed", "remote", hw.RemoteWrite},
	{"cmp_and_swap", "local", hw.LocalWrite},
	{"cmp_and_swap", "remote", hw.RemoteAtomic},
	{"fetch_and_add", "local", hw.LocalWrite},
	{"fetch_and_add", "remote", hw.RemoteAtomic},
}

// privilegeSets returns the sets to try: none, all, each privilege alone, and all
// but one.
func (n *node) privilegeSets() []hw.Privileges {
	all := n.allPrivileges()
	sets := []hw.Privileges{hw.NoPrivileges, all}
	for _, p := range []hw.Privileges{hw.LocalRead, hw.RemoteRead, hw.LocalWrite, hw.RemoteWrite, hw.RemoteAtomic} {
		if all&p != 0 {
			sets = append(sets, p, all&^p)
		}
	}
	return sets
}

// dto10Invalidate is dto10 for the memory of a send that invalidates.
func dto10Invalidate(r *rig) {
	w := r.wire()
	for _, set := range w.client.node.privilegeSets() {
		m := w.client.node.region(w.client.node.pz, 64, set).Segment(0, 8)
		if set&hw.LocalRead == 0 {
			require.ErrorIs(r, w.client.ep.PostSendInvalidate(1, 0, 42, m), hw.ErrPrivileges, "%v", set)
			continue
		}
		w.server.postRecv(2, 8)
		require.NoError(r, w.client.ep.PostSendInvalidate(1, 0, w.client.invalidatable(), m), "%v", set)
		w.client.done(w.client.req, 1, hw.StatusSuccess)
		w.server.done(w.server.recv, 2, hw.StatusSuccess)
	}
}

// dto10Shared is dto10 for receives of a shared queue.
func dto10Shared(r *rig) {
	n := r.node()
	q := n.srq(0, 0)
	for _, set := range n.privilegeSets() {
		m := n.region(n.pz, 64, set).Segment(0, 8)
		if set&hw.LocalWrite == 0 {
			require.ErrorIs(r, q.PostRecv(1, m), hw.ErrPrivileges, "%v", set)
		} else {
			require.NoError(r, q.PostRecv(1, m), "%v", set)
		}
	}
}

// wire is a connection that is made again after it broke.
type wire struct {
	rig            *rig
	client, server *end
}

func (r *rig) wire() *wire {
	w := &wire{rig: r, client: r.node().end(), server: r.node().end()}
	r.connect(w.client, w.server)
	return w
}

// reconnect makes the connection again.
func (w *wire) reconnect() {
	for _, e := range []*end{w.client, w.server} {
		w.rig.until("the end", func() bool { return e.ep.State() == ep.Disconnected })
		require.NoError(w.rig, e.ep.Reset())
		for _, d := range []*evd.Dispatcher{e.conn, e.recv, e.req} {
			w.rig.queued(d)
		}
	}
	w.rig.connect(w.client, w.server)
}

// post posts an operation of 8 bytes at the client.
func (w *wire) post(op string, local mem.Segment, remote mem.RemoteSegment) error {
	return postOn(w.client.ep, op, 1, 0, local, remote)
}

// allowing returns memory of the server that allows everything.
func (w *wire) allowing() mem.RemoteSegment {
	return w.server.node.region(w.server.node.pz, 64, w.server.node.allPrivileges()).Remote(0, 8)
}

// can reports whether the device supports an operation.
func (w *wire) can(op string) bool {
	if op == "post_recv" {
		return true
	}
	if w.consumes(op) {
		require.NoError(w.rig, w.server.ep.PostRecv(2, 0, w.server.mem.Segment(0, 8)))
	}
	if err := w.post(op, w.client.mem.Segment(0, 8), w.allowing()); err != nil {
		return w.rig.granted(err)
	}
	w.client.done(w.client.req, 1, hw.StatusSuccess)
	return true
}

// consumes reports whether an operation consumes a receive of the peer.
func (w *wire) consumes(op string) bool { return op == "post_send" || op == "write_immed" }

// local posts an operation on a local segment. It must succeed, or be refused at
// once.
func (w *wire) local(op string, m *mem.LMR, works bool, why error, what string) {
	w.segment(op, m.Segment(0, 8), works, why, what)
}

func (w *wire) segment(op string, seg mem.Segment, works bool, why error, what string) {
	if works && w.consumes(op) {
		require.NoError(w.rig, w.server.ep.PostRecv(2, 0, w.server.mem.Segment(0, 8)))
	}
	err := w.post(op, seg, w.allowing())
	if !works {
		require.ErrorIs(w.rig, err, why, what)
		st := get(w.rig, w.client.ep.Status)
		require.Equal(w.rig, ep.Status{State: ep.Connected, RecvIdle: true, RequestIdle: true}, st, what)
		return
	}
	require.NoError(w.rig, err, what)
	if op == "post_recv" {
		require.NoError(w.rig, w.server.ep.PostSend(3, 0, w.server.mem.Segment(0, 8)))
		w.client.done(w.client.recv, 1, hw.StatusSuccess)
		w.server.done(w.server.req, 3, hw.StatusSuccess)
		return
	}
	w.client.done(w.client.req, 1, hw.StatusSuccess)
}

// remote posts an operation on remote memory. It must succeed, or complete with
// REMOTE_ACCESS and break both sides.
func (w *wire) remote(op string, remote mem.RemoteSegment, works bool, what string) {
	remote.Len = 8
	if w.consumes(op) {
		require.NoError(w.rig, w.server.ep.PostRecv(2, 0, w.server.mem.Segment(0, 8)))
	}
	require.NoError(w.rig, w.post(op, w.client.mem.Segment(0, 8), remote), what)
	ev := w.client.rig.next(w.client.req)
	if works {
		require.Equal(w.rig, hw.StatusSuccess, ev.Status, what)
		return
	}
	if op == "post_rdma_read" && w.rig.differs(LaxReads) {
		if ev.Status == hw.StatusSuccess {
			return
		}
		require.Equal(w.rig, hw.StatusFlushed, ev.Status, what)
		brokenBoth(w.client, w.server)
		w.reconnect()
		return
	}
	switch writes := ev.Op == hw.OpWrite || ev.Op == hw.OpWriteImm; {
	case writes && w.rig.differs(EarlyCompletion) && ev.Status == hw.StatusSuccess: // it had left before the peer refused it
	case writes && w.rig.differs(FailsHere) && ev.Status == hw.StatusLocalEP: // the refusal came while the device sent it
	default:
		require.Equal(w.rig, hw.StatusRemoteAccess, ev.Status, what)
	}
	brokenBoth(w.client, w.server)
	w.reconnect()
}

// localOps and remoteOps are the operations that every device has.
var (
	localOps  = []string{"post_recv", "post_send", "post_rdma_read", "post_rdma_write"}
	remoteOps = []string{"post_rdma_read", "post_rdma_write"}
)
