package ibv

import (
	"fmt"
	"strings"

	"godat/hw"
)

// The completion statuses of verbs that this package treats in a way of their own.
const (
	wcLocalQPOp            = 2
	wcRemoteInvalidRequest = 9
	wcRetryExceeded        = 12
)

// statuses are the completion statuses of verbs, in the order of their numbers: the name that
// libibverbs has, and what it means for a send. This is as the C library of uDAPL has it, except
// that an unknown status and a timeout are transport errors.
var statuses = [...]struct {
	name string
	send hw.Status
}{
	{"IBV_WC_SUCCESS", hw.StatusSuccess},
	{"IBV_WC_LOC_LEN_ERR", hw.StatusLocalLength},
	{"IBV_WC_LOC_QP_OP_ERR", hw.StatusLocalEP},
	{"IBV_WC_LOC_EEC_OP_ERR", hw.StatusTransport},
	{"IBV_WC_LOC_PROT_ERR", hw.StatusLocalProtection},
	{"IBV_WC_WR_FLUSH_ERR", hw.StatusFlushed},
	{"IBV_WC_MW_BIND_ERR", hw.StatusBindFailed},
	{"IBV_WC_BAD_RESP_ERR", hw.StatusBadResponse},
	{"IBV_WC_LOC_ACCESS_ERR", hw.StatusLocalProtection},
	{"IBV_WC_REM_INV_REQ_ERR", hw.StatusRemoteResponder},
	{"IBV_WC_REM_ACCESS_ERR", hw.StatusRemoteAccess},
	{"IBV_WC_REM_OP_ERR", hw.StatusRemoteResponder},
	{"IBV_WC_RETRY_EXC_ERR", hw.StatusTransport},
	{"IBV_WC_RNR_RETRY_EXC_ERR", hw.StatusReceiverNotReady},
	{"IBV_WC_LOC_RDD_VIOL_ERR", hw.StatusLocalProtection},
	{"IBV_WC_REM_INV_RD_REQ_ERR", hw.StatusRemoteResponder},
	{"IBV_WC_REM_ABORT_ERR", hw.StatusRemoteResponder},
	{"IBV_WC_INV_EECN_ERR", hw.StatusTransport},
	{"IBV_WC_INV_EEC_STATE_ERR", hw.StatusTransport},
	{"IBV_WC_FATAL_ERR", hw.StatusTransport},
	{"IBV_WC_RESP_TIMEOUT_ERR", hw.StatusTransport},
	{"IBV_WC_GENERAL_ERR", hw.StatusTransport},
}

// wcStatuses is the size of the C half's status tables.
const wcStatuses = 64

// statusTable is the C half's table for receive queues or for send queues. On a receive queue an
// invalid request means that the peer's message did not fit. Soft-RoCE reports such a
// message as wcLocalQPOp, which it also uses for invalid segments; the C half checks
// the segments first.
func statusTable(recv bool) (t [wcStatuses]hw.Status) {
	for i := range t {
		t[i] = hw.StatusTransport
		if i < len(statuses) {
			t[i] = statuses[i].send
		}
	}
	if recv {
		t[wcRemoteInvalidRequest], t[wcLocalQPOp] = hw.StatusLocalLength, hw.StatusLocalLength
	}
	return t
}

// pairText says what besides may have made a request of a pair fail.
var pairText = map[int]string{
	wcRetryExceeded:        ": no answer, so the peer is gone or has not paired, or a number, a PSN or a GID is wrong",
	wcRemoteInvalidRequest: ", or the two ends' MTUs differ",
}

// completionCause describes the completion that ended a connection: its status and
// vendor error in verbs' terms, and its status in hw's, word.
func completionCause(status, vendor int, word hw.Status, recv bool) *hw.Cause {
	c := &hw.Cause{Layer: hw.LayerVerbs, Code: status, Err: word.Err()}
	c.Text = fmt.Sprintf("completion status %d", status)
	if status < len(statuses) {
		c.Text = statuses[status].name
	}
	if !recv && strings.HasPrefix(c.Text, "IBV_WC_REM_") {
		c.Found = hw.SidePeer
	}
	if recv {
		c.Text += " of a receive"
	}
	if vendor != 0 {
		c.Text += fmt.Sprintf(", vendor error %#x", vendor)
	}
	return c
}
