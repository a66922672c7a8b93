package hw

import "strconv"

// Status is how an operation ended: DAT_DTO_COMPLETION_STATUS, with its numbers.
type Status uint8

// The completion statuses. After any but success the connection is broken.
const (
	StatusSuccess          Status = 0
	StatusFlushed          Status = 1 // the endpoint left CONNECTED first
	StatusLocalLength      Status = 2 // a message too long for the receive, or for the transport
	StatusLocalEP          Status = 3 // the queue pair failed locally
	StatusLocalProtection  Status = 4 // a local segment's region is gone, or its zone, bounds or privilege is wrong
	StatusBadResponse      Status = 5 // the peer's response made no sense
	StatusRemoteAccess     Status = 6 // the peer's key, bounds, zone or privilege is wrong
	StatusRemoteResponder  Status = 7 // the peer could not complete it
	StatusTransport        Status = 8 // retries exhausted, peer gone
	StatusReceiverNotReady Status = 9 // no receive posted in time
	StatusPartialPacket    Status = 10
	StatusBindFailed       Status = 11 // bind, unbind or invalidate failed
	StatusLocalMM          Status = 12 // kernel consumers only
)

var statusText = [...]string{
	"SUCCESS", "ERR_FLUSHED", "ERR_LOCAL_LENGTH", "ERR_LOCAL_EP", "ERR_LOCAL_PROTECTION",
	"ERR_BAD_RESPONSE", "ERR_REMOTE_ACCESS", "ERR_REMOTE_RESPONDER", "ERR_TRANSPORT",
	"ERR_RECEIVER_NOT_READY", "ERR_PARTIAL_PACKET", "RMR_OPERATION_FAILED", "ERR_LOCAL_MM_ERROR",
}

func (s Status) String() string { return text(statusText[:], int(s), "Status") }

// Err is nil for success and otherwise a [StatusError]. It does not allocate: the
// error is one byte.
func (s Status) Err() error {
	if s == StatusSuccess {
		return nil
	}
	return StatusError(s)
}

// StatusError is a completion's status as an error.
type StatusError Status

func (e StatusError) Error() string { return "godat: completion: " + Status(e).String() }

func text(names []string, i int, kind string) string {
	if i < len(names) && names[i] != "" {
		return names[i]
	}
	return kind + "(" + strconv.Itoa(i) + ")"
}
