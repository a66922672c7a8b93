package iwarp

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
)

// Settle waits for a connection of the region's zone that touches memory, and for none of
// another zone.
func TestSettleWaitsForTheAccessesInItsZone(t *testing.T) {
	n := newNode(t, New(Config{}), nil)
	other := newNode(t, New(Config{}), nil).memory(8, hw.LocalWrite)
	l := connections(n.peer())[0]
	l.recv.place.beginTouch()
	defer l.recv.place.present.Leave()
	other.MR.(hw.Remapper).Settle()
	region := n.memory(8, hw.LocalWrite)
	var moved atomic.Bool
	late := make(chan bool)
	go func() {
		region.MR.(hw.Remapper).Settle()
		late <- moved.Load()
	}()
	for range 100 {
		runtime.Gosched()
	}
	moved.Store(true)
	l.recv.place.endTouch()
	assert.True(t, <-late)
}
