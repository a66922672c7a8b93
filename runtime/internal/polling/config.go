package polling

import "time"

// Config says how the device is polled: runtime.PollerConfig explains its fields, but CQDepth, the depth of the
// completion queues, which is 992 without it. A queue pair that needs more gets a deeper one.
type Config struct {
	CPUs       []int
	SpinRounds int
	CQDepth    int
}

const (
	pollBatch      = 64
	defaultCQDepth = 992 // makes a ring of 1024 places, since a ring has 32 more than its depth
	degradedPeriod = time.Millisecond
)
