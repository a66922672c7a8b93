package sock

import (
	"runtime"
	"time"
)

// Pause lets others run between two writes of a goroutine, which owns it: what this process has
// sent to itself is best taken while it is in the processor's cache. A consumer that is parked until
// the scheduler polls the network runs only if the goroutine parks too; see netpoll. On a processor
// that has much else to run that takes up to 10 ms, and then the next pauses do not wait.
type Pause struct {
	passed int // pauses that still do not wait
}

// After a pause that took longer than slowPause, the next slowPauses do not wait.
const (
	slowPause  = time.Millisecond
	slowPauses = 32
)

// Now pauses.
func (p *Pause) Now() {
	runtime.Gosched()
	if p.passed > 0 {
		p.passed--
		return
	}
	start := time.Now()
	network.join()
	if time.Since(start) > slowPause {
		p.passed = slowPauses
	}
}
