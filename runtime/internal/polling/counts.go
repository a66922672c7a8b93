package polling

import (
	"sync/atomic"
	"time"

	"godat/hw"
	"godat/internal/release"
)

// counts are what an engine counts for [hw.PollCounts]. But for wakes each has one writer at a
// time: the poller's thread, or the holder of the driver's token, or the back-stop.
type counts struct {
	found, empty, consumers atomic.Uint64
	consumed                atomic.Uint64 // those of found that consumers made
	arms, waits, handBacks  atomic.Uint64
	spun                    atomic.Uint64 // nanoseconds

	wakes atomic.Uint64 // any goroutine writes it
}

// polled counts a poll that found n completions.
func (c *counts) polled(n int) {
	if n > 0 {
		release.Count(&c.found, 1)
	} else {
		release.Count(&c.empty, 1)
	}
}

func (c *counts) now() hw.PollCounts {
	return hw.PollCounts{
		Found: c.found.Load(), Empty: c.empty.Load(), Consumers: c.consumers.Load(),
		Arms: c.arms.Load(), Waits: c.waits.Load(), Wakes: c.wakes.Load(),
		Spun: time.Duration(c.spun.Load()), HandBacks: c.handBacks.Load(),
	}
}
