package ep

import (
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
)

// boxOwner is all that a mailbox asks of its endpoint. No call blocks.
type boxOwner interface {
	// The token's holder calls these.

	handle(told uint32) // inputs have come
	execute()           // a control call waits, and all that was posted before it is published
	ended()             // both queues have ended; the holder calls it until it has cleared bothEnded
	failed(err error)   // the provider refused a post for which it had room

	// A poster calls these.

	// arm returns the queue of a one-shot, which takes the completion of a post whose others
	// go to a dispatcher.
	arm(shot *evd.OneShot, to *delivery.Dispatcher) (*delivery.Queue, error)
	noRoom(call string, to *delivery.Queue) error // why a post found no place in to

	// A completer calls these.

	why() *hw.Cause                        // why the connection ends; nil as long as nobody knows
	refused(op hw.Op, status hw.Status)    // the device found something wrong with an operation
	took(posted int64, to *delivery.Queue) // a request that is measured has succeeded
	tookShared(n int)                      // n receives of a shared queue have been taken together
}

// explain adds the cause of the connection's end to the event of a flush.
func (b *mailbox) explain(ev *event.Event) {
	if cause := b.cold.owner.why(); cause != nil && ev.Data == nil {
		ev.Data = cause
	}
}
