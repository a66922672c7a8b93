package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/mem"
)

// A batch of one goes the short way. A post that the short way leaves alone has armed
// no one-shot.
func TestAOneShotIsFreeAfterAPostThatFindsNoSlot(t *testing.T) {
	r := newRig(t)
	a, b := r.pair(&Attr{MaxRequestDTOs: 1})
	shot := r.dto.NewOneShot()
	op := DTO{Op: hw.OpSend, Segment: r.lmr.Segment(0, 8), OneShot: shot}
	require.NoError(t, a.PostSend(1, 0, r.lmr.Segment(0, 8)))
	_, err := a.PostBatch([]DTO{op})
	require.ErrorIs(t, err, &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceCredits})
	require.NoError(t, b.PostRecv(2, 0, r.lmr.Segment(8, 8)))
	for range 2 {
		require.NoError(t, r.next(r.dto).Err())
	}
	require.NoError(t, b.PostRecv(3, 0, r.lmr.Segment(8, 8)))
	n, err := a.PostBatch([]DTO{op})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	require.NoError(t, (<-shot.C()).Err())
	shot.Release()
	require.NoError(t, r.next(r.dto).Err())
}

// A batch of one asks of its operation what a longer batch asks.
func TestABatchOfOneReadsAsMuchAsItsSourceHas(t *testing.T) {
	r := newRig(t)
	a, _ := r.pair(nil)
	for _, length := range []uint32{4, 8} {
		remote := mem.RemoteSegment{Addr: r.lmr.Segment(64, 8).Addr, Len: length, Context: r.lmr.RemoteContext()}
		_, err := a.PostBatch([]DTO{{Op: hw.OpRead, Segment: r.lmr.Segment(0, 8), Remote: remote}})
		require.NoError(t, err)
		ev := r.next(r.dto)
		require.NoError(t, ev.Err())
		assert.Equal(t, length, ev.Length)
	}
}
