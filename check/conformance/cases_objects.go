package conformance

import (
	"context"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

var endpointCases = []Case{
	{ID: "EP-0", Claim: "an endpoint made without attributes has the defaults", run: func(r *rig) {
		n := r.node()
		d := n.dispatcher(64)
		ep := n.endpoint(dat.EndpointConfig{PZ: n.pz, Recv: d, Request: d, Conn: d})
		p := query(r, ep.Query, dat.EndpointFieldAll)
		assert.Equal(r, dat.StateUnconnected, p.State)
		limits := n.ia.Attr()
		atLeast(r, p.Attr, dat.EndpointAttr{
			MaxRecvDTOs: 16, MaxRequestDTOs: 16, MaxMessageSize: 1, MaxRDMASize: 1,
			MaxRecvIOV: min(4, limits.MaxRecvSegments), MaxRequestIOV: min(4, limits.MaxSendSegments),
			MaxReadIn: min(4, limits.MaxReadsIn), MaxReadOut: min(4, limits.MaxReadsOut),
		})
		require.NoError(r, ep.Close())
		refuses(r, ep.Query, dat.EndpointFieldAll, code(hw.InvalidHandle, hw.HandleEP))
	}},
	{ID: "EP-1", Claim: "an endpoint in a zone that was freed is INVALID_HANDLE", run: func(r *rig) {
		n := r.node()
		d := n.dispatcher(64)
		pz := n.zone()
		require.NoError(r, pz.Close())
		_, err := n.ia.NewEndpoint(dat.EndpointConfig{PZ: pz, Recv: d, Request: d, Conn: d})
		require.ErrorIs(r, err, code(hw.InvalidHandle, hw.HandlePZ))
		_, err = n.ia.NewEndpoint(dat.EndpointConfig{Recv: d, Request: d, Conn: d})
		require.ErrorIs(r, err, code(hw.InvalidHandle, hw.HandlePZ))
	}},
	{ID: "EP-2", Claim: "an endpoint with a receive posted can be freed, and the receive is flushed", run: func(r *rig) {
		e := r.node().end()
		e.postRecv(7, 64)
		require.NoError(r, e.ep.Close())
		var buf [2]dat.Event
		n, err := e.recv.Dequeue(buf[:])
		require.NoError(r, err)
		require.Equal(r, 1, n)
		assert.Equal(r, dat.StatusFlushed, buf[0].Status)
		assert.EqualValues(r, 7, buf[0].Cookie)
	}},
}

// atLeast requires that an endpoint was given what was asked for, or more.
func atLeast(r *rig, given, asked dat.EndpointAttr) {
	r.Helper()
	numbers := func(a dat.EndpointAttr) []int {
		return []int{
			a.MaxRecvDTOs, a.MaxRequestDTOs, a.MaxRecvIOV, a.MaxRequestIOV, a.MaxReadIn, a.MaxReadOut, int(a.MaxMessageSize), int(a.MaxRDMASize),
		}
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
		_, err := n.pz.Alloc(64, dat.AllPrivileges)
		require.ErrorIs(r, err, code(hw.InvalidHandle, hw.HandlePZ))
	}},
	{ID: "PZ-1", Claim: "a zone with an endpoint in it is in use", run: func(r *rig) {
		n := r.node()
		d, pz := n.dispatcher(64), n.zone()
		ep := n.endpoint(dat.EndpointConfig{PZ: pz, Recv: d, Request: d, Conn: d})
		require.ErrorIs(r, pz.Close(), code(hw.InvalidState, hw.StatePZInUse))
		require.NoError(r, ep.Close())
		require.NoError(r, pz.Close())
	}},
	{ID: "PZ-2", Claim: "a zone with a region in it is in use", run: func(r *rig) {
		n := r.node()
		m := n.lmr(64)
		require.ErrorIs(r, n.pz.Close(), code(hw.InvalidState, hw.StatePZInUse))
		require.NoError(r, m.Free())
		require.NoError(r, n.pz.Close())
	}},
}

