package node

import (
	"sync/atomic"
	"testing"
	"time"

	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/target"
	"godat/examples/volume/entry"
	"godat/examples/volume/fault"
	"godat/examples/volume/journal"
)

// counted are the files of logs, whose syncs are counted.
type counted struct {
	types.VFS
	syncs atomic.Int64
}

func (c *counted) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := c.VFS.Create(dir, name, size)
	return countedFile{f, c}, err
}

func (c *counted) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := c.VFS.OpenWriter(dir, name)
	return countedFile{f, c}, err
}

type countedFile struct {
	types.WritableFile
	c *counted
}

func (f countedFile) Sync() error {
	f.c.syncs.Add(1)
	return f.WritableFile.Sync()
}

// slots is a journal's store, whose flushes are counted.
type slots struct {
	*fault.Store
	flushes atomic.Int64
}

func (s *slots) Flush(off, n int) error {
	s.flushes.Add(1)
	return s.Store.Flush(off, n)
}

// costs are what writes cost, of all three nodes.
type costs struct{ logs, slots, passes, mails int64 }

// bench is a trio whose clock stands still, so that it does nothing but what it is asked for. Its first node leads.
type bench struct {
	*trio
	log    counted
	stores []*slots
}

const benchSlots = 32

func newBench(t *testing.T) *bench {
	b := &bench{log: counted{VFS: walfs.New()}}
	b.trio = newTrioOf(t, nil, &b.log, func(cfg *Config) {
		cfg.Layout = journal.Layout{Nodes: 3, Slots: benchSlots, SlotSize: layout.SlotSize, Volume: layout.Volume}
		s := &slots{Store: fault.New(cfg.Layout.Size())}
		b.stores = append(b.stores, s)
		cfg.Journal, cfg.Tick, cfg.held = s, time.Hour, time.Hour
	})
	first := &b.all[0]
	first.events.put(func() { assert.NoError(t, first.consensus.raft.Campaign()) })
	require.Same(t, first, b.leader(nil))
	b.settle()
	b.eventually(func() bool {
		for i := range b.all { // when they have applied the first record
			m := &b.all[i]
			m.ask(m.keeper.jobs, m.keeper.release)
		}
		return first.Status().Free == benchSlots
	}, "no slot is free")
	return b
}

// settle waits until all nodes have all.
func (b *bench) settle() {
	b.Helper()
	b.eventually(func() bool {
		_, first := b.all[0].log.Bounds()
		_, second := b.all[1].log.Bounds()
		_, third := b.all[2].log.Bounds()
		return first == second && second == third
	}, "a node lacks something")
	for i := range b.all {
		m := &b.all[i]
		m.ask(m.keeper.jobs, func() {}) // it has done what it began
	}
}

func (b *bench) costs() (c costs) {
	c = costs{logs: b.log.syncs.Load(), passes: int64(entry.Passes())}
	for i := range b.all {
		c.slots += b.stores[i].flushes.Load()
		for _, m := range []mailbox{b.all[i].events, b.all[i].keeper.jobs} {
			m.mu.Lock()
			c.mails += int64(m.all)
			m.mu.Unlock()
		}
	}
	return c
}

// write is a write of some bytes at the leader, which has been placed.
func (b *bench) write(n int) (w *target.Write, answer func() error) {
	w, answer = target.NewWrite()
	w.Len = n
	d := b.all[0].Device()
	d.Place(w)
	assert.NoError(b, answer())
	for at := range n {
		d.Room()[w.At+at] = byte(at)
	}
	return w, answer
}

// mostMails is how many functions the goroutines of three nodes may put into each other's mailboxes for a write that
// comes alone: 25 or 26 are usual, and settle puts in three. It were 31 if the others were told at once that it is committed.
const mostMails = 29

func TestAWriteIsSyncedOnceAtEachNodeAndSummedThreeTimes(t *testing.T) {
	for name, x := range map[string]struct {
		bytes int
		slots int64 // syncs of slots
	}{"in its entry": {4096, 0}, "in a slot": {smallest, 3}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			const writes = 20
			before := b.costs()
			for range writes {
				w, answer := b.write(x.bytes)
				b.all[0].Device().Take(w)
				require.NoError(t, answer())
				b.settle()
			}
			c := b.costs()
			assert.Equal(t, int64(3*writes), c.logs-before.logs)
			assert.Equal(t, x.slots*writes, c.slots-before.slots)
			assert.Equal(t, int64(3*writes), c.passes-before.passes, "where the entry is made, and where it comes")
			assert.LessOrEqual(t, c.mails-before.mails, int64(mostMails*writes), "mails")
		})
	}
}

func TestWritesThatWaitForTheDiskAreSyncedTogether(t *testing.T) {
	b := newBench(t)
	leader := &b.all[0]
	var answers []func() error
	take := func() {
		w, answer := b.write(smallest)
		leader.Device().Take(w)
		answers = append(answers, answer)
	}
	busy, began := make(chan struct{}), make(chan struct{})
	leader.keeper.jobs.put(func() {
		close(began)
		<-busy
	})
	<-began
	before := leader.Status().Last
	flushes := b.stores[0].flushes.Load()
	for range benchSlots / 2 {
		take()
		b.eventually(func() bool { return leader.Status().Last == before+uint64(len(answers)) }, "it is not proposed")
	}
	close(busy)
	for _, answer := range answers {
		require.NoError(t, answer())
	}
	assert.Equal(t, int64(1), b.stores[0].flushes.Load()-flushes)
}
