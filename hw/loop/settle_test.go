package loop

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
)

// Settle of a region at either end of a connection waits for the holder of its pipe. That
// of a region in another zone does not.
func TestSettleWaitsForTheAccessesInItsZone(t *testing.T) {
	a, _, x, y := longPair(t)
	_, _, other, _ := longPair(t)
	p := a.qp.(*queuePair).out.Load()
	for _, region := range []*area{x, y} {
		hold(t, a)
		other.mr.(hw.Remapper).Settle()
		var released atomic.Bool
		late := make(chan bool)
		go func() {
			region.mr.(hw.Remapper).Settle()
			late <- released.Load()
		}()
		for range 100 {
			runtime.Gosched()
		}
		released.Store(true)
		p.grant()
		p.run()
		assert.True(t, <-late)
	}
}
