package hw

// Flags are DAT_COMPLETION_FLAGS, with DAT's numbers. Posts take all but
// EVDThreshold; which of them depends on the operation and on the endpoint's
// attributes.
type Flags uint16

// The completion flags.
const (
	Default       Flags = 0
	Suppress      Flags = 0x01 // no event on success, as unsignaled in verbs; a failure is always reported
	SolicitedWait Flags = 0x02 // on a send: the peer's receive notifies its waiter
	Unsignalled   Flags = 0x04 // the event is delivered but does not by itself notify; verbs' unsignaled is Suppress
	BarrierFence  Flags = 0x08 // begin after all earlier reads, atomics and binds
	EVDThreshold  Flags = 0x10 // endpoint attribute: the EVD notifies by threshold
)
