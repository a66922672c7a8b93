package delivery

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A waiter that leaves signals only iterators that it sees asleep. So an iterator looks once
// more when it has said that it sleeps.
func TestAnIteratorLooksBeforeItSleepsForItsTurn(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	turn := &turn{next: make(chan struct{}, 1)}
	assert.True(t, turn.acquire(turnWaiter))
	assert.False(t, turn.await(ended, nil), "a goroutine waits")
	turn.release(0) // between the iterator's acquire and its await
	turn.signal()
	assert.True(t, turn.await(ended, nil), "no goroutine waits any more, and none will signal")
	assert.Zero(t, turn.queued.Load())
}
