package polling

import (
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"godat/hw"
)

// hot is a device that always has completions, or has them at every other poll.
type hot struct {
	metronome
	every uint64
	polls atomic.Uint64
}

func (d *hot) Poll(wcs []hw.WC) int {
	if d.polls.Add(1)%d.every != 0 {
		return 0
	}
	wcs[0] = hw.WC{}
	return 1
}

// The back-stop yields after each poll, so on a single processor a goroutine that computes has
// all of it but for one poll in each of the scheduler's time slices, of 10 ms.
func TestAGoroutineThatComputesHasItsShareBesideABusyDevice(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(1))
	for _, every := range []uint64{1, 2, 5} {
		dev := &hot{every: every}
		newEngine(t, dev, Config{}, completeFunc(func([]hw.WC) {}))
		computed, end := 0, time.Now().Add(200*time.Millisecond)
		goruntime.Gosched()
		began, before := time.Now(), dev.polls.Load()
		for time.Now().Before(end) {
			computed++
		}
		polls, took := dev.polls.Load()-before, time.Since(began)
		assert.Less(t, polls, uint64(took/(2*time.Millisecond)), "%d polls in %v, while %d rounds were computed", polls, took, computed)
	}
}
