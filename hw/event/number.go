package event

import (
	"fmt"
	"net"
	"os"

	"godat/hw"
)

// Number is DAT_EVENT_NUMBER, with DAT's values: one band per stream.
type Number uint32

// The event numbers.
const (
	DTOCompletion         Number = 0x00001 // of a send, a receive, an RDMA read or write
	BindCompletion        Number = 0x01001 // of a bind; RMROf
	ConnectionRequest     Number = 0x02001 // RequestOf
	Established           Number = 0x04001 // both sides; the endpoint is CONNECTED already
	PeerRejected          Number = 0x04002 // the remote consumer rejected; private data may be there
	NonPeerRejected       Number = 0x04003 // nobody listens, or the remote provider refused
	AcceptCompletionError Number = 0x04004 // the passive side's accept failed
	Disconnected          Number = 0x04005 // an orderly end
	Broken                Number = 0x04006 // an error ended the connection
	TimedOut              Number = 0x04007 // the consumer's time limit for connecting ran out
	Unreachable           Number = 0x04008 // no such address, or no way there
	AsyncEVDOverflow      Number = 0x08001 // only with Config.Overcommit, or of a device's queue
	AsyncIACatastrophic   Number = 0x08002 // the device or its port has failed
	AsyncEPBroken         Number = 0x08003 // of endpoints and shared receive queues; Reason says why
	AsyncTimedOut         Number = 0x08004
	AsyncProviderError    Number = 0x08005
	SoftwareEvent         Number = 0x10001 // of Dispatcher.PostSoftware
	IBDTOEvent            Number = 0x40000 // InfiniBand extension: atomics, write with immediate

	// Closed is no event of DAT, but the last one of a channel that belongs to a
	// runtime.Conn or runtime.Listener, and an event of evd.Config.Func: the owner or its
	// adapter has been closed. The channel stays open, so a select with it sleeps afterwards. Ended is true, and Err
	// matches net.ErrClosed.
	Closed Number = 0x100000
)

var numberText = map[Number]string{
	DTOCompletion:         "DTO_COMPLETION",
	BindCompletion:        "RMR_BIND_COMPLETION",
	ConnectionRequest:     "CONNECTION_REQUEST",
	Established:           "ESTABLISHED",
	PeerRejected:          "PEER_REJECTED",
	NonPeerRejected:       "NON_PEER_REJECTED",
	AcceptCompletionError: "ACCEPT_COMPLETION_ERROR",
	Disconnected:          "DISCONNECTED",
	Broken:                "BROKEN",
	TimedOut:              "TIMED_OUT",
	Unreachable:           "UNREACHABLE",
	AsyncEVDOverflow:      "ASYNC_EVD_OVERFLOW",
	AsyncIACatastrophic:   "ASYNC_IA_CATASTROPHIC",
	AsyncEPBroken:         "ASYNC_EP_BROKEN",
	AsyncTimedOut:         "ASYNC_TIMED_OUT",
	AsyncProviderError:    "ASYNC_PROVIDER_INTERNAL_ERROR",
	SoftwareEvent:         "SOFTWARE",
	IBDTOEvent:            "IB_DTO",
	Closed:                "CLOSED",
}

// String returns DAT's name without the DAT_ in front and the EVENT behind.
func (n Number) String() string {
	if s, ok := numberText[n]; ok {
		return s
	}
	return fmt.Sprintf("Number(%#x)", uint32(n))
}

// Completion reports whether events of this number carry a completion: cookie,
// status and operation.
func (n Number) Completion() bool {
	return n == DTOCompletion || n == BindCompletion || n == IBDTOEvent
}

// Stream returns the stream that events of this number belong to; 0 if n belongs to
// none.
func (n Number) Stream() Streams {
	switch {
	case n == DTOCompletion, n == IBDTOEvent:
		return StreamDTO
	case n == BindCompletion:
		return StreamBind
	case n == ConnectionRequest:
		return StreamCR
	case n >= Established && n <= Unreachable, n == Closed:
		return StreamConnection
	case n >= AsyncEVDOverflow && n <= AsyncProviderError:
		return StreamAsync
	case n == SoftwareEvent:
		return StreamSoftware
	}
	return 0
}

// Err returns nil unless n alone says that something went wrong: a connection that
// was not established or that broke, an asynchronous error. It does not allocate.
func (n Number) Err() error {
	switch n {
	case PeerRejected, NonPeerRejected, AcceptCompletionError, Broken, TimedOut, Unreachable, Closed,
		AsyncEVDOverflow, AsyncIACatastrophic, AsyncEPBroken, AsyncTimedOut, AsyncProviderError:
		return numberErrors[n]
	default:
		return nil
	}
}

// Error is an event's number as an error. Match it with errors.As, with errors.Is
// against another Error, or with errors.Is against a general error: hw.ErrTimeout
// or os.ErrDeadlineExceeded for a time limit, hw.ErrInvalidAddress for an address
// that is not there, net.ErrClosed for Closed.
type Error Number

// numberErrors holds an error for each number, so that Err need not allocate it.
var numberErrors = func() map[Number]error {
	m := make(map[Number]error, len(numberText))
	for n := range numberText {
		m[n] = Error(n)
	}
	return m
}()

func (e Error) Error() string {
	kind := "connection: "
	if Number(e).Stream() == StreamAsync {
		kind = "asynchronous error: "
	}
	return "godat: " + kind + Number(e).String()
}

// Is reports whether target is the general error for the number; see [Error].
func (e Error) Is(target error) bool {
	switch Number(e) {
	case TimedOut, AsyncTimedOut:
		return target == hw.ErrTimeout || target == os.ErrDeadlineExceeded
	case Unreachable:
		return target == hw.ErrInvalidAddress
	case Closed:
		return target == net.ErrClosed
	default:
		return false
	}
}
