package ep

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/internal/yield"
)

func TestALatchWakesWhoeverWaitsWhenItOpens(t *testing.T) {
	var l latch
	for range 300 {
		var both sync.WaitGroup
		both.Go(l.wait)
		both.Go(l.open)
		both.Wait()
		l.wait() // an open latch keeps nobody
		l.open()
		assert.Same(t, opened, l.state.Load())

		l.shut()
		both.Go(l.wait)
		both.Go(l.wait)
		yield.Until(func() bool { return l.state.Load() != nil })
		assert.NotSame(t, opened, l.state.Load())
		l.open()
		both.Wait()
		l.shut()
	}
}
