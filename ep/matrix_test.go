package ep

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// matrix is DAT's operation × state table, as its specification has it:
//
//	ok    accepted          E    INVALID_STATE, with the state's own subtype, and no effect
//	fl    accepted, then FLUSHED     nop  accepted, no effect
//	P     INVALID_PARAMETER, and no effect
//	→XXX  accepted, and the endpoint ends in that state
//
// It is typed from the specification and shares nothing with the code's tables.
const matrix = `
                UNC   RSV   PAS   ACT   TEN   CMP   CON   DPN   DIS
query           ok    ok    ok    ok    ok    ok    ok    ok    ok
status          ok    ok    ok    ok    ok    ok    ok    ok    ok
recv_query      ok    ok    ok    ok    ok    ok    ok    ok    ok
set_watermark   ok    ok    ok    ok    ok    ok    ok    ok    ok
post_recv       ok    ok    ok    ok    ok    ok    ok    ok    fl
post_send       E     E     E     E     E     E     ok    E     fl
post_rdma_read  E     E     E     E     E     E     ok    E     fl
post_rdma_write E     E     E     E     E     E     ok    E     fl
post_send_inv   E     E     E     E     E     E     ok    E     fl
read_to_rmr     E     E     E     E     E     E     ok    E     fl
rmr_bind        E     E     E     E     E     E     ok    E     fl
rmr_unbind      E     E     E     E     E     E     ok    E     fl
write_immed     E     E     E     E     E     E     ok    E     fl
fetch_add       E     E     E     E     E     E     ok    E     fl
cmp_swap        E     E     E     E     E     E     ok    E     fl
connect         →ACT  E     E     E     E     E     E     E     E
dup_connect     →ACT  E     E     E     E     E     E     E     E
dup_of          E     E     E     E     E     E     ok    E     E
common_connect  →ACT  E     E     E     E     E     E     E     E
rsp_create      →RSV  E     E     E     E     E     E     E     E
cr_accept       →CON  E     E     E     E     E     E     E     E
disc_abrupt     E     E     E     →DIS  E     →DIS  →DIS  →DIS  nop
disc_graceful   E     E     E     →DIS  E     →DIS  →DPN  nop   nop
modify_pz       ok    E     E     E     ok    E     E     E     E
modify_evds     ok    ok    ok    E     ok    E     E     E     E
modify_attr     ok    ok    ok    E     ok    E     E     E     E
modify_transprt ok    E     E     E     E     E     E     E     E
modify_provider ok    E     E     E     E     E     E     E     E
modify_ia       P     P     P     P     P     P     P     P     P
modify_state    P     P     P     P     P     P     P     P     P
modify_comm     P     P     P     P     P     P     P     P     P
modify_laddr    P     P     P     P     P     P     P     P     P
modify_lqual    P     P     P     P     P     P     P     P     P
modify_raddr    P     P     P     P     P     P     P     P     P
modify_rqual    P     P     P     P     P     P     P     P     P
modify_srq      P     P     P     P     P     P     P     P     P
reset           nop   E     E     E     E     E     E     E     →UNC
free            →gone E     E     →gone E     →gone →gone →gone →gone
`

var stateNames = map[string]State{
	"UNC": Unconnected, "RSV": Reserved, "PAS": PassiveConnectionPending, "ACT": ActiveConnectionPending,
	"TEN": TentativeConnectionPending, "CMP": CompletionPending, "CON": Connected, "DPN": DisconnectPending,
	"DIS": Disconnected, "gone": closed,
}

// wantSubtype is each state's subtype, with DAT 2.0's numbers.
var wantSubtype = map[string]hw.Subtype{
	"UNC": 47, "ACT": 48, "PAS": 49, "TEN": 50, "CON": 51, "DIS": 52, "RSV": 53, "CMP": 54, "DPN": 55,
}

func TestStateMatrix(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(matrix), "\n")
	states := strings.Fields(lines[0])
	require.Len(t, lines[1:], 38)
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		require.Len(t, cells, 1+len(states))
		for i, state := range states {
			op, want := cells[0], cells[1+i]
			t.Run(fmt.Sprintf("%s in %s: %s", op, state, want), func(t *testing.T) {
				checkCell(t, op, state, want)
			})
		}
	}
}

func checkCell(t *testing.T, op, state, want string) {
	r := newRig(t)
	e := r.enter(state)
	before := stateNames[state]
	require.Equal(t, before, e.State())
	status, err := e.Status()
	require.NoError(t, err)
	assert.Equal(t, before, status.State)

	err = r.do(op, e)
	switch {
	case want == "E":
		require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidState, Sub: wantSubtype[state]})
		assert.Equal(t, before, e.State(), "a refused call has no effect")
		after, err := e.Status()
		require.NoError(t, err)
		assert.Equal(t, status, after)
	case want == "P":
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		assert.Equal(t, before, e.State())
	case strings.HasPrefix(want, "→"):
		require.NoError(t, err)
		r.await(func() bool { return e.State() == stateNames[strings.TrimPrefix(want, "→")] })
	default:
		require.NoError(t, err)
		assert.Equal(t, before, e.State())
	}
	if want == "fl" {
		ev := r.next(r.dto)
		assert.Equal(t, hw.StatusFlushed, ev.Status)
		assert.Equal(t, uint64(cookie), ev.Cookie)
		assert.Same(t, e, Of(ev))
	}
}

const cookie = 0xC0FFEE

