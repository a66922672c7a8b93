package conformance

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

var queryCases = []Case{
	{ID: "Q-0", Claim: "a query of an adapter fills every field", run: func(r *rig) {
		ia := r.open()
		a := ia.Attr()
		for name, v := range map[string]int{
			"MaxQPs": a.MaxQPs, "MaxDepth": a.MaxDepth, "MaxReadsIn": a.MaxReadsIn, "MaxReadsOut": a.MaxReadsOut,
			"MaxSendSegments": a.MaxSendSegments, "MaxRecvSegments": a.MaxRecvSegments, "MaxReadSegments": a.MaxReadSegments,
			"MaxMRs": a.MaxMRs, "MaxZones": a.MaxZones, "MaxPrivate": a.MaxPrivate, "Alignment": a.Alignment,
		} {
			assert.Positive(r, v, name)
		}
		for name, v := range map[string]uint64{"MaxMR": a.MaxMR, "MaxMessage": a.MaxMessage, "MaxRDMA": a.MaxRDMA} {
			assert.Positive(r, v, name)
		}
		for name, v := range map[string]string{"Device": a.Device, "Vendor": a.Vendor, "Address": a.Address, "Provider": a.Provider} {
			assert.NotEmpty(r, v, name)
		}
		assert.Zero(r, a.Alignment&(a.Alignment-1), "a power of two")
		assert.NotNil(r, ia.Async())
	}},
	{ID: "Q-2", Claim: "a query of a dispatcher says what it was made with", run: func(r *rig) {
		d := r.node().dispatcher(17, event.StreamDTO, event.StreamSoftware)
		p := get(r, d.Query)
		assert.GreaterOrEqual(r, p.QLen, 17)
		assert.Equal(r, event.StreamDTO|event.StreamSoftware, p.Streams)
		assert.NotZero(r, p.State)
		assert.Nil(r, p.CNO)
	}},
	{ID: "Q-3", Claim: "a service point says what it was made with", run: func(r *rig) {
		s := r.node().listen()
		assert.NotZero(r, s.psp.Qual())
		assert.Same(r, s.cr, get(r, s.psp.Query).Dispatcher)
		assert.NotNil(r, s.psp.Addr())
	}},
	{ID: "Q-5", Claim: "a query of a connection request has the requester's addresses and private data", run: func(r *rig) {
		client, s := r.node().end(), r.node().listen()
		cr, p := s.askedBy(client, []byte("who asks"))
		assert.Equal(r, s.psp.Qual(), p.Qual)
		assert.Equal(r, "who asks", string(p.Private[:min(8, len(p.Private))]))
		assert.NotNil(r, p.Remote)
		assert.NotNil(r, p.Local)
		assert.False(r, p.Truncated)
		require.NoError(r, cr.Reject(nil))
		client.connection(event.PeerRejected)
		assert.ErrorIs(r, errorOf(cr.Query()), code(hw.InvalidHandle, hw.HandleCR))
	}},
	{ID: "Q-6", Claim: "a query of an endpoint says what it was made with", run: func(r *rig) {
		asked := ep.Attr{
			MaxRecvDTOs: 7, MaxRequestDTOs: 9, MaxRecvIOV: 2, MaxRequestIOV: 3, MaxReadIn: 2, MaxReadOut: 1,
			MaxMessageSize: 8192, MaxRDMASize: 16384, RecvFlags: hw.Unsignalled, RequestFlags: hw.Unsignalled,
		}
		e := r.node().end(func(cfg *ep.Config) { a := asked; cfg.Attr = &a })
		p := get(r, e.ep.Query)
		assert.Equal(r, ep.Unconnected, p.State)
		assert.Same(r, e.node.pz, p.PZ)
		assert.Same(r, e.recv, p.Recv)
		assert.Same(r, e.req, p.Request)
		assert.Same(r, e.conn, p.Conn)
		atLeast(r, p.Attr, asked)
		assert.Equal(r, asked.RecvFlags, p.Attr.RecvFlags)
		assert.Equal(r, asked.RequestFlags, p.Attr.RequestFlags)
	}},
	{ID: "Q-7", Claim: "a query of a zone says whose it is", run: func(r *rig) {
		n := r.node()
		home, err := dat.IAOf(n.pz)
		require.NoError(r, err)
		assert.Same(r, n.ia, home)
	}},
	{ID: "Q-8", Claim: "a query of a region says what it was made with", run: func(r *rig) {
		n := r.node()
		buf := make([]byte, 5000)
		m := n.register(buf, hw.LocalWrite|hw.LocalRead|hw.RemoteRead)
		p := get(r, m.Query)
		assert.Equal(r, mem.LMRParam{Privileges: hw.LocalWrite | hw.LocalRead | hw.RemoteRead}, p)
		assert.Same(r, n.pz, m.PZ())
		assert.Len(r, m.Bytes(), 5000)
		assert.Equal(r, address(buf), address(m.Bytes()))
		assert.Equal(r, mem.Segment{Addr: address(buf), Len: 5000, Context: m.Context()}, m.Segment(0, 5000))
		assert.Equal(r, m.RemoteContext(), m.Remote(0, 5000).Context)
		assert.NotZero(r, m.RemoteContext())
		local := n.region(n.pz, 64, hw.LocalRead)
		assert.Zero(r, local.RemoteContext(), "without a remote privilege there is no context for peers")
	}},
	{ID: "Q-10", Claim: "a query of an adapter says the same as long as it is open", run: func(r *rig) {
		n := r.node()
		first := n.ia.Attr()
		n.end()
		assert.Equal(r, first, n.ia.Attr())
	}},
	{ID: "Q-11", Claim: "a query of no adapter is INVALID_HANDLE", run: func(r *rig) {
		var ia *dat.IA
		assert.ErrorIs(r, errorOf(dat.IAOf(ia)), code(hw.InvalidHandle, hw.HandleIA))
	}},
	{ID: "Q-14", Claim: "a name that is no field is INVALID_PARAMETER for a modify, and changes nothing", run: func(r *rig) {
		e := r.node().end()
		before := get(r, e.ep.Query)
		for _, name := range []string{"", "pz", "Attr.MaxRecvDTOs", "FIELD_PZ_HANDLE"} {
			assert.ErrorIs(r, e.ep.Modify(ep.Param{Conn: e.conn}, "Recv", name), hw.ErrInvalidParameter, name)
		}
		assert.Equal(r, before, get(r, e.ep.Query))
	}},
	{ID: "Q-15", Claim: "a query of a freed object is INVALID_HANDLE", run: func(r *rig) {
		e := r.node().end()
		r.ok(e.ep.Close(), e.mem.Free(), e.conn.Close())
		assert.ErrorIs(r, errorOf(e.conn.Query()), hw.ErrInvalidHandle)
		assert.ErrorIs(r, errorOf(e.mem.Query()), hw.ErrInvalidHandle)
		require.NoError(r, e.node.pz.Close())
		assert.ErrorIs(r, errorOf(dat.IAOf(e.node.pz)), hw.ErrInvalidHandle)
	}},
	{ID: "Q-18", Claim: "a query fills all fields, those that have no meaning with zero", run: func(r *rig) {
		e := r.node().end()
		p := get(r, e.ep.Query)
		assert.NotNil(r, p.LocalAddr, "the adapter's")
		assert.Equal(r, ep.Param{
			State: ep.Unconnected, LocalAddr: p.LocalAddr, PZ: e.node.pz, Recv: e.recv, Request: e.req, Conn: e.conn, Attr: p.Attr,
		}, p)
		m := get(r, e.mem.Query)
		assert.Equal(r, mem.LMRParam{Privileges: m.Privileges}, m)
		d := get(r, e.conn.Query)
		assert.Equal(r, evd.Param{QLen: d.QLen, State: d.State, Streams: event.StreamConnection}, d)
	}},
}
