package node

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"godat/examples/nvmeof/nvme"
	"godat/examples/volume/fault"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
)

// newApplied is a follower that has applied three records of term 1.
func newApplied(t *testing.T) *follower {
	f := newFollower(t)
	close(f.slots.open)
	close(f.disk.open)
	for i := range uint64(3) {
		require.NoError(t, f.say(f.write(2, 1, i+1, uint32(4+i), byte(0xa1+i))))
		f.answers(pb.MsgAppResp)
	}
	f.commit(3)
	return f
}

// waitsFor waits until consensus has done what it was told.
func (f *follower) waitsFor() { require.True(f, f.ask(f.events, func() {})) }

func TestANodeThatIsAheadFollowsNobody(t *testing.T) {
	entry := func(index, term uint64) *pb.Entry {
		return &pb.Entry{Index: new(index), Term: new(term), Type: pb.EntryNormal.Enum()}
	}
	for name, m := range map[string]*pb.Message{
		"a later term begins where another record was applied": {
			Type: pb.MsgApp.Enum(), From: new(uint64(3)), Term: new(uint64(2)), Index: new(uint64(1)), LogTerm: new(uint64(1)), Entries: []*pb.Entry{entry(2, 2)},
		},
		"the same, and the records are gone": {
			Type: pb.MsgApp.Enum(), From: new(uint64(3)), Term: new(uint64(2)), Index: new(uint64(1)), LogTerm: new(uint64(1)), Entries: []*pb.Entry{entry(2, 2)},
		},
		"two have led in the same term": {
			Type: pb.MsgApp.Enum(), From: new(uint64(3)), Term: new(uint64(1)), Index: new(uint64(1)), LogTerm: new(uint64(1)), Entries: []*pb.Entry{entry(2, 1)},
		},
		"what goes before is of an earlier term": {
			Type: pb.MsgApp.Enum(), From: new(uint64(3)), Term: new(uint64(4)), Index: new(uint64(5)), LogTerm: new(uint64(0)),
		},
		"a disk of a later term has fewer records": {
			Type: pb.MsgSnap.Enum(), From: new(uint64(3)), Term: new(uint64(2)),
			Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(2)), Term: new(uint64(2)), ConfState: new(pb.ConfState)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newApplied(t)
			if strings.Contains(name, "gone") {
				require.NoError(t, f.log.Begin(3, 1))
			}
			_ = f.say(m)
			f.waitsFor()
			s := f.Status()
			require.Contains(t, s.Ahead, "node 1 has applied record 3, of term 1, which node 3, that leads in term")
			assert.Equal(t, s.Ahead, s.Waits)
			assert.Zero(t, s.Leader)
			assert.Equal(t, m.GetTerm(), max(s.Term, 1))
			assert.Equal(t, nvme.ANAInaccessible.String(), s.State)
			for _, from := range []uint64{2, 3} {
				again := beat()
				again.From, again.Term = new(from), new(uint64(9))
				err := f.say(again)
				require.ErrorIs(t, err, errStranger)
				require.ErrorContains(t, err, "never had")
			}
			g := newGuest(1)
			g.read.Len = 4096
			f.Device().Gate(g.read)
			require.ErrorIs(t, g.seen(), errElsewhere)
			require.True(t, f.ask(f.events, func() {
				f.consensus.catchUp(9, 9)
				assert.False(t, f.consensus.lacks(), "its disk stays as it is")
			}))
			assert.Equal(t, byte(0xa3), f.disk.Memory()[state.Size(0)])
			assert.Equal(t, uint64(3), f.Status().Last)
		})
	}
}