// do makes one call with arguments that are all in order.
func (r *rig) do(op string, e *Endpoint) error {
	seg := r.lmr.Segment(0, 64)
	remote := r.lmr.Remote(0, 64)
	switch op {
	case "query":
		_, err := e.Query(FieldAll)
		return err
	case "status":
		_, err := e.Status()
		return err
	case "recv_query":
		_, _, err := e.RecvQuery()
		return err
	case "set_watermark":
		return e.SetWatermark(1, 2)
	case "post_recv":
		return e.PostRecv(cookie, 0, seg)
	case "post_send":
		return e.PostSend(cookie, 0, seg)
	case "post_rdma_read":
		return e.PostRDMARead(cookie, 0, remote, seg)
	case "post_rdma_write":
		return e.PostRDMAWrite(cookie, 0, remote, seg)
	case "post_send_inv":
		return e.PostSendInvalidate(cookie, 0, 0, seg)
	case "read_to_rmr":
		return e.PostRDMAReadToRMR(cookie, 0, remote, remote)
	case "rmr_bind":
		_, err := e.PostBind(cookie, 0, r.rmr(), mem.Binding{Segment: seg, Privileges: hw.RemoteRead})
		return err
	case "rmr_unbind":
		_, err := e.PostBind(cookie, 0, r.rmr(), mem.Binding{})
		return err
	case "write_immed":
		return e.PostRDMAWriteImmediate(cookie, 0, 1, remote, seg)
	case "fetch_add":
		return e.PostFetchAdd(cookie, 0, 1, r.lmr.Remote(0, 8), r.lmr.Segment(0, 8))
	case "cmp_swap":
		return e.PostCompareSwap(cookie, 0, 1, 1, r.lmr.Remote(0, 8), r.lmr.Segment(0, 8))
	case "connect":
		return e.Connect(ConnectConfig{Qual: r.psp.Qual()})
	case "dup_connect":
		return e.DupConnect(r.apart(), ConnectConfig{})
	case "dup_of":
		return r.endpoint(nil).DupConnect(e, ConnectConfig{})
	case "common_connect":
		return e.CommonConnect(r.psp.Addr().String(), ConnectConfig{})
	case "rsp_create":
		_, err := r.adapter.NewRSP(RSPConfig{Endpoint: e, Dispatcher: r.cr})
		return err
	case "cr_accept":
		return r.request().Accept(e, nil)
	case "disc_abrupt":
		return e.Disconnect(Abrupt)
	case "disc_graceful":
		return e.Disconnect(Graceful)
	case "modify_pz":
		return e.Modify(FieldPZ, Param{PZ: r.pz})
	case "modify_evds":
		return e.Modify(FieldRecvEVD|FieldRequestEVD|FieldConnectEVD, Param{Recv: r.dto, Request: r.dto, Conn: r.conn})
	case "modify_attr":
		return e.Modify(0x07FFF000, Param{Attr: Attr{MaxRequestDTOs: 64}})
	case "modify_transprt":
		return e.Modify(0x18000000, Param{Attr: Attr{ReceiverNotReady: time.Second}})
	case "modify_provider":
		return e.Modify(0x60000000, Param{Attr: Attr{DrainTimeout: time.Second}})
	case "modify_ia", "modify_state", "modify_comm", "modify_laddr", "modify_lqual", "modify_raddr", "modify_rqual", "modify_srq":
		return e.Modify(map[string]Field{
			"modify_ia": 0x1, "modify_state": 0x2, "modify_comm": 0x4, "modify_laddr": 0x8, "modify_lqual": 0x10,
			"modify_raddr": 0x20, "modify_rqual": 0x40, "modify_srq": 0x800,
		}[op], Param{})
	case "reset":
		return e.Reset()
	case "free":
		return e.Close()
	}
	return errors.New("no such operation: " + op)
}

// enter makes an endpoint that is in the given state. COMPLETION_PENDING, which
// lasts no time on loop, is set by hand, and put back before the endpoint closes.
func (r *rig) enter(state string) *Endpoint {
	if state == "TEN" {
		e, _, _ := r.tentative()
		require.NoError(r.t, e.Modify(FieldPZ|FieldRecvEVD, Param{PZ: r.pz, Recv: r.dto}))
		return e
	}
	e := r.endpoint(nil)
	switch state {
	case "UNC":
	case "RSV":
		r.reserve(e)
	case "PAS":
		r.asked(e)
	case "ACT":
		require.NoError(r.t, e.Connect(ConnectConfig{Qual: r.psp.Qual()}))
		r.next(r.cr)
	case "CON", "DPN", "DIS":
		r.connect(e, r.endpoint(nil))
		r.leaveConnected(e, state)
	case "CMP":
		require.NoError(r.t, e.Connect(ConnectConfig{Qual: r.psp.Qual()}))
		r.next(r.cr)
		r.force(e, CompletionPending)
	default:
		r.t.Fatal("no way into " + state)
	}
	return e
}

func (r *rig) leaveConnected(e *Endpoint, state string) {
	switch state {
	case "CON":
		// The peer has no receive, so the send is outstanding: a graceful
		// disconnect has something to wait for.
		require.NoError(r.t, e.PostSend(1, 0, r.lmr.Segment(0, 8)))
	case "DPN":
		require.NoError(r.t, e.PostSend(1, 0, r.lmr.Segment(0, 8)))
		require.NoError(r.t, e.Disconnect(Graceful))
	case "DIS":
		require.NoError(r.t, e.Disconnect(Abrupt))
		assert.Equal(r.t, evd.Disconnected, r.next(r.conn).Number)
	}
}

func (r *rig) force(e *Endpoint, s State) {
	was := e.State()
	e.box.state.Store(uint32(s))
	r.t.Cleanup(func() {
		if e.State() == s {
			e.box.state.Store(uint32(was))
		}
	})
}
