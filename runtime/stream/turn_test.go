package stream

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// A call on the long way may come before a claim, post behind it, and go before the claim is
// looked at. No post is lost, wherever the one on the short way is meanwhile.
func TestAShortWriteGivesWayToACallThatHasComeAndGone(t *testing.T) {
	client, server := newRig(t, "loop", Config{}).pair()
	client.await(client.up, nil)
	turn := &client.sending
	rounds := 0
	yield.InterleaveTwo(func() (first, second, third, check func()) {
		rounds++
		has := false // the call on the long way has the turn
		return func() {
				if turn.claim(&client.sends) {
					client.writeShort([]byte{1})
				}
			}, func() {
				turn.mu.Lock()
				turn.come()
				has = !turn.short.Claimed()
			}, func() {
				if has {
					assert.NoError(t, client.post([]byte{2}, &message{}))
				}
				turn.Unlock()
			}, func() {
				sent := client.out.produced.Load()
				require.Equal(t, sent, server.in.produced.Load(), "round %d", rounds)
				for server.in.consumed.Load() < sent {
					_, err := server.Read(make([]byte, 8))
					require.NoError(t, err)
				}
				client.report()
			}
	})
}
