package replica

import (
	"context"
	"errors"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/examples/volume/fault"
	"godat/examples/volume/state"
)

// lose gives a node new disks.
func (c *cluster) lose(t require.TestingT, n *node) {
	switch c.leader {
	case n:
		c.depose()
	case nil:
	default:
		c.pool.Leave(n.id)
	}
	c.late = slices.DeleteFunc(c.late, func(l late) bool { return l.to == n })
	n.life++ // nobody reads from it any more
	fresh := newNode(t, n.id)
	fresh.out, fresh.lost = true, true
	c.nodes[n.id] = fresh
}

// bringBack rebuilds a replica that is out, up to a number of chunks.
func (c *cluster) bringBack(t *rapid.T, n *node, chunks int) {
	if !n.lost && !n.Rotten() && c.has(n) && c.pool.Join(n.id, n.stable) {
		n.out = false
		if c.resend(t, n); !n.out {
			return
		}
	}
	c.apply(t, c.leader)
	since := n.Disk().Since()
	s, err := c.leader.Disk().Snapshot(context.Background(), since)
	if applied, _ := c.leader.Disk().Applied(); applied < since {
		require.Error(t, err)
		return // an earlier leader had applied more: the replica asks again
	}
	require.NoError(t, err)
	if !c.spares(n, s.Index) || n.lost && (s.Index == 0 || c.committed[s.Index-1].Term != c.term) {
		return // new disks count when a majority without them has committed
	}
	require.True(t, c.pool.Join(n.id, s.Index))
	err = c.rebuild(t, n, s, chunks)
	if errors.Is(err, fault.ErrDisk) {
		c.crash(t, n, seed(t))
	}
	if n.Rotten() || err != nil {
		c.pool.Leave(n.id)
		return
	}
	n.out, n.lost, n.missed = false, false, false
	c.resend(t, n)
}

// spares reports whether a replica's log and slots may go for a rebuild: it has lost data
// anyway, or the other direct replicas have all up to an index.
func (c *cluster) spares(n *node, index uint64) bool {
	for _, other := range c.nodes {
		if !other.out && other.match < index {
			return n.Rotten() || n.lost
		}
	}
	return true
}

// rebuild rebuilds a replica from a snapshot of the leader.
func (c *cluster) rebuild(t *rapid.T, n *node, s state.Snapshot, chunks int) error {
	caught, err := n.CatchUp(s)
	if err != nil {
		return err
	}
	for chunk, ok := caught.Next(); ok; chunk, ok = caught.Next() {
		if chunks--; chunks < 0 {
			return fault.ErrDisk
		}
		b := make([]byte, min(state.ChunkLen, s.Size-chunk.Off))
		x, index, err := c.leader.Disk().Chunk(chunk.Off, b)
		if err == nil {
			err = caught.Put(x, index, b)
		}
		if err != nil {
			return err
		}
	}
	return n.CaughtUp(caught)
}
