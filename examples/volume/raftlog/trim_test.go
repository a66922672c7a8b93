package raftlog

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/examples/volume/replica"
)

// The engine's goroutine says up to where records are not offered while the replica's removes them.
func TestALogIsTrimmedWhileItsFloorRises(t *testing.T) {
	const rounds, step = 20, 4 * slack
	k := open(t)
	records := make([]replica.Record, rounds*step)
	for i := range records {
		records[i] = replica.Record{Index: uint64(i) + 1, Term: 1}
	}
	require.NoError(t, k.Append(records))
	for round := range uint64(rounds) {
		var rising sync.WaitGroup
		rising.Go(func() {
			for i := range uint64(step) {
				k.SetFloor(round*step + i + 1)
			}
		})
		var err error
		for first := uint64(0); err == nil && first <= round*step+slack; first, _ = k.Bounds() {
			err = k.Trim()
		}
		rising.Wait()
		require.NoError(t, err)
	}
}