var memCases = []Case{
	{ID: "MEM-0", Claim: "1 KiB with all privileges can be registered and freed", run: func(r *rig) {
		n := r.node()
		m, err := n.pz.Register(make([]byte, 1024), dat.AllPrivileges)
		require.NoError(r, err)
		require.NoError(r, m.Free())
		refuses(r, m.Query, dat.LMRFieldAll, code(hw.InvalidHandle, hw.HandleLMR))
	}},
	{ID: "MEM-1", Claim: "the same memory twice gives two regions", run: func(r *rig) {
		n := r.node()
		buf := make([]byte, 1024)
		first := n.register(buf, dat.AllPrivileges)
		second := n.register(buf, dat.AllPrivileges)
		assert.NotEqual(r, first.Context(), second.Context())
		assert.NotEqual(r, first.RemoteContext(), second.RemoteContext())
		require.NoError(r, first.Free())
		query(r, second.Query, dat.LMRFieldAll) // the one lives without the other
	}},
	{ID: "MEM-2", Claim: "a region of no bytes is LENGTH_ERROR", run: func(r *rig) {
		n := r.node()
		_, err := n.pz.Register(nil, dat.AllPrivileges)
		assert.ErrorIs(r, err, dat.ErrLength)
		_, err = n.pz.Register(make([]byte, 0, 64), dat.AllPrivileges)
		assert.ErrorIs(r, err, dat.ErrLength)
		_, err = n.pz.Alloc(0, dat.AllPrivileges)
		assert.ErrorIs(r, err, dat.ErrLength)
	}},
	{ID: "MEM-3", Claim: "a region in no zone is INVALID_HANDLE", run: func(r *rig) {
		var pz *dat.PZ
		_, err := pz.Register(make([]byte, 64), dat.AllPrivileges)
		assert.ErrorIs(r, err, code(hw.InvalidHandle, hw.HandlePZ))
		_, err = pz.Alloc(64, dat.AllPrivileges)
		assert.ErrorIs(r, err, code(hw.InvalidHandle, hw.HandlePZ))
	}},
	{ID: "MEM-4", Claim: "no region can't be queried", run: func(r *rig) {
		var m *dat.LMR
		refuses(r, m.Query, dat.LMRFieldAll, code(hw.InvalidHandle, hw.HandleLMR))
		assert.ErrorIs(r, m.Free(), code(hw.InvalidHandle, hw.HandleLMR))
	}},
}

var connmgtCases = []Case{
	{ID: "CM-0", Claim: "a wait of 10 ms for a request that doesn't come takes 10 ms", run: func(r *rig) { r.expires(r.node().listen().cr, 10*time.Millisecond) }},
	{ID: "CM-1", Claim: "a wait of no time is over at once", run: func(r *rig) { r.expires(r.node().listen().cr, 0) }},
}

// expires waits for limit on a dispatcher to which no event comes.
func (r *rig) expires(d *dat.Dispatcher, limit time.Duration) {
	r.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_, nmore, err := d.Wait(ctx, 1)
	require.ErrorIs(r, err, dat.ErrTimeout)
	assert.Zero(r, nmore)
	assert.GreaterOrEqual(r, time.Since(began), limit)
}

var dormantCases = []Case{
	{ID: "DX-0", Claim: "a send on no endpoint is INVALID_HANDLE", run: func(r *rig) {
		var ep *dat.Endpoint
		assert.ErrorIs(r, ep.PostSend(0, 0), code(hw.InvalidHandle, hw.HandleEP))
		assert.ErrorIs(r, ep.PostRDMAWrite(0, 0, dat.RemoteSegment{}), code(hw.InvalidHandle, hw.HandleEP))
		assert.ErrorIs(r, ep.PostRDMARead(0, 0, dat.RemoteSegment{}), code(hw.InvalidHandle, hw.HandleEP))
	}},
	{ID: "DX-1", Claim: "a wait on no dispatcher is INVALID_HANDLE", run: func(r *rig) {
		var d *dat.Dispatcher
		_, _, err := d.Wait(r.soon(), 1)
		assert.ErrorIs(r, err, dat.ErrInvalidHandle)
		_, err = d.Dequeue(make([]dat.Event, 1))
		assert.ErrorIs(r, err, dat.ErrInvalidHandle)
	}},
	// DX-2 waits 1 s at scale 1, where the C library's suite waits 10 s.
	{ID: "DX-2", Claim: "a wait for completions that don't come expires", run: func(r *rig) {
		e := r.node().end()
		r.expires(e.req, time.Duration(r.p.Scale.of(1000, 20))*time.Millisecond)
	}},
	{ID: "DX-3", Claim: "a receive on no endpoint is INVALID_HANDLE", run: func(r *rig) {
		var ep *dat.Endpoint
		assert.ErrorIs(r, ep.PostRecv(0, 0), code(hw.InvalidHandle, hw.HandleEP))
	}},
	{ID: "DXC-0", Claim: "connect, one send, check", run: func(r *rig) {
		client, server := r.pair()
		server.postRecv(2, 64)
		copy(client.mem.Bytes(), "one send")
		client.postSend(1, 8)
		assert.EqualValues(r, 8, client.done(client.req, 1, dat.StatusSuccess).Length)
		ev := server.done(server.recv, 2, dat.StatusSuccess)
		assert.EqualValues(r, 8, ev.Length)
		assert.Equal(r, dat.OpRecv, ev.Op)
		assert.Equal(r, "one send", string(server.mem.Bytes()[:8]))
	}},
}

// address returns the address of a region's bytes.
func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
