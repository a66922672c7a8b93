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
	defaultSpin    = 20
	defaultRounds  = 20  // longer than a round trip takes, and short enough to cost little
	defaultCQDepth = 992 // makes a ring of 1024 places, since a ring has 32 more than its depth
	minSpinProcs   = 3
	degradedPeriod = time.Millisecond
)

// spins is the number of rounds that SpinRounds stands for.
func (cfg *Config) spins() int {
	if cfg.SpinRounds == 0 && goruntime.GOMAXPROCS(0) >= minSpinProcs {
		return defaultSpin
	}
	return max(0, cfg.SpinRounds)
}
