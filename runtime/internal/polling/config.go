package polling

import (
	goruntime "runtime"
	"time"
)

// Config says how the device is polled. Its fields are those of runtime.PollerConfig,
// which explains them.
type Config struct {
	ConsumerPolls   bool
	CPUs            []int
	SpinRounds      int
	DelivererRounds int
	CQDepth         int
}

const (
	pollBatch      = 64
	defaultRounds  = 20  // longer than a round trip takes, and short enough to cost little
	defaultCQDepth = 992 // makes a ring of 1024 places, since a ring has 32 more than its depth
	minThreadProcs = 3
	degradedPeriod = time.Millisecond
)

// hasThread reports whether a locked thread polls, and deliverers deliver. A thread that
// spins and a deliverer that spins for it keep two processors busy. Where there are no
// more, each thread that wakes beside them, such as the one that goes on with the
// scheduler's work while the locked goroutine is preempted, takes one of their
// processors for milliseconds. So without a processor to spare a goroutine does both
// jobs, unless the program asks for a thread or for deliverers.
func (cfg *Config) hasThread() bool {
	return !cfg.ConsumerPolls && (len(cfg.CPUs) > 0 || cfg.DelivererRounds != 0 || processorToSpare())
}

// processorToSpare reports whether a spinning thread leaves the program two processors.
func processorToSpare() bool { return goruntime.GOMAXPROCS(0) >= minThreadProcs }
