package delivery

// A polled device keeps completions that no consumer knows of: those that are not solicited,
// and all of them where consumers may poll. A device that consumers help (hw.Progresser) has work
// that would be completions. Four callers poll the device themselves: a Dequeue that finds
// nothing, a Wait that finds too few events, a goroutine that waits for what a filter takes,
// and a poster without room, whose places such completions hold.

// PollHint says what the caller of a device's poll does next.
type PollHint uint8

const (
	// PollNow is the hint of a Dequeue. The poll may deliver what the device has
	// before it returns, so the caller looks into its queue again.
	PollNow PollHint = iota
	// PollBeforeSleep is PollNow for a caller that may sleep then, and that later
	// completions must wake: a Wait, a Dequeue on a dispatcher with a CNO, and a goroutine
	// that a filter wakes.
	PollBeforeSleep
	// PollAgain is the hint of a Wait that has polled with PollBeforeSleep, and yields and
	// looks a few times more before it sleeps.
	PollAgain
	// PollElsewhere is the hint of a poster. It may hold locks that deliveries take, so
	// another goroutine polls the device.
	PollElsewhere
)

// SetPollDevice sets the function that polls the device behind the dispatcher; nil
// for none. It must not block. Any number of goroutines call it, each time that one
// finds too few events. The owner of the completion queues sets it where they are
// solicited-only, or where consumers may poll; an adapter sets it where consumers help
// the device.
func (c *Consumer) SetPollDevice(poll func(PollHint)) {
	if poll == nil {
		c.parked.And(^uint32(pollBit))
		c.pollDevice.Store(nil)
		return
	}
	c.pollDevice.Store(&poll)
	c.parked.Or(pollBit)
}

// BeforeSleep polls the device if it must be asked. A goroutine that waits for what the
// dispatcher's filter takes calls it before it looks for the last time.
func (c *Consumer) BeforeSleep() {
	if c.Asks() {
		c.poll(PollBeforeSleep)
	}
}

// Asks reports whether consumers have to ask the device for completions, or may.
func (c *Consumer) Asks() bool { return c.parked.Load()&pollBit != 0 }

// PollAgain polls the device that Asks speaks of, for a goroutine that has called
// BeforeSleep, and yields and looks a few times more before it sleeps.
func (c *Consumer) PollAgain() { c.poll(PollAgain) }

// Taken counts the events that consumers have taken from the ring. By it the device's
// back-stop tells a consumer that is busy with events from one that has stopped.
func (c *Consumer) Taken() uint64 { return c.turn.taken() }

// poll polls the device, unless it has gone since the caller saw pollBit.
//
//go:noinline
func (c *Consumer) poll(hint PollHint) {
	if poll := c.pollDevice.Load(); poll != nil {
		(*poll)(hint)
	}
}
