package hw

import "time"

// PollCounter is a Device that completes by itself and counts how it noticed what came.
type PollCounter interface {
	// PollCounts returns the counts of this moment. Any goroutine may call it, and it does
	// not block.
	PollCounts() PollCounts
}

// PollCounts say how completions of a device were noticed since it was opened: by polls, or by a
// wake-up after a sleep. All of them only grow. The counts of one snapshot may be apart by what
// happened while it was taken. A loop that polls makes no Arms and no Waits; one that sleeps has
// a wait for each batch of completions that came while it slept.
type PollCounts struct {
	// Found and Empty count the polls that found completions, and those that found nothing. Of
	// a device over sockets these are the looks of consumers alone.
	Found, Empty uint64
	// Consumers counts those polls of Found and Empty that consumers made: a Dequeue, or
	// a Wait before it sleeps.
	Consumers uint64
	// Arms counts how often the device was asked for a wake-up at the next completion.
	Arms uint64
	// Waits counts sleeps until the device, or a socket, or a Wake ends them.
	Waits uint64
	// Wakes counts wake-ups of goroutines and threads of the library that slept: of a
	// dispatcher's deliverer by the thread that polls, and of whatever polls by consumers.
	Wakes uint64
	// Spun is what polls took that found nothing and were followed by another poll: their number,
	// times what one takes while nothing else runs.
	Spun time.Duration
	// HandBacks counts how often consumers that had polled stopped, and the library took
	// the device back.
	HandBacks uint64
}
