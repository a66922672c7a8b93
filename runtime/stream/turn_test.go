package stream

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"godat/internal/yield"
)

// The two ways to take a turn exclude each other, and themselves.
func TestOneCallHasTheTurn(t *testing.T) {
	client, _ := newRig(t, "loop", Config{}).pair()
	client.await(client.up, nil)
	var (
		turn     = &client.sending
		has      atomic.Int32 // calls that have the turn
		overlaps atomic.Int32
		guarded  int // by the turn, for the race detector
	)
	use := func() {
		alone := has.Add(1) == 1
		guarded++
		for range 100 { // long enough for the other call to come
			alone = alone && has.Load() == 1
		}
		if has.Add(-1); !alone {
			overlaps.Add(1)
		}
	}
	long := func() {
		for range 20 {
			turn.Lock()
			use()
			turn.Unlock()
		}
	}
	short := func() {
		for range 20 {
			yield.Until(func() bool { return turn.claim(&client.sends) })
			use()
			turn.short.Release()
		}
	}
	rounds := 40_000
	if testing.Short() {
		rounds /= 20
	}
	for name, second := range map[string]func(){"short": short, "long": long} {
		assert.True(t, yield.Meet(rounds, time.Minute, short, second), name)
		assert.Zero(t, overlaps.Load(), name)
	}
}
