package soft

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// slow is an accessor whose access takes a number of looks.
type slow struct{ looks atomic.Int64 }

func (s *slow) InProgress() (word uint64, busy bool) { return 1, s.looks.Load() < 200 }

func (s *slow) Over(uint64) bool { return s.looks.Add(1) >= 200 }

// A program tests itself in a bubble: there time passes only while nobody waits for a lock.
func TestAWaitUnderALockEndsInABubble(t *testing.T) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		synctest.Test(t, func(*testing.T) {
			var of slow
			z, word := new(Zone), new(atomic.Uint32)
			var p Presence
			p.Init(z, &of, word, 1)
			p.Enter()
			var mu sync.Mutex
			mu.Lock()
			var waits sync.WaitGroup
			waits.Go(mu.Lock)
			z.Await()
			mu.Unlock()
			waits.Wait()
		})
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		assert.Fail(t, "the wait has not ended")
	}
}
