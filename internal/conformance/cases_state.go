package conformance

import (
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

// stateTable is DAT's table of operations and states, for the states that a
// program can have an endpoint stay in:
//
//	ok    accepted          E    INVALID_STATE with the state's own subtype, and no effect
//	fl    accepted, then FLUSHED     nop  accepted, no effect
//	→XXX  accepted, and the endpoint ends in that state
//	P     INVALID_PARAMETER, and no effect
const stateTable = `
                UNC   RSV   PAS   ACT   TEN   CON   DPN   DIS
query           ok    ok    ok    ok    ok    ok    ok    ok
status          ok    ok    ok    ok    ok    ok    ok    ok
post_recv       ok    ok    ok    ok    ok    ok    ok    fl
post_send       E     E     E     E     E     ok    E     fl
post_rdma_read  E     E     E     E     E     ok    E     fl
post_rdma_write E     E     E     E     E     ok    E     fl
rmr_bind        E     E     E     E     E     ok    E     fl
connect         →ACT  E     E     E     E     E     E     E
dup_connect     →ACT  E     E     E     E     E     E     E
rsp_create      →RSV  E     E     E     E     E     E     E
cr_accept       →CON  E     E     E     E     E     E     E
disc_abrupt     E     E     E     →DIS  E     →DIS  →DIS  nop
disc_graceful   E     E     E     →DIS  E     →DPN  nop   nop
modify_pz       ok    E     E     E     ok    E     E     E
modify_evd      ok    ok    ok    E     ok    E     E     E
modify_attr     ok    ok    ok    E     ok    E     E     E
modify_specific ok    E     E     E     E     E     E     E
modify_state    P     P     P     P     P     P     P     P
reset           nop   E     E     E     E     E     E     →UNC
free            →gone E     E     →gone E     →gone →gone →gone
`

var stateNames = map[string]dat.EndpointState{
	"UNC": dat.StateUnconnected, "RSV": dat.StateReserved, "PAS": dat.StatePassiveConnectionPending,
	"ACT": dat.StateActiveConnectionPending, "TEN": dat.StateTentativeConnectionPending,
	"CMP": dat.StateCompletionPending, "CON": dat.StateConnected, "DPN": dat.StateDisconnectPending,
	"DIS": dat.StateDisconnected,
}

// stateSubtypes are the subtypes of INVALID_STATE, with DAT 2.0's numbers.
var stateSubtypes = map[string]hw.Subtype{
	"UNC": 47, "ACT": 48, "PAS": 49, "TEN": 50, "CON": 51, "DIS": 52, "RSV": 53, "CMP": 54, "DPN": 55,
}

var stateCases = []Case{
	{ID: "ST-1/UNC", Claim: "every operation in UNCONNECTED", run: func(r *rig) { st1(r, "UNC") }},
	{ID: "ST-1/RSV", Claim: "every operation in RESERVED", run: func(r *rig) { st1(r, "RSV") }},
	{ID: "ST-1/PAS", Claim: "every operation in PASSIVE_CONNECTION_PENDING", run: func(r *rig) { st1(r, "PAS") }},
	{ID: "ST-1/TEN", Claim: "every operation in TENTATIVE_CONNECTION_PENDING", run: func(r *rig) { st1(r, "TEN") }},
	{ID: "ST-1/ACT", Claim: "every operation in ACTIVE_CONNECTION_PENDING", run: func(r *rig) { st1(r, "ACT") }},
	{ID: "ST-1/CON", Claim: "every operation in CONNECTED", run: func(r *rig) { st1(r, "CON") }},
	{ID: "ST-1/DPN", Claim: "every operation in DISCONNECT_PENDING", needs: needs(notReadyWait), run: func(r *rig) { st1(r, "DPN") }},
	{ID: "ST-1/DIS", Claim: "every operation in DISCONNECTED", run: func(r *rig) { st1(r, "DIS") }},
	{ID: "ST-3", Claim: "what is posted in DISCONNECTED is flushed, in order, to its dispatcher", run: st3},
	{ID: "ST-5", Claim: "an endpoint that was reset can be connected again", run: st5},
	{ID: "ST-6", Claim: "an endpoint is idle when nothing is outstanding, and not when something is", run: st6},
	{ID: "ST-7", Claim: "a query has the addresses in the states that give them a meaning", run: st7},
	{ID: "ST-8", Claim: "what attributes were asked for is given, or more", run: st8},
	{ID: "ST-9", Claim: "a second disconnect does nothing and has no second event", run: st9},
	{ID: "ST-11", Claim: "nobody listens, no such address, no answer in time: each has its own event", run: st11},
	{ID: "ST-12", Claim: "an attempt that failed leaves DISCONNECTED, and receives flushed", run: st12},
	{ID: "ST-13", Claim: "the marker: when its flush is seen, everything before was seen", run: st13},
	{ID: "ST-14", Claim: "a modify changes what it says, all of it or nothing", run: st14},
	{ID: "ST-16", Claim: "the receives of an endpoint are counted", run: st16},
	{ID: "ST-15", Claim: "a graceful disconnect lets requests complete, an abrupt one flushes them", needs: needs(notReadyWait), run: st15},
}

func st1(r *rig, state string) {
	lines := strings.Split(strings.TrimSpace(stateTable), "\n")
	column := 0
	for i, s := range strings.Fields(lines[0]) {
		if s == state {
			column = 1 + i
		}
	}
	require.Positive(r, column)
	for _, line := range lines[1:] {
		f := strings.Fields(line)
		op, want := f[0], f[column]
		if op == "rmr_bind" && !r.open().Attr().Ops.Has(hw.OpBind) {
			continue
		}
		r.each(op+" "+want, func(r *rig) { cell(r, state, op, want) })
	}
}

const cellCookie = 0xC0FFEE

func cell(r *rig, state, op, want string) {
	e := r.enter(state)
	before, err := e.ep.Status()
	require.NoError(r, err)
	require.Equal(r, stateNames[state], before.State)

	err = e.do(op)
	to, moves := strings.CutPrefix(want, "→")
	switch {
	case want == "E" || want == "P":
		refusal := code(hw.InvalidState, stateSubtypes[state])
		if want == "P" {
			refusal = dat.ErrInvalidParameter
		}
		require.ErrorIs(r, err, refusal)
		after, err := e.ep.Status()
		require.NoError(r, err)
		assert.Equal(r, before, after, "a refused call has no effect")
	case to == "gone":
		require.NoError(r, err)
		_, err = e.ep.Status()
		require.ErrorIs(r, err, dat.ErrInvalidHandle)
	case moves:
		require.NoError(r, err)
		r.until("state "+to, func() bool {
			now := e.ep.State()
			return now == stateNames[to] || to == "DPN" && now == dat.StateDisconnected && !e.waitsForReceives()
		})
	default:
		require.NoError(r, err)
		assert.Equal(r, stateNames[state], e.ep.State())
	}
	if want == "fl" {
		d := e.req
		if op == "post_recv" {
			d = e.recv
		}
		e.done(d, cellCookie, dat.StatusFlushed)
	}
}

// enter makes an endpoint that is in a state and stays there.
func (r *rig) enter(state string) *end {
	r.Helper()
	client := r.node().end()
	switch state {
	case "UNC":
	case "RSV":
		client.reserved()
	case "PAS":
		rsp, s := client.reserved()
		require.NoError(r, r.node().end().ep.Connect(dat.ConnectConfig{Addr: client.addr(), Qual: rsp.Qual()}))
		cr := s.request()
		client.later(func() error { return cr.Reject(nil) })
	case "TEN":
		client.become(client.tentative())
	case "ACT":
		s := r.node().listen()
		require.NoError(r, client.ep.Connect(s.at()))
		s.request() // which is not answered
	case "CON", "DPN", "DIS":
		server := r.node().end()
		r.connect(client, server)
		switch {
		case !client.waitsForReceives():
			require.NoError(r, server.ep.PostRecv(1, 0, server.mem.Segment(0, 64)))
		case state != "DIS":
			// The peer has no receive, so a graceful disconnect has something to
			// wait for.
			require.NoError(r, client.ep.PostSend(1, 0, client.mem.Segment(0, 8)))
		}
		switch state {
		case "DPN":
			require.NoError(r, client.ep.Disconnect(dat.Graceful))
		case "DIS":
			require.NoError(r, client.ep.Disconnect(dat.Abrupt))
			client.connection(dat.Disconnected)
		}
	default:
		r.Fatalf("nothing leads to %s", state)
	}
	return client
}

// tentative is an endpoint that a service point has made for a request, which is
// rejected when the case is over.
func (e *end) tentative() *dat.Endpoint {
	e.Helper()
	s := e.providing()
	require.NoError(e, e.rig.node().end().ep.Connect(s.at()))
	cr := s.request()
	p, err := cr.Query()
	require.NoError(e, err)
	require.NotNil(e, p.Endpoint)
	e.later(func() error { return cr.Reject(nil) })
	return p.Endpoint
}

// become has the end be another endpoint, which gets its zone and dispatchers.
func (e *end) become(ep *dat.Endpoint) {
	e.Helper()
	e.ep = ep
	require.NoError(e, ep.Modify(fieldPZ|fieldRecv|fieldRequest|fieldConn, dat.EndpointParam{
		PZ: e.pz, Recv: e.recv, Request: e.req, Conn: e.conn,
	}))
}

// The fields of an endpoint, with DAT 2.0's numbers.
const (
	fieldState     = 0x2
	fieldPZ        = 0x80
	fieldRecv      = 0x100
	fieldRequest   = 0x200
	fieldConn      = 0x400
	fieldMaxSize   = 0x2000
	fieldTransport = 0x8000000
)

// do makes one call with arguments that are all in order.
func (e *end) do(op string) error {
	seg, remote := e.mem.Segment(0, 64), dat.RemoteSegment{Addr: 4096, Len: 64, Context: 1}
	if e.peer != nil {
		remote = e.peer.mem.Remote(0, 64)
	}
	switch op {
	case "query":
		_, err := e.ep.Query(dat.EndpointFieldAll)
		return err
	case "status":
		_, err := e.ep.Status()
		return err
	case "post_recv":
		return e.ep.PostRecv(cellCookie, 0, seg)
	case "post_send":
		return e.ep.PostSend(cellCookie, 0, seg)
	case "post_rdma_read":
		return e.ep.PostRDMARead(cellCookie, 0, remote, seg)
	case "post_rdma_write":
		return e.ep.PostRDMAWrite(cellCookie, 0, remote, seg)
	case "rmr_bind":
		w := e.window()
		// The bind may wait behind what the endpoint has outstanding.
		e.later(func() error { _ = e.ep.Close(); return nil })
		_, err := e.ep.PostBind(cellCookie, 0, w, dat.Binding{Segment: seg, Privileges: remoteBoth})
		return err
	case "connect":
		return e.ep.Connect(e.listen().at())
	case "dup_connect":
		a, b := e.end(), e.rig.node().end()
		s := b.listen()
		require.NoError(e, a.ep.Connect(s.at()))
		require.NoError(e, s.request().Accept(b.ep, nil))
		a.established()
		return e.ep.DupConnect(a.ep, dat.ConnectConfig{})
	case "rsp_create":
		rsp, err := e.ia.Reserve(dat.RSPConfig{Endpoint: e.ep, Dispatcher: e.dispatcher(4, dat.StreamCR)})
		if err == nil {
			e.later(rsp.Close)
		}
		return err
	case "modify_pz":
		return e.ep.Modify(fieldPZ, dat.EndpointParam{PZ: e.pz})
	case "modify_evd":
		return e.ep.Modify(fieldRecv|fieldRequest|fieldConn, dat.EndpointParam{Recv: e.recv, Request: e.req, Conn: e.conn})
	case "modify_attr":
		return e.ep.Modify(fieldMaxSize, dat.EndpointParam{Attr: dat.EndpointAttr{MaxMessageSize: 100}})
	case "modify_specific":
		return e.ep.Modify(fieldTransport, dat.EndpointParam{Attr: dat.EndpointAttr{ReceiverNotReady: time.Second}})
	case "modify_state":
		return e.ep.Modify(fieldState, dat.EndpointParam{State: dat.StateConnected})
	case "cr_accept":
		peer, s := e.rig.node().end(), e.listen()
		if err := peer.ep.Connect(s.at()); err != nil {
			return err
		}
		return s.request().Accept(e.ep, nil)
	case "disc_abrupt":
		return e.ep.Disconnect(dat.Abrupt)
	case "disc_graceful":
		return e.ep.Disconnect(dat.Graceful)
	case "reset":
		return e.ep.Reset()
	case "free":
		return e.ep.Close()
	}
	e.Fatalf("no such operation: %s", op)
	return nil
}
