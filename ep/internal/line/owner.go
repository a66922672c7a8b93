package line

import (
	"godat/evd"
	"godat/hw"
	"godat/internal/delivery"
)

// Owner is all that a mailbox asks of the endpoint that it belongs to. No call waits for a post or for the token.
type Owner interface {
	// The token's holder calls these.

	Handle(told uint32) // inputs have come
	Execute()           // a control call waits, and all that was posted before it is published
	Ended()             // both queues have ended; the holder calls it until Flushed says so
	Failed(err error)   // the provider refused a post for which it had room

	// A poster calls these.

	// Arm returns the queue of a one-shot, which takes the completion of a post whose others
	// go to a dispatcher.
	Arm(shot *evd.OneShot, to *delivery.Dispatcher) (*delivery.Queue, error)
	NoRoom(call string, to *delivery.Queue) error // why a post found no place in to
	NotIn(call string, s State) error             // why a post is refused in that state

	// A completer calls these.

	Why() *hw.Cause                        // why the connection ends; nil as long as nobody knows
	Refused(op hw.Op, status hw.Status)    // the device found something wrong with an operation
	Took(posted int64, to *delivery.Queue) // a request that is measured has succeeded
	TookShared(n int)                      // n receives of a shared queue have been taken together
}

// Shared is a queue of receives that mailboxes share. They retire there, in any order.
type Shared interface {
	// Take retires the receive that a completion is about, and returns its cookie, and the queue in which a
	// place is reserved for it.
	Take(id uint64) (cookie uint64, to *delivery.Queue)
}
