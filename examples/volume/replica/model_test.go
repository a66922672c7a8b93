package replica

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/examples/volume/entry"
	"godat/examples/volume/fault"
)

// blocksAt is what a disk has after the committed record with an index.
func (c *cluster) blocksAt(t require.TestingT, index uint64) []byte {
	b := make([]byte, blocks)
	for _, record := range c.committed[:index] {
		e, err := entry.Parse(record.Data)
		require.NoError(t, err)
		to := b[e.Off:][:e.Len]
		clear(to)
		copy(to, e.Data)
		copy(to, c.written[[2]uint64{record.Index, record.Term}])
	}
	return b
}

// apply lets a replica apply what it knows to be committed.
func (c *cluster) apply(t require.TestingT, n *node) {
	if n.Rotten() {
		return
	}
	require.NoError(t, n.Apply(c.knows(n)))
	if n.Disk().Ready() == nil {
		index, _ := n.Disk().Applied()
		has := make([]byte, blocks)
		require.NoError(t, n.Disk().Copy(has, 0))
		require.True(t, bytes.Equal(c.blocksAt(t, index), has), "replica %d after record %d", n.id, index)
	}
}

// crash ends a node, and opens it again. It has what it acknowledged.
func (c *cluster) crash(t require.TestingT, n *node, r *rand.Rand) {
	if n == c.leader {
		c.depose()
	}
	n.crash(t, r)
	if n.out {
		return
	}
	require.False(t, n.Rotten(), "replica %d", n.id)
	if c.leader != nil {
		_, last := n.log.Bounds()
		require.GreaterOrEqual(t, last, n.match, "replica %d has what it acknowledged", n.id)
	}
}

// end lets the cluster come to rest, and compares all disks.
func (c *cluster) end(t *rapid.T) {
	for _, n := range c.nodes {
		c.crash(t, n, seed(t))
	}
	for _, n := range c.nodes {
		if c.leader == nil {
			c.elect(t, n)
		}
	}
	require.NotNil(t, c.leader)
	for _, n := range c.nodes {
		c.resend(t, n)
	}
	c.rest(t)
	for range nodes {
		for _, n := range c.nodes {
			if n.out {
				c.bringBack(t, n, blocks)
			} else {
				c.resend(t, n)
			}
		}
		c.rest(t)
	}
	for range 40 { // a disk may wait for indexes that were cut
		c.propose(entry.Entry{})
	}
	c.rest(t)
	require.Len(t, c.committed, int(c.next-1))
	for _, n := range c.nodes {
		require.NoError(t, n.Disk().Ready())
		index, _ := n.Disk().Applied()
		require.Equal(t, c.next-1, index, "replica %d", n.id)
	}
}

// deliverAll makes all records stable everywhere.
func (c *cluster) deliverAll(t require.TestingT) {
	require.NoError(t, c.acceptOwn())
	for _, n := range c.nodes {
		for len(n.queue) != 0 {
			require.NoError(t, c.deliver(n))
		}
	}
}

// release tells the leader what a replica has released.
func (c *cluster) release(n *node, index uint64) {
	n.stable = index
	if c.leader != nil && !n.out {
		c.pool.Release(n.id, index)
	}
}

// rest has all records applied and released everywhere.
func (c *cluster) rest(t require.TestingT) {
	c.deliverAll(t)
	for _, n := range c.nodes {
		c.apply(t, n)
		index, err := n.Release()
		require.NoError(t, err)
		c.release(n, index)
	}
}

