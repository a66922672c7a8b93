package node

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
	"godat/examples/volume/fault"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
	dat "godat/runtime"
)

// valve is a store whose flushes wait while a test holds the lock.
type valve struct {
	*fault.Store
	sync.RWMutex
}

func (v *valve) Flush(off, n int) error {
	v.RLock()
	defer v.RUnlock()
	return v.Store.Flush(off, n)
}

// member is a node of a trio.
type member struct {
	*Node
	disk *valve
}

// trio is a volume of three nodes in this process.
type trio struct {
	testing.TB
	all [3]member
}

// newTrio runs three nodes, but for the ones whose disks absent refuses.
func newTrio(t testing.TB, absent func(id uint64, disk *valve) bool) *trio {
	return newTrioOf(t, absent, nil, func(*Config) {})
}

// newTrioOf is newTrio with files of the logs, and a change of what the nodes are.
func newTrioOf(t testing.TB, absent func(id uint64, disk *valve) bool, files types.VFS, change func(*Config)) *trio {
	c := &trio{TB: t}
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	members := make(raftlog.Members)
	for id := range uint64(3) {
		members[id+1] = raftlog.Member{Addr: fmt.Sprintf("loop:%d", 7001+id)}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var logs []*raftlog.Log
	for i := range c.all {
		log, err := raftlog.Open(t.TempDir(), raftlog.Config{Files: files})
		require.NoError(t, err)
		require.NoError(t, log.SetMembers(members))
		logs = append(logs, log)
		m := &c.all[i]
		m.disk = &valve{Store: fault.New(state.Size(blocks))}
		id := uint64(i + 1)
		if absent != nil && absent(id, m.disk) {
			continue
		}
		cfg := Config{
			ID: id, Addr: members[id].Addr, Layout: layout, Journal: fault.New(layout.Size()), Disk: m.disk, Log: log, Tick: 20 * time.Millisecond,
		}
		change(&cfg)
		m.Node, err = Open(t.Context(), ia, cfg)
		require.NoError(t, err)
	}
	for i := range c.all {
		if m := &c.all[i]; m.Node != nil {
			running.Go(func() { assert.NoError(t, m.Run(ctx)) })
		}
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
		for _, log := range logs {
			assert.NoError(t, log.Close())
		}
		assert.NoError(t, ia.CloseGraceful())
	})
	return c
}

// eventually waits until a condition holds.
func (c *trio) eventually(holds func() bool, otherwise string) {
	c.Helper()
	require.Eventually(c, holds, patient, 5*time.Millisecond, otherwise)
}

// leader waits for a node that serves, other than one.
func (c *trio) leader(but *member) (leader *member) {
	c.Helper()
	c.eventually(func() bool {
		for i := range c.all {
			if m := &c.all[i]; m != but && m.Node != nil && m.Status().State == nvme.ANAOptimized.String() {
				leader = m
				return true
			}
		}
		return false
	}, "nobody leads")
	return leader
}

func TestALeaderWithASlowDiskHandsOver(t *testing.T) {
	c := newTrio(t, nil)
	old := c.leader(nil)
	var others []*member
	for i := range c.all {
		if m := &c.all[i]; m != old {
			others = append(others, m)
		}
	}
	zero := func(m *member) error { return m.Device().Zero(0, 4096) }
	settled := func(m *member) bool {
		s := m.Status()
		return s.Applied == old.Status().Last && s.Released == s.Applied
	}
	require.NoError(t, zero(old))
	c.eventually(func() bool { return settled(others[0]) && settled(others[1]) && settled(old) }, "nothing is released")
	old.disk.Lock()
	for _, m := range others {
		m.disk.Lock()
	}
	last := old.Status().Last
	require.NoError(t, zero(old), "no write waits for a disk")
	inReign := func(f func(r *reign)) { require.True(t, old.ask(old.events, func() { f(old.consensus.reign) })) }
	c.eventually(func() (waits bool) {
		inReign(func(r *reign) { waits = r.mark > last })
		return waits
	}, "nothing is committed")
	inReign(func(r *reign) {
		pass := func(ticks int) (next uint64) {
			for range ticks {
				r.handOver()
			}
			return r.c.raft.Status().LeadTransferee
		}
		assert.Zero(t, pass(2*lateness), "all are slow")
		r.pool.Release(others[0].cfg.ID, r.mark)
		assert.Zero(t, pass(lateness-1), "another is a little ahead")
		assert.Equal(t, others[0].cfg.ID, pass(1))
	})
	for _, m := range others {
		m.disk.Unlock()
	}
	next := c.leader(old)
	require.NoError(t, zero(next), "the slow one is no leader")
	old.disk.Unlock()
	c.eventually(func() bool { return old.Status().Released == next.Status().Released }, "the slow one stays behind")
}

