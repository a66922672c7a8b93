package iwarp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestEveryoneWhoWaitsForAFunctionIsWokenWhenItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h hooks
		began, on := time.Now(), make(chan struct{})
		go func() {
			h.enter("one")
			defer h.leave()
			<-on
		}()
		go func() { // a function that closes the device itself does not wait for itself
			h.enter("two")
			defer h.leave()
			assert.Empty(t, h.wait(hookTime))
		}()
		synctest.Wait()
		for range 2 {
			go func() { assert.Empty(t, h.wait(hookTime)) }()
		}
		synctest.Wait()
		close(on)
		synctest.Wait()
		assert.Zero(t, time.Since(began))
		h.mu.Lock()
		defer h.mu.Unlock()
		assert.Empty(t, h.inside, "the second has not waited either")
	})
}
