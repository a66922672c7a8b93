package conformance

import (
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/fault"
	dat "godat/runtime"
)

// stateTable is DAT's table of operations and states:
//
//	ok    accepted          E    INVALID_STATE with the state's own subtype, and no effect
//	fl    accepted, then FLUSHED     nop  accepted, no effect
//	→XXX  accepted, and the endpoint ends in that state
//	P     INVALID_PARAMETER, and no effect
//	S     INVALID_STATE with the subtype SRQ_IN_USE, and no effect
//	-     there is no such thing
//
// A provider that lacks an operation says MODEL_NOT_SUPPORTED in all states.
const stateTable = `
                UNC   RSV   PAS   ACT   TEN   CMP   CON   DPN   DIS
query           ok    ok    ok    ok    ok    ok    ok    ok    ok
status          ok    ok    ok    ok    ok    ok    ok    ok    ok
recv_query      ok    ok    ok    ok    ok    ok    ok    ok    ok
set_watermark   ok    ok    ok    ok    ok    ok    ok    ok    ok
post_recv       ok    ok    ok    ok    ok    ok    ok    ok    fl
post_recv_srq   S     S     S     S     -     S     S     S     S
post_send       E     E     E     E     E     E     ok    E     fl
send_invalidate E     E     E     E     E     E     ok    E     fl
post_rdma_read  E     E     E     E     E     E     ok    E     fl
read_to_rmr     E     E     E     E     E     E     ok    E     fl
post_rdma_write E     E     E     E     E     E     ok    E     fl
write_immed     E     E     E     E     E     E     ok    E     fl
cmp_and_swap    E     E     E     E     E     E     ok    E     fl
fetch_and_add   E     E     E     E     E     E     ok    E     fl
rmr_bind        E     E     E     E     E     E     ok    E     fl
rmr_unbind      E     E     E     E     E     E     ok    E     fl
connect         →ACT  E     E     E     E     E     E     E     E
common_connect  →ACT  E     E     E     E     E     E     E     E
dup_connect     →ACT  E     E     E     E     E     E     E     E
dup_source      E     E     E     E     E     E     ok    E     E
rsp_create      →RSV  E     E     E     E     E     E     E     E
cr_accept       →CON  E     E     E     E     E     E     E     E
cr_accept_own   -     -     →CON  -     →CON  -     -     -     -
disc_abrupt     E     E     E     →DIS  E     →DIS  →DIS  →DIS  nop
disc_graceful   E     E     E     →DIS  E     →DIS  →DPN  nop   nop
modify_pz       ok    E     E     E     ok    E     E     E     E
modify_evd      ok    ok    ok    E     ok    E     E     E     E
modify_service  ok    ok    ok    E     ok    E     E     E     E
modify_size     ok    ok    ok    E     ok    E     E     E     E
modify_qos      ok    ok    ok    E     ok    E     E     E     E
modify_flags    ok    ok    ok    E     ok    E     E     E     E
modify_max      ok    ok    ok    E     ok    E     E     E     E
modify_watermrk ok    ok    ok    E     ok    E     E     E     E
modify_transprt ok    E     E     E     E     E     E     E     E
modify_provider ok    E     E     E     E     E     E     E     E
modify_ia       P     P     P     P     P     P     P     P     P
modify_state    P     P     P     P     P     P     P     P     P
modify_path     P     P     P     P     P     P     P     P     P
modify_address  P     P     P     P     P     P     P     P     P
modify_qual     P     P     P     P     P     P     P     P     P
modify_peer     P     P     P     P     P     P     P     P     P
modify_peerqual P     P     P     P     P     P     P     P     P
modify_srq      P     P     P     P     P     P     P     P     P
reset           nop   E     E     E     E     E     E     E     →UNC
free            →gone E     E     →gone E     →gone →gone →gone →gone
`

var stateNames = map[string]ep.State{
	"UNC": ep.Unconnected, "RSV": ep.Reserved, "PAS": ep.PassiveConnectionPending,
	"ACT": ep.ActiveConnectionPending, "TEN": ep.TentativeConnectionPending,
	"CMP": ep.CompletionPending, "CON": ep.Connected, "DPN": ep.DisconnectPending,
	"DIS": ep.Disconnected,
}

// stateSubtypes are the subtypes of INVALID_STATE by state, with DAT 2.0's numbers.
var stateSubtypes = map[string]hw.Subtype{
	"UNC": 47, "ACT": 48, "PAS": 49, "TEN": 50, "CON": 51, "DIS": 52, "RSV": 53, "CMP": 54, "DPN": 55,
}

var stateCases = []Case{
	{ID: "ST-1/UNC", Claim: "every operation in UNCONNECTED", run: func(r *rig) { st1(r, "UNC") }},
	{ID: "ST-1/RSV", Claim: "every operation in RESERVED", run: func(r *rig) { st1(r, "RSV") }},
	{ID: "ST-1/PAS", Claim: "every operation in PASSIVE_CONNECTION_PENDING", run: func(r *rig) { st1(r, "PAS") }},
	{ID: "ST-1/TEN", Claim: "every operation in TENTATIVE_CONNECTION_PENDING", run: func(r *rig) { st1(r, "TEN") }},
	{ID: "ST-1/ACT", Claim: "every operation in ACTIVE_CONNECTION_PENDING", run: func(r *rig) { st1(r, "ACT") }},
	{ID: "ST-1/CMP", Claim: "every operation in COMPLETION_PENDING", run: func(r *rig) { st1(r, "CMP") }},
	{ID: "ST-1/CON", Claim: "every operation in CONNECTED", run: func(r *rig) { st1(r, "CON") }},
	{ID: "ST-1/DPN", Claim: "every operation in DISCONNECT_PENDING", needs: needs(notReadyWait), run: func(r *rig) { st1(r, "DPN") }},
	{ID: "ST-1/DIS", Claim: "every operation in DISCONNECTED", run: func(r *rig) { st1(r, "DIS") }},
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
		if op, want := f[0], f[column]; want != "-" && !r.managed("ST-1/"+state+"/"+op) {
			r.each(op+" "+want, func(r *rig) { cell(r, state, op, want) })
		}
	}
}