// TestReplicasHaveAllThatWasAcknowledged runs three replicas with crashes, power cuts,
// elections and rebuilds at any point.
func TestReplicasHaveAllThatWasAcknowledged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t)
		c.elect(t, c.nodes[0])
		some := func(t *rapid.T) *node { return c.nodes[rapid.IntRange(0, nodes-1).Draw(t, "node")] }
		offset := func(t *rapid.T, n int) uint64 {
			return uint64(rapid.IntRange(0, (blocks-n)/512).Draw(t, "offset") * 512)
		}
		deliver := func(t *rapid.T, n *node) {
			if len(n.queue) == 0 {
				return
			}
			switch err := c.deliver(n); {
			case errors.Is(err, fault.ErrDisk):
				c.crash(t, n, seed(t))
			default:
				require.NoError(t, err)
			}
		}
		write := func(t *rapid.T) {
			if c.leader == nil {
				return
			}
			n := rapid.IntRange(1, 8).Draw(t, "blocks") * 512
			if c.fill(t, n, offset(t, n)) && rapid.Bool().Draw(t, "name") {
				c.name()
			}
		}
		accept := func(t *rapid.T) {
			if c.leader != nil {
				if err := c.acceptOwn(); errors.Is(err, fault.ErrDisk) {
					c.crash(t, c.leader, seed(t))
				} else {
					require.NoError(t, err)
				}
			}
		}
		release := func(t *rapid.T) {
			n := some(t)
			c.apply(t, n)
			index, err := n.Release()
			if errors.Is(err, fault.ErrDisk) {
				c.crash(t, n, seed(t))
				return
			}
			require.NoError(t, err)
			c.release(n, index)
		}
		all := func(t *rapid.T) {
			accept(t)
			for _, n := range c.nodes {
				for len(n.queue) != 0 {
					deliver(t, n)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": write, "write more": write, "write still more": write,
			"write within": func(t *rapid.T) {
				if c.leader != nil {
					off := offset(t, 512)
					b := c.data(off, 512)
					c.propose(entry.Entry{Op: entry.Small, Off: off, Len: 512, Data: b}.Sealed(b))
				}
			},
			"accept": accept, "accept more": accept,
			"deliver":      func(t *rapid.T) { deliver(t, some(t)) },
			"deliver more": func(t *rapid.T) { deliver(t, some(t)) },
			"deliver all":  all,
			"apply":        func(t *rapid.T) { c.apply(t, some(t)) },
			"release":      release, "release more": release, "release still more": release,
			"elect":               func(t *rapid.T) { c.elect(t, some(t)) },
			"drop the connection": func(t *rapid.T) { c.resend(t, some(t)) },
			"kill": func(t *rapid.T) {
				n := some(t)
				c.crash(t, n, nil)
				c.resend(t, n)
			},
			"cut the power": func(t *rapid.T) {
				n := some(t)
				c.crash(t, n, seed(t))
				c.resend(t, n)
			},
			"cut all power": func(t *rapid.T) {
				for _, n := range c.nodes {
					c.crash(t, n, seed(t))
				}
			},
			"fail": func(t *rapid.T) {
				n := some(t)
				n.slots.FailAfter(rapid.IntRange(0, 1).Draw(t, "flushes"))
				n.disk.FailAfter(rapid.IntRange(0, 3).Draw(t, "flushes"))
				n.log.doomed = rapid.Bool().Draw(t, "log")
			},
			"a late append": func(t *rapid.T) {
				if len(c.late) == 0 {
					return
				}
				l := c.late[0]
				c.late = c.late[1:]
				switch err := c.take(l.to, l.message); {
				case errors.Is(err, fault.ErrDisk):
					c.crash(t, l.to, seed(t))
				case !errors.Is(err, errRefused):
					require.NoError(t, err)
				}
			},
			"take out": func(t *rapid.T) {
				n := some(t)
				if c.leader != nil && n != c.leader {
					c.takeOut(n)
				}
			},
			"lose the disks": func(t *rapid.T) {
				if !c.nodes[0].lost && !c.nodes[1].lost && !c.nodes[2].lost {
					c.lose(t, some(t))
				}
			},
			"bring back": func(t *rapid.T) {
				n := some(t)
				if c.leader != nil && n.out {
					c.bringBack(t, n, rapid.IntRange(0, 3).Draw(t, "chunks"))
				}
			},
		})
		c.end(t)
	})
}
