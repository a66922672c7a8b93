package conformance

import (
	"context"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

var hwconnCases = []Case{
	{ID: "HW-0", Claim: "an adapter opened without an asynchronous dispatcher has one of its own, and closes", run: func(r *rig) {
		ia := r.open()
		require.NotNil(r, ia.Async())
		r.none(ia.Async())
		require.NoError(r, ia.CloseGraceful())
	}},
	{ID: "HW-1", Claim: "a name that is not registered is PROVIDER_NOT_FOUND", run: func(r *rig) {
		for _, name := range []string{"40", "x", "xsdf", "x34", "34df"} {
			assert.ErrorIs(r, errorOf(dat.Open(context.Background(), name)), hw.ErrProviderNotFound, name)
		}
	}},
	{ID: "HW-2", Claim: "closing no adapter is INVALID_HANDLE", run: func(r *rig) {
		var ia *dat.IA
		assert.ErrorIs(r, ia.CloseGraceful(), code(hw.InvalidHandle, hw.HandleIA))
		assert.ErrorIs(r, ia.Close(), code(hw.InvalidHandle, hw.HandleIA))
	}},
	{ID: "HW-3", Claim: "an abrupt close takes along what lives on the adapter", run: func(r *rig) {
		a, b := r.pair()
		b.postRecv(1, 64)
		require.NoError(r, b.node.ia.Close())
		assert.ErrorIs(r, b.ep.PostSend(1, 0, b.mem.Segment(0, 0)), hw.ErrInvalidHandle)
		ev := a.rig.next(a.conn)
		assert.Contains(r, []event.Number{event.Disconnected, event.Broken}, ev.Number, "the peer's connection ends")
	}},
	{ID: "HW-4", Claim: "a graceful close with something alive is refused and harmless", run: func(r *rig) {
		n := r.node()
		e := n.end()
		require.ErrorIs(r, n.ia.CloseGraceful(), code(hw.InvalidState, hw.StateIAInUse))
		require.NoError(r, e.ep.PostRecv(1, 0, e.mem.Segment(0, 64)), "the adapter is usable still")
		r.connect(r.node().end(), e)
	}},
	{ID: "HW-5", Claim: "an adapter that was closed is INVALID_HANDLE", run: func(r *rig) {
		ia := r.open()
		require.NoError(r, ia.CloseGraceful())
		assert.ErrorIs(r, ia.CloseGraceful(), code(hw.InvalidHandle, hw.HandleIA))
		assert.NoError(r, ia.Close(), "an abrupt close of what is closed does nothing")
		assert.ErrorIs(r, errorOf(ia.NewPZ()), code(hw.InvalidHandle, hw.HandleIA))
		assert.ErrorIs(r, errorOf(dat.IAOf(ia)), code(hw.InvalidHandle, hw.HandleIA))
	}},
	{ID: "HW-6", Claim: "an abrupt close takes CNOs, windows and shared receive queues along", needs: needs(windows, sharedReceives), run: func(r *rig) {
		n := r.node()
		c, q, w := n.cno(), n.srq(0, 0), n.window()
		require.NoError(r, q.PostRecv(1, n.lmr(64).Segment(0, 64)))
		require.NoError(r, n.ia.Close())
		assert.ErrorIs(r, errorOf(c.Query()), code(hw.InvalidHandle, hw.HandleCNO))
		assert.ErrorIs(r, errorOf(q.Query()), code(hw.InvalidHandle, hw.HandleSRQ))
		assert.ErrorIs(r, errorOf(w.Query()), code(hw.InvalidHandle, hw.HandleRMR))
	}},
	{ID: "HW-8", Claim: "another version of the API is PROVIDER_NOT_FOUND", run: func(r *rig) {
		require.ErrorIs(r, errorOf(dat.Open(context.Background(), r.p.IA, r.p.options(dat.WithVersion(3, 0))...)), code(hw.ProviderNotFound, hw.MajorNotFound))
	}},
}

var endpointCases = []Case{
	{ID: "EP-0", Claim: "an endpoint made without attributes has the defaults", run: func(r *rig) {
		n := r.node()
		d := n.dispatcher(64)
		itsEP := n.endpoint(ep.Config{PZ: n.pz, Recv: d, Request: d, Conn: d})
		p := get(r, itsEP.Query)
		assert.Equal(r, ep.Unconnected, p.State)
		limits := n.ia.Attr()
		atLeast(r, p.Attr, ep.Attr{
			MaxRecvDTOs: 16, MaxRequestDTOs: 16, MaxMessageSize: 1, MaxRDMASize: 1,
			MaxRecvIOV: min(4, limits.MaxRecvSegments), MaxRequestIOV: min(4, limits.MaxSendSegments),
			MaxReadIn: min(4, limits.MaxReadsIn), MaxReadOut: min(4, limits.MaxReadsOut),
		})
		require.NoError(r, itsEP.Close())
		assert.ErrorIs(r, errorOf(itsEP.Query()), code(hw.InvalidHandle, hw.HandleEP))
	}},
	{ID: "EP-1", Claim: "an endpoint in a zone that was freed is INVALID_HANDLE", run: func(r *rig) {
		n := r.node()
		d := n.dispatcher(64)
		pz := n.zone()
		require.NoError(r, pz.Close())
		require.ErrorIs(r, errorOf(n.ia.NewEndpoint(ep.Config{PZ: pz, Recv: d, Request: d, Conn: d})), code(hw.InvalidHandle, hw.HandlePZ))
		require.ErrorIs(r, errorOf(n.ia.NewEndpoint(ep.Config{Recv: d, Request: d, Conn: d})), code(hw.InvalidHandle, hw.HandlePZ))
	}},
	{ID: "EP-2", Claim: "an endpoint with a receive posted can be freed, and the receive is flushed", run: func(r *rig) {
		e := r.node().end()
		e.postRecv(7, 64)
		require.NoError(r, e.ep.Close())
		ev := r.only(e.recv)
		assert.Equal(r, hw.StatusFlushed, ev.Status)
		assert.EqualValues(r, 7, ev.Cookie)
	}},
}

// atLeast requires that an endpoint was given what was asked for, or more.
func atLeast(r *rig, given, asked ep.Attr) {
	numbers := func(a ep.Attr) []uint64 {
		n := []uint64{a.MaxMessageSize, a.MaxRDMASize}
		for _, depth := range []int{a.MaxRecvDTOs, a.MaxRequestDTOs, a.MaxRecvIOV, a.MaxRequestIOV, a.MaxReadIn, a.MaxReadOut} {
			n = append(n, uint64(depth))
		}
		return n
	}
	want := numbers(asked)
	for i, n := range numbers(given) {
		assert.GreaterOrEqual(r, n, want[i], "%+v was asked for, and %+v given", asked, given)
	}
}

var pzCases = []Case{
	{ID: "PZ-0", Claim: "a zone can be made and freed", run: func(r *rig) {
		n := r.node()
		require.NoError(r, n.pz.Close())
		require.ErrorIs(r, errorOf(n.pz.Alloc(64, hw.AllPrivileges)), code(hw.InvalidHandle, hw.HandlePZ))
	}},
	{ID: "PZ-1", Claim: "a zone with an endpoint in it is in use", run: func(r *rig) {
		n := r.node()
		d, pz := n.dispatcher(64), n.zone()
		ep := n.endpoint(ep.Config{PZ: pz, Recv: d, Request: d, Conn: d})
		require.ErrorIs(r, pz.Close(), code(hw.InvalidState, hw.StatePZInUse))
		r.ok(ep.Close(), pz.Close())
	}},
	{ID: "PZ-2", Claim: "a zone with a region in it is in use", run: func(r *rig) {
		n := r.node()
		m := n.lmr(64)
		require.ErrorIs(r, n.pz.Close(), code(hw.InvalidState, hw.StatePZInUse))
		r.ok(m.Free(), n.pz.Close())
	}},
}

var memCases = []Case{
	{ID: "MEM-0", Claim: "1 KiB with all privileges can be registered and freed", run: func(r *rig) {
		n := r.node()
		m, err := n.pz.Register(make([]byte, 1024), hw.AllPrivileges)
		require.NoError(r, err)
		require.NoError(r, m.Free())
		assert.ErrorIs(r, errorOf(m.Query()), code(hw.InvalidHandle, hw.HandleLMR))
	}},
	{ID: "MEM-1", Claim: "the same memory twice gives two regions", run: func(r *rig) {
		n := r.node()
		buf := make([]byte, 1024)
		first := n.register(buf, hw.AllPrivileges)
		second := n.register(buf, hw.AllPrivileges)
		assert.NotEqual(r, first.Context(), second.Context())
		assert.NotEqual(r, first.RemoteContext(), second.RemoteContext())
		require.NoError(r, first.Free())
		get(r, second.Query) // the one lives without the other
	}},
	{ID: "MEM-2", Claim: "a region of no bytes is LENGTH_ERROR", run: func(r *rig) {
		n := r.node()
		assert.ErrorIs(r, errorOf(n.pz.Register(nil, hw.AllPrivileges)), hw.ErrLength)
		assert.ErrorIs(r, errorOf(n.pz.Register(make([]byte, 0, 64), hw.AllPrivileges)), hw.ErrLength)
		assert.ErrorIs(r, errorOf(n.pz.Alloc(0, hw.AllPrivileges)), hw.ErrLength)
	}},
	{ID: "MEM-3", Claim: "a region in no zone is INVALID_HANDLE", run: func(r *rig) {
		var pz *mem.PZ
		assert.ErrorIs(r, errorOf(pz.Register(make([]byte, 64), hw.AllPrivileges)), code(hw.InvalidHandle, hw.HandlePZ))
		assert.ErrorIs(r, errorOf(pz.Alloc(64, hw.AllPrivileges)), code(hw.InvalidHandle, hw.HandlePZ))
	}},
	{ID: "MEM-4", Claim: "no region can't be queried", run: func(r *rig) {
		var m *mem.LMR
		assert.ErrorIs(r, errorOf(m.Query()), code(hw.InvalidHandle, hw.HandleLMR))
		assert.ErrorIs(r, m.Free(), code(hw.InvalidHandle, hw.HandleLMR))
	}},
}

var connmgtCases = []Case{
	{ID: "CM-0", Claim: "a wait of 10 ms for a request that doesn't come takes 10 ms", run: func(r *rig) { r.expires(r.node().listen().cr, 10*time.Millisecond) }},
	{ID: "CM-1", Claim: "a wait of no time is over at once", run: func(r *rig) { r.expires(r.node().listen().cr, 0) }},
}

// expires waits for limit on a dispatcher to which no event comes.
func (r *rig) expires(d *evd.Dispatcher, limit time.Duration) {
	began := time.Now()
	nmore, err := waitFor(d, 1, limit)
	require.ErrorIs(r, err, hw.ErrTimeout)
	assert.Zero(r, nmore)
	assert.GreaterOrEqual(r, time.Since(began), limit)
}

// waitFor waits at most limit for events that do not come.
func waitFor(d *evd.Dispatcher, threshold int, limit time.Duration) (nmore int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_, nmore, err = d.Wait(ctx, threshold)
	return nmore, err
}

var dormantCases = []Case{
	{ID: "DX-0", Claim: "a send on no endpoint is INVALID_HANDLE", run: func(r *rig) {
		var ep *ep.Endpoint
		assert.ErrorIs(r, ep.PostSend(0, 0), code(hw.InvalidHandle, hw.HandleEP))
		assert.ErrorIs(r, ep.PostRDMAWrite(0, 0, mem.RemoteSegment{}), code(hw.InvalidHandle, hw.HandleEP))
		assert.ErrorIs(r, ep.PostRDMARead(0, 0, mem.RemoteSegment{}), code(hw.InvalidHandle, hw.HandleEP))
	}},
	{ID: "DX-1", Claim: "a wait on no dispatcher is INVALID_HANDLE", run: func(r *rig) {
		var d *evd.Dispatcher
		assert.ErrorIs(r, errorOf(d.Wait(r.soon(), 1)), hw.ErrInvalidHandle)
		assert.ErrorIs(r, errorOf(d.Dequeue(make([]event.Event, 1))), hw.ErrInvalidHandle)
	}},
	// DX-2 waits 1 s at scale 1, where the C library's suite waits 10 s.
	{ID: "DX-2", Claim: "a wait for completions that don't come expires", run: func(r *rig) {
		e := r.node().end()
		r.expires(e.req, time.Duration(r.p.Scale.of(1000, 20))*time.Millisecond)
	}},
	{ID: "DX-3", Claim: "a receive on no endpoint is INVALID_HANDLE", run: func(r *rig) {
		var ep *ep.Endpoint
		assert.ErrorIs(r, ep.PostRecv(0, 0), code(hw.InvalidHandle, hw.HandleEP))
	}},
	{ID: "DXC-0", Claim: "connect, one send, check", run: func(r *rig) {
		client, server := r.pair()
		server.postRecv(2, 64)
		copy(client.mem.Bytes(), "one send")
		client.postSend(1, 8)
		assert.EqualValues(r, 8, client.done(client.req, 1, hw.StatusSuccess).Length)
		ev := server.done(server.recv, 2, hw.StatusSuccess)
		assert.EqualValues(r, 8, ev.Length)
		assert.Equal(r, hw.OpRecv, ev.Op)
		assert.Equal(r, "one send", string(server.mem.Bytes()[:8]))
	}},
}

// address returns the address of a region's bytes.
func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
