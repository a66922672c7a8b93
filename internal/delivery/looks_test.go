package delivery

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/internal/yield"
)

// Too few batches are free for a batch that is not full to go out. The batch goes
// out when one is released, though no producer comes by.
func TestReleaseSendsABatchThatHadToWait(t *testing.T) {
	d := newDispatcher(t, Config{Way: Batches, QLen: 64, BatchMax: 4})
	b := d.batcher()
	var out []*Batch
	for !b.wanted {
		put(t, d.Main(), uint64(len(out)))
		select {
		case batch := <-d.Batches():
			out = append(out, batch)
		default:
		}
		require.Less(t, len(out), 64)
	}
	require.Empty(t, d.Batches())
	for _, batch := range out {
		batch.Release()
	}
	require.Len(t, d.Batches(), 1)
	last := <-d.Batches()
	assert.Equal(t, list(uint64(len(out))), cookies(last.Events()))
	last.Release()
}

// An event that is sent while a poster looks for room counts twice for a moment. The
// poster looks again before it is refused.
func TestAReservationIsNotRefusedForAnEventThatCountsTwice(t *testing.T) {
	yield.Interleave(func() (first, second, check func()) {
		d := newDispatcher(t, Config{Way: Channel, QLen: 4})
		q := d.Main()
		room := int(q.places.limit.Load())
		require.True(t, q.Reserve(room))
		q.Put(dto(1))
		<-d.C() // one place is free
		granted := false
		return func() { granted = q.Reserve(1) },
			func() { q.Put(dto(2)) },
			func() {
				assert.True(t, granted)
				q.Release(room - 1)
			}
	})
}
