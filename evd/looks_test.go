package evd

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/yield"
)

// Too few batches are free for a batch that is not full to go out. It follows when
// one is released, though no producer comes by.
func TestReleaseSendsABatchThatHadToWait(t *testing.T) {
	d := newDispatcher(t, Config{Mode: ModeBatch, QLen: 64, BatchMax: 4})
	b := d.main.batches
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

// A dispatcher's iterator, as a waiter, is who hears of the event that it waited for.
// The CNO hears of what it leaves behind.
func TestTheCNOHearsOfWhatAnIteratorLeaves(t *testing.T) {
	for name, tc := range map[string]struct {
		events []uint64
		left   bool
	}{
		"nothing":   {list(1), false},
		"one event": {list(1, 2), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := NewCNO(CNOConfig{})
				require.NoError(t, err)
				d := newDispatcher(t, Config{CNO: c})
				defer func() { d.Abort(); require.NoError(t, c.Close()) }()
				go func() {
					for range d.Events(t.Context()) {
						break
					}
				}()
				synctest.Wait()
				require.True(t, d.Main().Reserve(len(tc.events)))
				for _, cookie := range tc.events {
					d.Main().Put(dto(cookie), false)
				}
				d.Main().Flush()
				synctest.Wait()
				hint, err := c.Trigger()
				if tc.left {
					require.NoError(t, err)
					assert.Same(t, d, hint)
				} else {
					require.ErrorIs(t, err, &hw.Error{Type: hw.QueueEmpty})
				}
			})
		})
	}
}

// An event that is sent while a poster looks for room counts twice for a moment. The
// poster looks again before it is refused.
func TestAReservationIsNotRefusedForAnEventThatCountsTwice(t *testing.T) {
	yield.Interleave(func() (first, second, check func()) {
		d := newDispatcher(t, Config{Mode: ModeChannel, QLen: 4})
		q := d.Main()
		room := int(q.limit.Load())
		require.True(t, q.Reserve(room))
		q.Put(dto(1), false)
		<-d.C() // one place is free
		granted := false
		return func() { granted = q.Reserve(1) },
			func() { q.Put(dto(2), false) },
			func() {
				assert.True(t, granted)
				q.Release(room - 1)
			}
	})
}
