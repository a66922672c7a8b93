package runtime

// PollerConfig says how the completion queues of a polled device are emptied. Other devices
// have no such queues. A program need not set anything: see the adapter's [PollSnapshot] for
// what the adapter does by itself.
//
// The adapter itself chooses between polls and sleeps. While most of the last completions came
// sooner than a sleep costs, it polls on, for as long as a sleep costs at most. Otherwise it
// has the device wake it. What a sleep costs is measured in Open. A
// consumer that polls (a Dequeue that finds nothing polls the device once) gets the device as
// soon as it finds completions before the adapter does, and loses it when it has not polled
// for a millisecond or two. An adapter without traffic polls nothing.
//
// A pinned thread polls, and goroutines deliver what it found, where they have processors of
// their own. Where GOMAXPROCS is below 3 when the adapter is opened, and neither CPUs nor
// DelivererRounds is set, one goroutine polls and delivers in their place, and
// yields between polls. Only there consumers get the device.
type PollerConfig struct {
	// ConsumerPolls promises that consumers poll: the first Dequeue that finds nothing
	// gets the device, and there is no pinned thread. Such a Dequeue polls once, and
	// delivers what came, to its own dispatcher and to all others, whatever their mode. No
	// completion is handed from thread to thread. Any number of goroutines may dequeue:
	// one polls at a time, and the others find what it delivered.
	//
	// The program need not keep the promise. When no Dequeue has polled or taken an event
	// for a millisecond or two, the adapter polls and waits for the device itself, until
	// consumers poll again. A consumer that waits, iterates, or dequeues from a
	// dispatcher with a CNO polls once and puts the adapter in charge at once. So when a
	// goroutine stops dequeueing, events that are not dequeued (channels, callbacks,
	// CNOs) may come those milliseconds late, once. While each Dequeue finds events in
	// its dispatcher and none polls, the adapter polls once a millisecond for the others.
	//
	// With ConsumerPolls, DelivererRounds has no effect. With CPUs, the adapter's own polls
	// come from a thread on those processors, which is slower to wake consumers.
	ConsumerPolls bool

	// CPUs are the processors that the thread may run on; none means any. It is
	// supported on Linux; elsewhere Open fails when it is set.
	CPUs []int

	// SpinRounds is for comparisons: how many polls in a row may find nothing before the
	// adapter arms the device and sleeps, whatever comes. Below 0 means none: it always sleeps.
	// math.MaxInt means that it never does. 0, the usual value, leaves it to the adapter.
	SpinRounds int

	// DelivererRounds is how often a dispatcher's deliverer, the goroutine that takes
	// its completions from the thread, yields while it finds nothing, before it parks.
	// Waking a parked deliverer takes microseconds. 0 means 20. Below 0 it never parks,
	// and uses whatever processor time no other goroutine needs. The deliverer of the
	// last completion does not park before the thread sleeps, however long the thread
	// spins.
	DelivererRounds int

	// CQDepth is the depth of the completion queues; a queue pair that needs more
	// gets a deeper one. 0 means 992.
	CQDepth int
}
