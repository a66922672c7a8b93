package runtime

// PollerConfig says how the completion queues of a polled device are emptied. Other devices
// have no such queues. A program need not set anything: see the adapter's [PollSnapshot] for
// what the adapter does by itself.
//
// The adapter itself chooses between polls and sleeps. While most of the last completions came
// sooner than a sleep costs, it polls on, for as long as a sleep costs, and now and then for longer, to see. Otherwise it
// has the device wake it. What a sleep costs is measured in Open. An adapter without traffic
// polls nothing.
//
// One goroutine polls and delivers, and yields between polls, so it takes no processor that
// others want. A consumer that polls (a Dequeue that finds nothing polls the device once, and
// delivers what came, to its own dispatcher and to all others, whatever their mode) gets the
// device once consumers found completions first at two of its looks in a row, and loses it when it has
// neither polled nor taken an event for a millisecond or two. A consumer that waits, iterates, or
// dequeues from a dispatcher with a CNO polls once, and has the goroutine poll from then on. So when
// a consumer stops dequeueing, events that are not dequeued (channels, callbacks, CNOs) may come
// those milliseconds late, once. Any number of goroutines may dequeue: one polls at a time, and the
// others find what it delivered.
type PollerConfig struct {
	// CPUs are processors of a thread that polls in place of the goroutine; none means that there
	// is no thread. Goroutines, one for each dispatcher, deliver what the thread found, so each
	// completion is handed over twice, and no consumer gets the device. The thread sleeps when the goroutine
	// would. It is supported on Linux, and for processor 0 under wasip1, where the thread is a
	// goroutine; elsewhere Open fails when it is set.
	CPUs []int

	// SpinRounds is for comparisons: how many polls in a row may find nothing before the
	// adapter arms the device and sleeps, whatever comes. Below 0 means none: it always sleeps.
	// math.MaxInt means that it never does. 0, the usual value, leaves it to the adapter.
	SpinRounds int
}
