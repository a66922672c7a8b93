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

// sendStatus is what the C library of uDAPL makes of each on a send queue, except
// that an unknown one and a timeout are transport errors.
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

// recvStatus is what differs on a receive queue. There an invalid request is the
// peer's message that did not fit; soft-RoCE has another word for it, which it also
// uses for segments that are no good: the C half looks at those first.
var recvStatus = map[int]hw.Status{
	wcRemoteInvalidRequest: hw.StatusLocalLength,
	wcLocalQPOp:            hw.StatusLocalLength,
}

// wcStatuses is the size of the tables that the C half has.
const wcStatuses = 64

// statusTable is the table for one kind of queue.
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

// wcText are the statuses' names in the C library.
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

// completionCause is a completion that ended a connection, in verbs' words and in hw's.
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