func TestANodeFollowsWhoHasWhatItHas(t *testing.T) {
	f := newApplied(t)
	all := f.write(2, 1, 1, 4, 0xa1)
	for i := range uint64(2) {
		all.Entries = append(all.Entries, f.write(2, 1, i+2, uint32(5+i), byte(0xa2+i)).Entries...)
	}
	all.From, all.Term = new(uint64(3)), new(uint64(2))
	require.NoError(t, f.say(all), "all once more, by a leader of a later term")
	require.NoError(t, f.say(f.write(3, 2, 5, 7, 0xa5)), "it lacks the one before")
	next := f.write(3, 2, 4, 7, 0xa4)
	next.LogTerm = new(uint64(1))
	require.NoError(t, f.say(next))
	late := f.write(2, 1, 3, 6, 0x77)
	require.Error(t, f.say(late), "of a leader of before")
	f.waitsFor()
	s := f.Status()
	assert.Empty(t, s.Ahead)
	assert.Equal(t, uint64(3), s.Leader)
	assert.Equal(t, uint64(4), s.Last)
}

func TestWhatALeaderSaysOfItsLogShowsWhoIsAhead(t *testing.T) {
	for name, x := range map[string]struct {
		applied, at uint64
		leader      Progress
		is          bool
	}{
		"it has as much":                       {5, 2, Progress{Match: 5, Term: 3, First: 6}, false},
		"it ends before":                       {5, 2, Progress{Match: 3, Behind: 1, Term: 2, First: 2}, true},
		"it is of before, and ends before":     {5, 2, Progress{Match: 4}, true},
		"its disk is behind its log":           {5, 2, Progress{Match: 3, Behind: 2, Term: 2, First: 2}, false},
		"it has more, of a later term":         {5, 2, Progress{Match: 500, Term: 3, First: 5}, true},
		"it has more, of the same term":        {5, 3, Progress{Match: 500, Term: 3, First: 5}, false},
		"nothing is applied":                   {0, 0, Progress{Match: 1, Term: 1, First: 1}, false},
		"nothing is applied, and it is before": {0, 0, Progress{}, false},
	} {
		assert.Equal(t, x.is, beyond(x.applied, x.at, &x.leader), name)
	}
}

// The records are gone from the log of the node that is ahead, and the terms say nothing.
func TestANodeThatIsAheadIsNotReadAndNotRebuilt(t *testing.T) {
	c := newTrio(t, func(id uint64, _ *valve) bool { return id == 3 })
	leader := c.leader(nil)
	require.NoError(t, leader.Device().Zero(0, 4096))
	term := leader.Status().Term

	log, err := raftlog.Open(t.TempDir(), raftlog.Config{})
	require.NoError(t, err)
	require.NoError(t, log.SetMembers(leader.Status().Members))
	disk := fault.New(state.Size(blocks))
	const has = 1000
	require.NoError(t, state.Recover(disk, layout.Volume, has, term))
	disk.Memory()[state.Size(0)] = 0x77
	n, err := Open(t.Context(), leader.ia, Config{
		ID: 3, Addr: leader.Status().Members[3].Addr, Layout: layout, Journal: fault.New(layout.Size()), Disk: disk, Log: log, Tick: leader.cfg.Tick,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, n.Run(ctx)) })
	defer func() {
		cancel()
		running.Wait()
		assert.NoError(t, log.Close())
	}()
	g := newGuest(1)
	g.read.Len = 4096
	c.eventually(func() bool {
		n.Device().Gate(g.read)
		assert.Error(t, g.seen(), "its disk is not that of the volume")
		return n.Status().Ahead != ""
	}, "it follows")
	require.NoError(t, leader.Device().Zero(0, 4096), "the others go on")
	c.eventually(func() bool {
		p := leader.Status().Replicas[3]
		return p.Silent && p.Refuses
	}, "the leader does not say that the node refuses it")
	refused := ""
	for _, r := range leader.Status().Refusals {
		refused += r.Why
	}
	assert.Contains(t, refused, "node 3 has applied record 1000")
	assert.Equal(t, byte(0x77), disk.Memory()[state.Size(0)])
	assert.Less(t, leader.Status().Last, uint64(has))
}
