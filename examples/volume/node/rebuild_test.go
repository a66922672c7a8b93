package node

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"godat/examples/volume/fault"
	"godat/examples/volume/state"
	"godat/runtime/rpc"
)

// list answers a call for a list of the leader's disk, when the test has one. That of the last round is the same.
func (f *follower) list(r *rpc.Request) ([]byte, error) {
	lists := f.lists
	if b := r.Payload(); b[len(b)-1] != 0 {
		lists = f.again
	}
	select {
	case s := <-lists:
		if s.Size == 0 { // the next one is the answer
			s = <-lists
		}
		if lists != f.again {
			f.again <- s
		}
		b := s.Append(nil)
		if err := r.WriteBytes(b, 0); err != nil {
			return nil, err
		}
		members, err := json.Marshal(membership{Members: f.log.Members()})
		return append(binary.LittleEndian.AppendUint64(nil, uint64(len(b))), members...), err
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
}

// commit says up to where records are committed, and waits until the node has released them.
func (f *follower) commit(index uint64) {
	f.Helper()
	require.NoError(f, f.say(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), Term: new(uint64(1)), Commit: new(index)}))
	f.answers(pb.MsgHeartbeatResp)
	require.Eventually(f, func() bool {
		f.ask(f.keeper.jobs, f.keeper.release)
		return f.released.Load() == index
	}, patient, time.Millisecond)
}

// lacks makes the node one to which its leader offers a snapshot that has an entry.
func (f *follower) lacks(index uint64) {
	require.True(f, f.ask(f.events, func() { f.consensus.offer = offer{1, index} }))
}

// rebuild rebuilds the node once. It is over when the channel has a value.
func (f *follower) rebuild() <-chan error {
	over := make(chan error, 1)
	go func() {
		_, err := f.rebuilder.once()
		over <- err
	}()
	return over
}

// follows is a follower that has released an entry.
func follows(t testing.TB) *follower {
	f := newFollower(t)
	close(f.slots.open)
	close(f.disk.open)
	require.NoError(t, f.say(f.write(2, 1, 1, 4, 0xa1)))
	f.answers(pb.MsgAppResp)
	f.commit(1)
	return f
}

// A record that was not kept was acknowledged with the next message, and committed: the engine looked for it.
func TestAListThatComesLateChangesNothing(t *testing.T) {
	f := follows(t)
	f.lacks(4)
	over := f.rebuild()
	f.lists <- state.Snapshot{} // the node releases an entry while it gets the list of an earlier one
	require.NoError(t, f.say(f.write(2, 1, 2, 5, 0xa2)))
	f.answers(pb.MsgAppResp)
	f.commit(2)
	f.lists <- state.Snapshot{Index: 1, Term: 1, Whole: 1, Size: blocks}
	require.Error(t, <-over)
	m := f.write(2, 1, 3, 6, 0xa3)
	require.NoError(t, f.say(m))
	m.Commit = new(uint64(3))
	require.NoError(t, f.say(m))
	_, answer := f.answers(pb.MsgAppResp)
	_, last := f.log.Bounds()
	assert.GreaterOrEqual(t, last, answer.GetIndex(), "it has what it acknowledges")
	f.commit(3)
}

func TestWhyADiskHasNotComeIsSaidUntilItHas(t *testing.T) {
	f := follows(t)
	f.lacks(4)
	require.True(t, f.gets(errors.New("a reason")))
	require.False(t, f.gets(errors.New("a reason")))
	over := f.rebuild()
	f.lists <- state.Snapshot{} // it has asked for a list
	require.Equal(t, "a reason", f.ways.gets, "the disk has not come yet")
	f.lists <- state.Snapshot{Index: 1, Term: 1, Whole: 1, Size: 512}
	require.Error(t, <-over)
	require.Equal(t, "a reason", f.ways.gets)
}

func TestASnapshotIsGotOnlyByANodeThatLacksRecords(t *testing.T) {
	f := follows(t)
	begin := func(index uint64) (begun bool, err error) {
		var c *state.CatchUp
		require.True(t, f.ask(f.events, func() { c, err = f.consensus.begin(state.Snapshot{Index: index, Term: 1, Whole: index, Size: blocks}) }))
		return c != nil, err
	}
	over := f.rebuild()
	require.NoError(t, <-over, "it asks for no list")
	f.lacks(2)
	over = f.rebuild()
	f.lists <- state.Snapshot{} // it has asked for a list
	require.NoError(t, f.say(f.write(2, 1, 2, 5, 0xa2)))
	f.answers(pb.MsgAppResp)
	f.commit(2)
	f.lists <- state.Snapshot{Index: 2, Term: 1, Whole: 2, Size: blocks}
	require.NoError(t, <-over, "the record has come")
	assert.False(t, f.rotten.Load())
	f.lacks(3)
	require.True(t, f.ask(f.events, func() { f.consensus.term = 2 }))
	begun, err := begin(3)
	require.NoError(t, err)
	assert.False(t, begun, "a later leader may have the records")
	f.lacks(3)
	require.True(t, f.ask(f.events, func() {
		f.consensus.term = 1
		assert.NoError(t, f.consensus.raft.Campaign())
	}))
	_, err = begin(3)
	require.ErrorIs(t, err, errMayLead)
	require.NoError(t, f.say(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), Term: new(uint64(1))}))
	f.answers(pb.MsgHeartbeatResp)
	begun, err = begin(3)
	require.NoError(t, err)
	assert.True(t, begun)
	require.NoError(t, f.say(&pb.Message{Type: pb.MsgTimeoutNow.Enum(), From: new(uint64(2)), Term: new(uint64(1))}))
	require.True(t, f.ask(f.events, func() { assert.Equal(t, raft.StateFollower, f.consensus.raft.BasicStatus().RaftState) }))
}

