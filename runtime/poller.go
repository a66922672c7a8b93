package runtime

// PollerConfig says how the completion queues of a polled device are emptied: by the
// pinned poller, which is a thread of its own, or with ConsumerPolls by the program.
// Other devices have no such queues.
//
// The pinned poller and the goroutines that deliver what it polls need processors of
// their own. Where GOMAXPROCS is below 3 when the adapter is opened, and neither CPUs
// nor DelivererRounds is set, one goroutine polls and delivers in its place.
type PollerConfig struct {
	// ConsumerPolls lets consumers poll. A Dequeue that finds its dispatcher empty
	// polls the device once, and delivers what came, to its own dispatcher and to all
	// others, whatever their mode. No completion is handed from thread to thread. It is
	// for the lowest latency, in programs that call Dequeue all the time anyway and
	// spend a processor on it. Any number of goroutines may dequeue: one polls at a
	// time, and the others find what it delivered.
	//
	// The program need not go on polling. When no Dequeue has polled or taken an event
	// for a millisecond or two, the adapter polls and waits for the device itself, until
	// consumers poll again. A consumer that waits, iterates, or dequeues from a
	// dispatcher with a CNO polls once and puts the adapter in charge at once. So when a
	// goroutine stops dequeueing, events that are not dequeued (channels, callbacks,
	// CNOs) may come those milliseconds late, once. While each Dequeue finds events in
	// its dispatcher and none polls, the adapter polls once a millisecond for the others.
	//
	// With ConsumerPolls there is no pinned thread, and DelivererRounds has no effect.
	// With CPUs, the adapter's own polls come from a thread on those processors, which
	// is slower to wake consumers.
	ConsumerPolls bool

	// CPUs are the processors that the thread may run on; none means any. It is
	// supported on Linux; elsewhere Open fails when it is set.
	CPUs []int

	// SpinRounds is how many polls in a row may find nothing before the thread arms the
	// device and sleeps. More rounds buy latency with processor time. 0 means 20, or
	// none where GOMAXPROCS is below 3, because the thread would keep the program from
	// running. Below 0 means none. A goroutine that polls in place of the thread yields
	// in each round.
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
