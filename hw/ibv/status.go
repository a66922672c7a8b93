package ibv

import (
	"fmt"

	"godat/hw"
)

// The completion statuses of verbs, in the order of their numbers.
const (
	wcSuccess = iota
	wcLocalLength
	wcLocalQPOp
	wcLocalEECOp
	wcLocalProtection
	wcFlushed
	wcBind
	wcBadResponse
	wcLocalAccess
	wcRemoteInvalidRequest
	wcRemoteAccess
	wcRemoteOp
	wcRetryExceeded
	wcRNRRetryExceeded
	wcLocalRDDViolation
	wcRemoteInvalidRDRequest
	wcRemoteAbort
	wcInvalidEECN
	wcInvalidEECState
	wcFatal
	wcResponseTimeout
	wcGeneral
)

// sendStatus translates a send's status as the C library of uDAPL does, except that an
// unknown status and a timeout are transport errors.
var sendStatus = map[int]hw.Status{
	wcSuccess:                hw.StatusSuccess,
	wcLocalLength:            hw.StatusLocalLength,
	wcLocalQPOp:              hw.StatusLocalEP,
	wcLocalEECOp:             hw.StatusTransport,
	wcLocalProtection:        hw.StatusLocalProtection,
	wcFlushed:                hw.StatusFlushed,
	wcBind:                   hw.StatusBindFailed,
	wcBadResponse:            hw.StatusBadResponse,
	wcLocalAccess:            hw.StatusLocalProtection,
	wcRemoteInvalidRequest:   hw.StatusRemoteResponder,
	wcRemoteAccess:           hw.StatusRemoteAccess,
	wcRemoteOp:               hw.StatusRemoteResponder,
	wcRetryExceeded:          hw.StatusTransport,
	wcRNRRetryExceeded:       hw.StatusReceiverNotReady,
	wcLocalRDDViolation:      hw.StatusLocalProtection,
	wcRemoteInvalidRDRequest: hw.StatusRemoteResponder,
	wcRemoteAbort:            hw.StatusRemoteResponder,
	wcInvalidEECN:            hw.StatusTransport,
	wcInvalidEECState:        hw.StatusTransport,
	wcFatal:                  hw.StatusTransport,
	wcResponseTimeout:        hw.StatusTransport,
	wcGeneral:                hw.StatusTransport,
}

// recvStatus holds the statuses whose meaning differs on a receive queue. There an
// invalid request means that the peer's message did not fit. Soft-RoCE reports such a
// message as wcLocalQPOp, which it also uses for invalid segments; the C half checks
// the segments first.
var recvStatus = map[int]hw.Status{
	wcRemoteInvalidRequest: hw.StatusLocalLength,
	wcLocalQPOp:            hw.StatusLocalLength,
}

// wcStatuses is the size of the C half's status tables.
const wcStatuses = 64

// statusTable is the C half's table for receive queues or for send queues.
func statusTable(recv bool) (t [wcStatuses]hw.Status) {
	for i := range t {
		s, ok := sendStatus[i]
		if !ok {
			s = hw.StatusTransport
		}
		if r, ok := recvStatus[i]; ok && recv {
			s = r
		}
		t[i] = s
	}
	return t
}

// wcText holds the names that libibverbs has for the statuses.
var wcText = [...]string{
	"IBV_WC_SUCCESS",
	"IBV_WC_LOC_LEN_ERR",
	"IBV_WC_LOC_QP_OP_ERR",
	"IBV_WC_LOC_EEC_OP_ERR",
	"IBV_WC_LOC_PROT_ERR",
	"IBV_WC_WR_FLUSH_ERR",
	"IBV_WC_MW_BIND_ERR",
	"IBV_WC_BAD_RESP_ERR",
	"IBV_WC_LOC_ACCESS_ERR",
	"IBV_WC_REM_INV_REQ_ERR",
	"IBV_WC_REM_ACCESS_ERR",
	"IBV_WC_REM_OP_ERR",
	"IBV_WC_RETRY_EXC_ERR",
	"IBV_WC_RNR_RETRY_EXC_ERR",
	"IBV_WC_LOC_RDD_VIOL_ERR",
	"IBV_WC_REM_INV_RD_REQ_ERR",
	"IBV_WC_REM_ABORT_ERR",
	"IBV_WC_INV_EECN_ERR",
	"IBV_WC_INV_EEC_STATE_ERR",
	"IBV_WC_FATAL_ERR",
	"IBV_WC_RESP_TIMEOUT_ERR",
	"IBV_WC_GENERAL_ERR",
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
	if status < len(wcText) {
		c.Text = wcText[status]
	}
	if recv {
		c.Text += " of a receive"
	}
	if vendor != 0 {
		c.Text += fmt.Sprintf(", vendor error %#x", vendor)
	}
	switch status {
	case wcRemoteInvalidRequest, wcRemoteAccess, wcRemoteOp, wcRemoteInvalidRDRequest, wcRemoteAbort:
		if !recv {
			c.Found = hw.SidePeer
		}
	}
	return c
}