// A node that starts cuts its log before a record whose slot has a flipped bit, since a crash may have cut that write short. It may
// have acknowledged the record; the leader counts on that, and names the record's index in his heartbeat.
func TestANodeThatHasLostWhatItAcknowledgedIsRebuilt(t *testing.T) {
	f := follows(t)
	require.NoError(t, f.say(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), Term: new(uint64(1)), Commit: new(uint64(3))}))
	f.answers(pb.MsgHeartbeatResp)
	select {
	case f.lists <- state.Snapshot{Index: 3, Term: 1, Whole: 3, Size: blocks}:
	case <-time.After(patient):
		require.Fail(t, "it asks for no list")
	}
	_, m := f.answers(pb.MsgAppResp)
	assert.Equal(t, uint64(3), m.GetIndex())
	require.NoError(t, f.say(f.write(2, 1, 4, 5, 0xa4)))
	_, m = f.answers(pb.MsgAppResp)
	assert.Equal(t, uint64(4), m.GetIndex())
	said := f.said.String()
	assert.Equal(t, 1, strings.Count(said, "this node has acknowledged records that it has no more: its directory is an older copy"), said)
	assert.Contains(t, said, "acknowledged=3 has=1 leader=2")
}

// An engine that campaigns looks at all records that it does not know to be applied.
func TestNoRecordGoesThatTheEngineStillLooksAt(t *testing.T) {
	f := follows(t)
	require.NoError(t, f.say(f.write(2, 1, 2, 5, 0xa2)))
	f.answers(pb.MsgAppResp)
	apply, know := make(chan struct{}), make(chan struct{})
	f.keeper.jobs.put(func() { <-apply })
	require.NoError(t, f.say(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), Term: new(uint64(1)), Commit: new(uint64(2))}))
	f.answers(pb.MsgHeartbeatResp)
	require.True(t, f.ask(f.events, func() {})) // the job to apply it is there
	f.events.put(func() {
		<-know
		f.consensus.hear(note{from: 2, released: 2, floor: 2})
		assert.NoError(t, f.consensus.raft.Campaign())
	})
	close(apply)
	require.True(t, f.ask(f.keeper.jobs, f.keeper.release))
	close(know)
	require.Eventually(t, func() bool { return f.released.Load() == 2 }, patient, time.Millisecond)
}

// The second append has no records, and the engine acknowledges those of the first with it.
func TestAfterAFailureNothingIsAcknowledged(t *testing.T) {
	f := follows(t)
	write := make(chan struct{})
	f.keeper.jobs.put(func() { <-write })
	m := f.write(2, 1, 2, 5, 0xa2)
	require.NoError(t, f.say(m))
	require.NoError(t, f.say(m))
	require.True(t, f.ask(f.events, func() {}))
	more := false
	f.keeper.jobs.put(func() { more = true })
	f.slots.FailAfter(0)
	close(write)
	err := <-f.ran
	f.ran <- nil
	require.ErrorIs(t, err, fault.ErrDisk)
	assert.False(t, more)
	for len(f.heard) != 0 {
		assert.NotEqual(t, uint64(2), (<-f.heard).GetIndex())
	}
}

func TestAnEngineWhoseNodeEndsTakesNothing(t *testing.T) {
	f := follows(t)
	f.ask(f.events, func() {
		f.end(fault.ErrDisk)
		f.events.put(func() {
			f.consensus.step(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(3)), To: new(uint64(1)), Term: new(uint64(100)), Commit: new(uint64(0))})
			assert.NotEqual(t, uint64(3), f.consensus.raft.BasicStatus().Lead)
		})
	})
	err := <-f.ran
	f.ran <- nil
	require.ErrorIs(t, err, fault.ErrDisk)
}

func TestARebuiltNodeHasTheMembersOfItsSnapshot(t *testing.T) {
	f := follows(t)
	f.lacks(2)
	var c *state.CatchUp
	require.True(t, f.ask(f.events, func() {
		var err error
		c, err = f.consensus.begin(state.Snapshot{Index: 2, Term: 1, Whole: 2, Size: blocks})
		assert.NoError(t, err)
	}))
	_, differs := c.Next()
	require.False(t, differs)
	members := f.log.Members()
	delete(members, 3)
	f.disk.FailAfter(0) // the mark that says that it has caught up, which a kill leaves
	f.ask(f.events, func() { f.consensus.adopt(c, membership{Members: members}) })
	err := <-f.ran
	f.ran <- nil
	require.ErrorIs(t, err, fault.ErrDisk)
	f.disk.Repair()
	again, err := state.Open(f.disk.Store, layout.Volume, 1)
	require.NoError(t, err)
	index, _ := again.Applied()
	require.Equal(t, uint64(2), index)
	assert.Equal(t, members, f.log.Members(), "no record of a change to them comes any more")
}

func TestANodeWhoseOwnDiskFailsWhileItIsRebuiltEnds(t *testing.T) {
	f := follows(t)
	f.lacks(4)
	f.disk.FailAfter(0)
	f.wake <- struct{}{}
	f.lists <- state.Snapshot{Index: 4, Term: 1, Whole: 4, Size: blocks}
	select {
	case <-f.ctx.Done():
		require.ErrorIs(t, context.Cause(f.ctx), fault.ErrDisk)
	case <-time.After(patient):
		require.Fail(t, "it goes on")
	}
}
