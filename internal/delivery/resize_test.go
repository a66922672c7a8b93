package delivery

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/hw"
)

// A waiter that looks and yields before it sleeps counts as one that sleeps.
func TestResizeSeesAWaiterThatDoesNotSleepYet(t *testing.T) {
	d := newDispatcher(t, Config{})
	d.main.consumer.spins = math.MaxInt
	done := make(chan error)
	go func() {
		_, _, err := waitOne(d, background, 3)
		done <- err
	}()
	eventually(t, "a goroutine waits", func() bool {
		d.length.mu.Lock()
		defer d.length.mu.Unlock()
		return d.length.expected == 3
	})
	require.False(t, sleeping(d))
	isError(t, d.Resize(2), hw.InvalidState, hw.StateEVDWaiter)
	require.NoError(t, d.Resize(3))
	put(t, d.Main(), 1, 2, 3)
	require.NoError(t, <-done)
	require.NoError(t, d.Resize(2))
}

// A waiter that comes after Resize gets the error that its Wait would have got if
// it had been called then.
func TestAWaitAboveTheLengthThatResizeLeftFails(t *testing.T) {
	d := newDispatcher(t, Config{})
	require.NoError(t, d.Resize(2))
	c := d.Consumer()
	require.True(t, c.turn.acquire(turnWaiter))
	defer c.release()
	err := c.await(background, 3, 0) // Wait has checked the threshold against the earlier length
	require.ErrorIs(t, err, errThreshold)
	isError(t, waitError("evd.Wait", err), hw.InvalidParameter, hw.Arg3)
	require.NoError(t, d.Resize(1))
}
