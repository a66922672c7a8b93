package raftgodat

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func FuzzAnAppendIsParsedToItselfOrRefused(f *testing.F) {
	for _, sizes := range [][]int{{}, {0}, {3, 0, 9}} {
		b, err := appendAppend(nil, place{1, 2}, &raft.AppendEntriesRequest{RPCHeader: header, Term: 10, Entries: entries(5, sizes...)})
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, r, err := parseAppend(b)
		if err != nil {
			return
		}
		again, err := appendAppend(nil, p, r)
		require.NoError(t, err)
		q, s, err := parseAppend(again)
		require.NoError(t, err)
		assert.Equal(t, p, q)
		assert.Equal(t, r, s)
	})
}

func TestAnAppendThatIsCutIsRefused(t *testing.T) {
	whole, err := appendAppend(nil, place{1, 2}, &raft.AppendEntriesRequest{RPCHeader: header, Entries: entries(5, 100, 10)})
	require.NoError(t, err)
	_, _, err = parseAppend(whole)
	require.NoError(t, err)
	passed := 0
	for n := range whole {
		if _, r, err := parseAppend(whole[:n]); err == nil {
			passed++
			assert.Less(t, len(r.Entries), 2, "between two entries nothing is cut")
		}
	}
	assert.Equal(t, 2, passed, "before the first entry, and before the second")
}