// Heartbeats come through where appends do not when the leader's own network is slow, and loses much.
func TestALeaderWhoseAppendsDoNotComeThroughLetsAnotherOneLead(t *testing.T) {
	c := newTrio(t, nil)
	old := c.leader(nil)
	require.NoError(t, old.Device().Zero(0, 4096))
	var others []*member
	for i := range c.all {
		if m := &c.all[i]; m != old {
			others = append(others, m)
		}
	}
	settled := func(m *member) bool { return m.Status().Released == old.Status().Last }
	c.eventually(func() bool { return settled(old) && settled(others[0]) && settled(others[1]) }, "nothing is released")
	for _, m := range others {
		m.door.fetching.Lock()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = old.Device().Zero(0, 4096) // made by both, or given up
	}()
	inReign := func(f func(r *reign)) { require.True(t, old.ask(old.events, func() { f(old.consensus.reign) })) }
	c.eventually(func() (waits bool) {
		inReign(func(r *reign) { waits = r.stall.ticks != 0 })
		return waits
	}, "the write does not wait")
	inReign(func(r *reign) {
		patience := r.c.stallTicks()
		pass := func(ticks int) (times int) {
			before := r.yielded
			for range ticks {
				r.watch()
			}
			return r.yielded - before
		}
		r.stall.ticks, r.stall.since = patience, r.stall.since.Add(-time.Minute)
		third := others[1].cfg.ID
		r.c.health.says(third, Self{Disk: Takes{Longest: callTime}})
		assert.Zero(t, pass(patience), "a disk is slow, which is no matter of this node's network")
		assert.Contains(t, r.waits(), "its disk is slow")
		r.c.health.says(third, Self{})
		r.rotten[third] = true
		assert.Zero(t, pass(patience), "one that is being rebuilt acknowledges nothing")
		r.rotten[third] = false
		r.unheard[third] = electionTicks + 1
		assert.Zero(t, pass(patience), "the one that is left elects nobody")
		r.unheard[third] = electionTicks
		r.stall.ticks = 0
		assert.Zero(t, pass(patience-1), "it may come through")
		r.stall.since = r.stall.since.Add(-time.Minute)
		assert.Contains(t, r.waits(), "writes have waited for 1m")
		for _, m := range others {
			assert.Contains(t, r.waits(), fmt.Sprintf("node %d at loop:%d: it answers", m.cfg.ID, 7000+m.cfg.ID))
		}
		assert.Equal(t, 1, pass(1))
		assert.Zero(t, pass(patience-1))
		assert.Equal(t, 1, pass(1), "it may not have come through")
		assert.Zero(t, r.c.yields.times)
	})
	next := c.leader(old)
	require.NoError(t, next.Device().Zero(0, 4096), "the two whose networks are fine are a majority")
	for _, m := range others {
		m.door.fetching.Unlock()
	}
	<-ended
	require.True(t, old.ask(old.events, func() { assert.Equal(t, 1, old.consensus.yields.times, "it has twice the patience the next time") }))
	c.eventually(func() bool { return old.Status().Released == next.Status().Released && old.Status().Waits == "" }, "the former leader stays behind")
}

func TestANodeThatIsRebuiltAndAWholeOneAreAMajority(t *testing.T) {
	c := newTrio(t, func(id uint64, disk *valve) bool {
		if id == 3 { // it began to catch up before it ended
			d, err := state.Open(disk, layout.Volume, 0)
			require.NoError(t, err)
			_, err = d.CatchUp(state.Snapshot{Size: blocks})
			require.NoError(t, err)
		}
		return id == 1
	})
	m := c.leader(nil)
	require.Equal(t, uint64(2), m.cfg.ID)
	require.NoError(t, m.Device().Zero(0, 4096))
	c.eventually(func() bool { return !c.all[2].Status().Rotten }, "it is not rebuilt")
}
