package node

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.etcd.io/raft/v3/tracker"
)

func TestALeaderKnowsHowLongAReplicaTakesUntilItHasMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reign{
			c:   &consensus{site: &site{cfg: Config{ID: 1}}, last: 7},
			out: make(map[uint64]bool), unheard: make(map[uint64]int), takes: make(map[uint64]*taking),
		}
		at := func(match uint64, after time.Duration) time.Duration {
			time.Sleep(after)
			r.measure(2, &tracker.Progress{Match: match, State: tracker.StateReplicate})
			return r.takesOf(2)
		}
		assert.Zero(t, at(7, 0), "it has all")
		assert.Zero(t, at(7, time.Hour), "it has all")
		r.c.last = 9
		assert.Zero(t, at(7, time.Second), "it lacks something from now on")
		assert.Equal(t, 3*time.Second, at(7, 3*time.Second))
		assert.Equal(t, 4*time.Second, at(8, time.Second), "of late")
		assert.Equal(t, 4*time.Second, at(9, time.Second), "of late")
		assert.Zero(t, at(9, recent), "that was long ago")

		r.c.last = 10
		assert.Zero(t, at(9, time.Second))
		r.unheard[2] = electionTicks
		assert.Zero(t, at(9, time.Minute), "it is silent, and told as that")
		r.unheard[2] = 0
		assert.Zero(t, at(9, time.Minute), "it is heard again from now on")
		assert.Equal(t, time.Second, at(9, time.Second))
		assert.Zero(t, r.takesOf(3), "nobody has looked at it")
	})
}
