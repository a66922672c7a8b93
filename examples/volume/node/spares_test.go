package node

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// take has the leader take a write that was placed, and waits for its answer.
func (b *bench) take(n int) {
	b.Helper()
	w, answer := b.write(n)
	b.all[0].Device().Take(w)
	require.NoError(b, answer())
}

// same reports whether all nodes have applied what the leader has.
func (b *bench) same() bool {
	last := b.all[0].Status().Last
	for i := range b.all {
		if b.all[i].Status().Applied != last {
			return false
		}
	}
	return true
}

func TestOthersLearnOfACommitWithTheNextTickOrAtOnceIfItIsNoWrite(t *testing.T) {
	b := newBench(t)
	leader := &b.all[0]
	for range 3 {
		b.take(4096)
	}
	b.eventually(func() bool {
		leader.events.put(leader.consensus.tick) // what another node has not answered yet, its next heartbeat says
		return b.same()
	}, "no heartbeat says it")
	b.take(4096)
	require.NoError(t, leader.Device().Zero(0, 8192))
	b.eventually(b.same, "a record that is no write is not told at once")
}

func TestSlotsAreFreedWithoutATick(t *testing.T) {
	b := newBench(t)
	var all sync.WaitGroup
	for range benchSlots {
		all.Go(func() {
			for range 8 {
				w, answer := b.write(smallest)
				b.all[0].Device().Take(w)
				assert.NoError(b, answer())
			}
		})
	}
	all.Wait()
}
