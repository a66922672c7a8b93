package event

import (
	"fmt"

	"godat/hw"
)

// Event is DAT_EVENT: one thing that happened. It is a value of 56 bytes (40 where a
// pointer has 32 bits); its receiver owns it.
type Event struct {
	Number Number
	Status hw.Status // of a completion
	Op     hw.Op     // of a completion
	Flags  Flags

	// Length is the bytes that a successful operation moved. Those of OpRecvImm, a receive
	// that an RDMA write with immediate data took, are where the write says: the receive's
	// own memory has none of them.
	Length uint32
	Key    uint32 // immediate data with HasImm, the invalidated context with Invalidated

	// Cookie is the cookie of the post, unchanged.
	Cookie uint64

	// Source is a pointer to the object that the event is about: an endpoint, a
	// service point, a shared receive queue. ep.Of returns it if it is an endpoint.
	Source any

	// Data is a bind's window, a connection request's object, a software event's
	// payload or an asynchronous error's Reason. Private and Cause return the
	// data of a connection event, and Cause that of a flushed completion.
	Data any
}

// Flags say more about an event.
type Flags uint16

// The event flags.
const (
	Solicited   Flags = 1 << iota // a receive whose send asked for a notification
	HasImm                        // Key is immediate data
	Invalidated                   // Key is the context that the peer's send invalidated
	Silent                        // did not by itself notify; see the package comment
)

// Immediate returns the immediate data that came with the message; ok is false when
// none came.
func (e Event) Immediate() (data uint32, ok bool) { return e.Key, e.Flags&HasImm != 0 }

// InvalidatedContext returns the context that the peer's send invalidated; ok is
// false when it invalidated none.
func (e Event) InvalidatedContext() (context uint32, ok bool) {
	return e.Key, e.Flags&Invalidated != 0
}

// Private returns the peer's private data that came with a connection event; nil for other events, and
// when none came. The event's receiver owns it.
func (e Event) Private() []byte {
	if e.Number.Stream() != StreamConnection {
		return nil
	}
	switch data := e.Data.(type) {
	case []byte:
		return data
	case *connectionEnd:
		return data.private
	}
	return nil
}

// Software returns the payload of a software event; ok is false for other events.
func (e Event) Software() (payload any, ok bool) {
	if e.Number != SoftwareEvent {
		return nil, false
	}
	return e.Data, true
}

// Async returns the object and the reason of an asynchronous error; ok is false for
// other events.
func (e Event) Async() (source any, why Reason, ok bool) {
	if e.Number.Stream() != StreamAsync {
		return nil, 0, false
	}
	why, _ = e.Data.(Reason)
	return e.Source, why, true
}

// Err returns nil for an event of success: a completion that succeeded, a
// connection that was established or ended in order, a request, a software event.
// Otherwise the error matches the completion's hw.StatusError, or the Error with
// the event's number. A peer that closes the connection, with or without a graceful
// disconnect, ends it in order; a peer whose process dies breaks it, over iwarp as far as
// this end can tell: see package iwarp. The error of a connection's end, and of a completion that the
// end flushed, says why the connection ended and unwraps to the *hw.Cause:
//
//	var cause *hw.Cause
//	if errors.As(ev.Err(), &cause) { ... }
//
// Err does not allocate.
func (e Event) Err() error {
	if e.Number.Completion() {
		if e.Status == hw.StatusFlushed {
			if cause, ok := e.Data.(*hw.Cause); ok {
				return (*flushError)(cause)
			}
		}
		return e.Status.Err()
	}
	err := e.Number.Err()
	if end, ok := e.Data.(*connectionEnd); ok && err != nil {
		return end
	}
	return err
}

// String describes the event for people.
func (e Event) String() string {
	switch {
	case e.Number.Completion():
		return fmt.Sprintf("%v{%v %v cookie=%#x len=%d}", e.Number, e.Op, e.Status, e.Cookie, e.Length)
	case e.Data == nil:
		return e.Number.String()
	case e.Number.Stream() == StreamConnection:
		if cause := e.Cause(); cause != nil {
			return fmt.Sprintf("%v{private=%d bytes, %v}", e.Number, len(e.Private()), cause)
		}
		return fmt.Sprintf("%v{private=%d bytes}", e.Number, len(e.Private()))
	}
	return fmt.Sprintf("%v{%v}", e.Number, e.Data)
}

// Reason is an asynchronous error's reason. DAT numbers the reasons per kind of
// object: what one means depends on the event's source.
type Reason uint32

// The reasons.
const (
	IACatastrophic      Reason = 0 // IA
	EPToError           Reason = 0 // EP: the device put its queue pair into the error state
	EVDOverflow         Reason = 0 // EVD
	SRQToError          Reason = 0 // SRQ: the device put it into the error state
	MemoryOther         Reason = 0 // OTHER, of LMR, RMR and PZ
	ReasonOther         Reason = 1 // OTHER, of IA, EP, EVD and SRQ
	EPSoftHighWatermark Reason = 2 // the endpoint holds many receives of its shared queue
	SRQLowWatermark     Reason = 2 // SRQ: few receives are left
)