const cellCookie = 0xC0FFEE

func cell(r *rig, state, op, want string) {
	e := r.enter(state, op)
	if _, posts := operations[op]; posts && e.lacks(op) {
		require.False(r, r.granted(e.do(op)), "the device lacks it")
		return
	}
	before := get(r, e.ep.Status)
	require.Equal(r, stateNames[state], before.State)

	err := e.do(op)
	to, moves := strings.CutPrefix(want, "→")
	switch {
	case want == "E" || want == "P" || want == "S":
		refusal := map[string]error{
			"E": code(hw.InvalidState, stateSubtypes[state]), "P": hw.ErrInvalidParameter, "S": code(hw.InvalidState, 87),
		}
		require.ErrorIs(r, err, refusal[want])
		after := get(r, e.ep.Status)
		assert.Equal(r, before, after, "a refused call has no effect")
	case to == "gone":
		require.NoError(r, err)
		require.ErrorIs(r, errorOf(e.ep.Status()), hw.ErrInvalidHandle)
	case moves:
		require.NoError(r, err)
		r.until("state "+to, func() bool {
			now := e.ep.State()
			return now == stateNames[to] || to == "DPN" && now == ep.Disconnected && !e.node.waitsForReceives()
		})
	case op == "send_invalidate" && e.lacks("rmr_bind"):
		require.NoError(r, err) // the connection breaks if the peer has nothing to invalidate
	default:
		require.NoError(r, err)
		assert.Equal(r, stateNames[state], e.ep.State())
	}
	if want == "fl" {
		e.flush(op)
	}
}

// flush waits for the flush of the post, at the dispatcher of its direction and
// with the event number of its kind.
func (e *end) flush(op string) {
	d := e.req
	if op == "post_recv" {
		d = e.recv
	}
	ev := e.done(d, cellCookie, hw.StatusFlushed)
	called := operations[op].called
	require.Equal(e.rig, called, ev.Op)
	number := event.DTOCompletion
	switch {
	case called == hw.OpBind:
		number = event.BindCompletion
	case called > hw.OpInvalidate:
		number = event.IBDTOEvent
	}
	require.Equal(e.rig, number, ev.Number)
}

// enter makes an endpoint that is in a state and stays in it. op, if given, is the
// operation that follows; some need an endpoint of a special kind.
func (r *rig) enter(state string, op ...string) *end {
	var opts []dat.Option
	var unaware *fault.Provider
	if state == "CMP" {
		// The endpoint is not told that its peer has received the acceptance.
		unaware = fault.Wrap(r.p.provider(), fault.Config{On: fault.Triggers{fault.LoseEstablished: {Nth: 1}}})
		opts = append(opts, dat.WithProvider(unaware))
	}
	n := r.node(opts...)
	var change []func(*ep.Config)
	if len(op) > 0 && op[0] == "post_recv_srq" {
		change = append(change, from(n.srq(0, 0)))
	}
	e := n.end(change...)
	switch state {
	case "UNC":
	case "RSV":
		e.reserved()
	case "PAS":
		rsp, s := e.reserved()
		require.NoError(r, r.node().end().ep.Connect(ep.ConnectConfig{Addr: e.node.addr(), Qual: rsp.Qual()}))
		e.cr = s.request()
	case "TEN":
		e.become(e.tentative())
	case "ACT":
		s := r.node().listen()
		require.NoError(r, e.ep.Connect(s.at()))
		s.request() // the request is not answered
	case "CMP":
		client, s := r.node().end(), e.node.listen()
		require.NoError(r, client.ep.Connect(s.at()))
		require.NoError(r, s.request().Accept(e.ep, nil))
		client.established()
		require.Eventually(r, func() bool { return unaware.Fired(fault.LoseEstablished) == 1 }, patience, time.Millisecond,
			"the fault is for this connection, not for the next")
		e.peer = client
	case "CON", "DPN", "DIS":
		server := r.node().end()
		r.connect(e, server)
		switch {
		case !e.node.waitsForReceives():
			server.postRecv(1, 64)
		case state != "DIS":
			// The peer has no receive, so a graceful disconnect has something to
			// wait for.
			e.postSend(1, 8)
		}
		switch state {
		case "DPN":
			require.NoError(r, e.ep.Disconnect(ep.Graceful))
		case "DIS":
			e.disconnect(ep.Abrupt)
		}
	default:
		r.Fatalf("nothing leads to %s", state)
	}
	return e
}

// tentative returns an endpoint that a service point has made for a request.
func (e *end) tentative() *ep.Endpoint {
	cr, p := e.node.providing().askedBy(e.rig.node().end(), nil)
	require.NotNil(e.rig, p.Endpoint)
	e.cr = cr
	return p.Endpoint
}

// become replaces the end's endpoint by ep, sets ep's zone and dispatchers, and
// closes ep when the case is over.
func (e *end) become(endpoint *ep.Endpoint) {
	e.ep = endpoint
	e.rig.later(func() error {
		if endpoint.State() == ep.TentativeConnectionPending {
			return nil // the endpoint is closed with its request
		}
		return endpoint.Close()
	})
	require.NoError(e.rig, endpoint.Modify(ep.Param{
		PZ: e.node.pz, Recv: e.recv, Request: e.req, Conn: e.conn,
	}, "PZ", "Recv", "Request", "Conn"))
}
