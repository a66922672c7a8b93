package ibv

import "godat/hw"

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
