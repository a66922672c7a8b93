package polling

import "time"

// Config says how the device is polled. Its fields are those of runtime.PollerConfig,
// which explains them.
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
