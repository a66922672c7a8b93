package rpc

import (
	"sync/atomic"
	"time"
)

// ending is since when an end is being closed. The zero value is of one that is not.
type ending struct{ at atomic.Pointer[time.Time] }

// begin says that Close was called. A later call changes nothing.
func (e *ending) begin() {
	now := time.Now()
	e.at.CompareAndSwap(nil, &now)
}

// age is how long ago that was; 0 if it was not.
func (e *ending) age() time.Duration {
	at := e.at.Load()
	if at == nil {
		return 0
	}
	return max(time.Since(*at), 1)
}

// endless says that a Close does not return, if it has not for so long.
func endless(age, late time.Duration) string {
	if age < late {
		return ""
	}
	return "its Close has not returned for " + lasting(age) + "; /debug/pprof/goroutine?debug=1 shows what it waits for"
}
