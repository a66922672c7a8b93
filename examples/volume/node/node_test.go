package node

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.uber.org/goleak"

	"godat/examples/nvmeof/identity"
	"godat/examples/volume/entry"
	"godat/examples/volume/fault"
	"godat/examples/volume/journal"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
	"godat/hw"
	_ "godat/hw/loop"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

const (
	patient = time.Minute
	blocks  = 64 << 10
)

var layout = journal.Layout{Nodes: 3, Slots: 4, SlotSize: 16 << 10, Volume: identity.ID{7}}

// gate is a store whose flushes wait while it is shut.
type gate struct {
	*fault.Store
	flushing chan struct{} // has a value when a flush has begun
	open     chan struct{} // a flush takes a value, or finds it closed
}

func newGate(size int) *gate {
	g := &gate{fault.New(size), make(chan struct{}, 99), make(chan struct{})}
	return g
}

func (g *gate) Flush(off, n int) error {
	g.flushing <- struct{}{}
	<-g.open
	return g.Store.Flush(off, n)
}

// follower is node 1 of three, and a test that is the others.
type follower struct {
	testing.TB
	*Node
	slots, disk *gate
	memory      []byte // the leader's journal
	region      *mem.LMR
	client      *rpc.Client
	heard       chan *pb.Message    // that the node sends to node 2
	notes       chan note           // the same
	lists       chan state.Snapshot // for the node, of node 2's disk
	again       chan state.Snapshot // the one that it has got, for its last round
	ran         chan error          // what Run returns
	said        spoken              // its log
}

// spoken is what a log has, which a test reads meanwhile.
type spoken struct {
	mu   sync.Mutex
	text strings.Builder // mu guards it
}

func (s *spoken) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *spoken) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func newFollower(t testing.TB) *follower { return newHolder(t, 0) }

// newHolder is a follower that holds calls for that long, and 0 is as long as it does by itself.
func newHolder(t testing.TB, held time.Duration) *follower {
	return newFollowerOn(t, "loop", "", Config{held: held})
}

// newFollowerOn is a follower on a provider, at an address there.
func newFollowerOn(t testing.TB, provider, addr string, cfg Config) *follower {
	f := &follower{TB: t, slots: newGate(layout.Size()), disk: newGate(state.Size(blocks)), heard: make(chan *pb.Message, 999), notes: make(chan note, 999), lists: make(chan state.Snapshot), again: make(chan state.Snapshot, 1)}
	ia, err := dat.Open(t.Context(), provider)
	require.NoError(t, err)
	others, err := rpc.Listen(t.Context(), ia, addr, rpc.Config{Calls: calls, Message: mostMessage})
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		assert.NoError(t, others.Serve(context.Background(), 3, f.take))
	}()
	log, err := raftlog.Open(t.TempDir(), raftlog.Config{})
	require.NoError(t, err)
	require.NoError(t, log.SetMembers(raftlog.Members{1: {}, 2: {Addr: others.Addr()}, 3: {Addr: others.Addr()}}))
	open := make(chan struct{})
	close(open)
	shut := f.slots.open
	f.slots.open = open // the journal's head
	cfg.ID, cfg.Addr, cfg.Layout, cfg.Journal, cfg.Disk, cfg.Log, cfg.Tick = 1, addr, layout, f.slots, f.disk, log, time.Hour
	cfg.Logger = slog.New(slog.NewTextHandler(&f.said, nil))
	f.Node, err = Open(t.Context(), ia, cfg)
	require.NoError(t, err)
	f.slots.open = shut
	for len(f.slots.flushing) != 0 {
		<-f.slots.flushing
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.ran = make(chan error, 1)
	go func() { f.ran <- f.Run(ctx) }()
	f.client, err = rpc.Dial(t.Context(), ia, f.Addr(), rpc.Config{Calls: calls, Message: mostMessage})
	require.NoError(t, err)
	f.memory = make([]byte, layout.Size())
	f.region, err = f.client.PZ().Register(f.memory, hw.RemoteRead)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, g := range []*gate{f.slots, f.disk} {
			select {
			case <-g.open:
			default:
				close(g.open)
			}
		}
		assert.NoError(t, f.region.Free())
		assert.NoError(t, f.client.Close())
		cancel()
		assert.NoError(t, <-f.ran)
		assert.NoError(t, others.Close())
		<-served
		assert.NoError(t, log.Close())
		assert.NoError(t, ia.CloseGraceful())
	})
	return f
}

// take takes a call of the node's: one of each of its two lanes, and one of its rebuilder.
func (f *follower) take(r *rpc.Request) ([]byte, error) {
	switch r.Method() {
	case methodSnapshot:
		return f.list(r)
	case methodHello:
		return f.greet(r.Payload())
	case methodHealth: // as a leader of the version before
		return nil, noMethod(methodHealth)
	}
	return nil, f.hear(r.Payload())
}

// greet answers a hello as the node that is meant, with the node's own terms.
func (f *follower) greet(hello []byte) ([]byte, error) {
	x, rest, err := parseNote(hello)
	if err != nil {
		return nil, err
	}
	return append(f.noteOf(x.to), rest...), nil
}

// noteOf is a note of another node to this one.
func (f *follower) noteOf(from uint64) []byte {
	x := note{magic: noteMagic, version: wireVersion, volume: f.cfg.Layout.Volume, terms: f.digest, from: from, to: f.cfg.ID}
	return x.append(nil)
}

// hear takes a note and messages of the node.
func (f *follower) hear(b []byte) error {
	x, messages, err := parseMessages(b, f.cfg.ID, 2)
	if err != nil {
		x, messages, err = parseMessages(b, f.cfg.ID, 3)
	}
	if err != nil {
		return err
	}
	for _, m := range messages {
		f.heard <- m
	}
	f.notes <- x
	return nil
}

// say sends messages of a leader's in one call, and hears the answer.
func (f *follower) say(messages ...*pb.Message) error {
	b, err := f.call(messages...)
	if len(b) != 0 {
		require.NoError(f, f.hear(b))
	}
	return err
}

// call sends messages of a leader's in one call.
func (f *follower) call(messages ...*pb.Message) (answer []byte, err error) {
	b := f.noteOf(messages[0].GetFrom())
	for _, m := range messages {
		m.To = new(f.cfg.ID)
		b, err = appendMessage(b, m)
		require.NoError(f, err)
	}
	return f.client.Call(f.Context(), rpc.Call{Method: methodMessage, Payload: b, Source: f.region.Remote(0, len(f.memory))}, nil)
}

// write fills a slot in the leader's journal, and is the append of the entry that names it.
func (f *follower) write(from, term, index uint64, slot uint32, value byte) *pb.Message {
	data := f.memory[f.journal.Offset(slot):][:4096]
	for i := range data {
		data[i] = value
	}
	e := entry.Entry{Op: entry.Write, Len: 4096, Slot: slot}.Sealed(data)
	return &pb.Message{
		Type: pb.MsgApp.Enum(), From: new(from), Term: new(term), Index: new(index - 1), LogTerm: new(min(term, index-1)),
		Entries: []*pb.Entry{{Index: new(index), Term: new(term), Type: pb.EntryNormal.Enum(), Data: e.Append(nil)}},
	}
}

// answers waits for a message of a type, and returns what came before it.
func (f *follower) answers(kind pb.MessageType) (before []pb.MessageType, m *pb.Message) {
	f.Helper()
	for {
		select {
		case m = <-f.heard:
			if m.GetType() == kind {
				return before, m
			}
			before = append(before, m.GetType())
		case <-time.After(patient):
			require.Fail(f, "no answer", kind)
		}
	}
}

func TestAFollowerAcknowledgesWhatIsStable(t *testing.T) {
	f := newFollower(t)
	require.NoError(t, f.say(f.write(2, 1, 1, 4, 0xa1)))
	<-f.slots.flushing
	require.NoError(t, f.say(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), Term: new(uint64(1)), Context: []byte("round")}))
	before, _ := f.answers(pb.MsgHeartbeatResp)
	require.NotContains(t, before, pb.MsgAppResp, "the slot is not stable")
	close(f.slots.open)
	_, m := f.answers(pb.MsgAppResp)
	assert.Equal(t, uint64(1), m.GetIndex())
	b, err := f.journal.Slot(4, 4096)
	require.NoError(t, err)
	assert.Equal(t, byte(0xa1), b[0])
}

func TestAFollowerReleasesWhatIsInItsDiskForGood(t *testing.T) {
	f := newFollower(t)
	close(f.slots.open)
	require.NoError(t, f.say(f.write(2, 1, 1, 4, 0xa1)))
	f.answers(pb.MsgAppResp)
	beat := func(commit uint64) {
		require.NoError(t, f.say(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), Term: new(uint64(1)), Commit: new(commit)}))
		f.answers(pb.MsgHeartbeatResp)
	}
	beat(1)
	<-f.disk.flushing // it has applied the entry
	beat(1)
	for len(f.notes) != 0 {
		require.Zero(t, (<-f.notes).released, "the disk is not stable")
	}
	close(f.disk.open)
	for (<-f.notes).released != 1 {
	}
}

// A node that runs of an older copy of its files has told its leader of records that it has no more. Those that it has in their
// place, of an earlier leader, are not committed.
func TestANodeCommitsNoRecordThatItHasNotComparedWithItsLeaders(t *testing.T) {
	for name, commit := range map[string]uint64{"as far as its log": 2, "beyond its log": 3} {
		t.Run(name, func(t *testing.T) {
			f := newFollower(t)
			close(f.slots.open)
			close(f.disk.open)
			for index := range uint64(2) {
				require.NoError(t, f.say(f.write(2, 1, index+1, 4+uint32(index), 0xa1)))
				f.answers(pb.MsgAppResp)
			}
			applied := func() (index uint64) {
				require.True(t, f.ask(f.events, func() {}))
				require.True(t, f.ask(f.keeper.jobs, func() { index, _ = f.consensus.disk.Applied() }))
				return index
			}
			require.NoError(t, f.say(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(3)), Term: new(uint64(2)), Commit: new(commit)}))
			f.answers(pb.MsgHeartbeatResp)
			require.Zero(t, applied())
			m := f.write(3, 2, 2, 6, 0xb2)
			m.LogTerm, m.Commit = new(uint64(1)), new(uint64(1))
			require.NoError(t, f.say(m))
			f.answers(pb.MsgAppResp)
			require.NoError(t, f.say(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(3)), Term: new(uint64(2)), Commit: new(uint64(2))}))
			f.answers(pb.MsgHeartbeatResp)
			require.Eventually(t, func() bool { return applied() == 2 }, patient, time.Millisecond)
			assert.Equal(t, byte(0xb2), f.consensus.disk.Memory()[0])
		})
	}
}

func TestALeaderOfAnEarlierTermReachesNoSlot(t *testing.T) {
	f := newFollower(t)
	close(f.slots.open)
	close(f.disk.open)
	require.NoError(t, f.say(f.write(2, 1, 1, 4, 0xa1)))
	f.answers(pb.MsgAppResp)
	require.NoError(t, f.say(f.write(2, 3, 2, 5, 0xb3)))
	f.answers(pb.MsgAppResp)
	late := f.write(2, 1, 2, 5, 0xc1) // the node's own earlier reign named the slot, too
	require.Error(t, f.say(late))
	b, err := f.journal.Slot(5, 4096)
	require.NoError(t, err)
	assert.Equal(t, byte(0xb3), b[0])
}

func TestAnAppendWhoseDataIsNotThereIsRefused(t *testing.T) {
	f := newFollower(t)
	close(f.slots.open)
	m := f.write(2, 1, 1, 4, 0xa1)
	f.memory[f.journal.Offset(4)] ^= 1
	require.ErrorIs(t, f.say(m), errGone)
	_, last := f.log.Bounds()
	assert.Zero(t, last)
}

// The call may have ended before the log had the entry, and the leader's slot may have other data by now.
func TestAnEntryThatComesAgainIsNotReadAgain(t *testing.T) {
	f := newFollower(t)
	close(f.slots.open)
	m, busy := f.write(2, 1, 1, 4, 0xa1), make(chan struct{})
	f.keeper.jobs.put(func() { <-busy })
	require.NoError(t, f.say(m))
	require.False(t, f.log.Has(1, 1), "the keeper is busy")
	f.memory[f.journal.Offset(4)] ^= 1
	require.NoError(t, f.say(m))
	b, err := f.journal.Slot(4, 4096)
	require.NoError(t, err)
	assert.Equal(t, byte(0xa1), b[0])
	close(busy)
	f.answers(pb.MsgAppResp)
}

// A leader that took the follower out has freed the slot. Its successor knows no more of that.
func TestASlotIsNotOverwrittenWhileAnEntryNeedsIt(t *testing.T) {
	f := newFollower(t)
	close(f.slots.open)
	require.NoError(t, f.say(f.write(2, 1, 1, 4, 0xa1)))
	f.answers(pb.MsgAppResp)
	later := f.write(3, 2, 2, 5, 0xb2)
	later.LogTerm = new(uint64(1))
	later.Entries = append(later.Entries, f.write(3, 2, 3, 4, 0xb3).Entries...)
	require.Error(t, f.say(later))
	_, m := f.answers(pb.MsgAppResp)
	assert.Equal(t, uint64(2), m.GetIndex(), "what goes before is taken")
	b, err := f.journal.Slot(4, 4096)
	require.NoError(t, err)
	assert.Equal(t, byte(0xa1), b[0])
	again := &door{site: f.site, fence: journal.NewFence(0)} // after a crash
	require.NoError(t, again.hold())
	assert.True(t, again.fence.Held(4, 3, f.released.Load()))

	close(f.disk.open)
	require.NoError(t, f.say(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(3)), Term: new(uint64(2)), Commit: new(uint64(1))}))
	for (<-f.notes).released != 1 {
	}
	require.NoError(t, f.say(later))
	assert.Equal(t, byte(0xb3), b[0])
}

func TestANodeThatIsRebuiltVotesWhenItsLeaderIsSilent(t *testing.T) {
	f := newFollower(t)
	f.rotten.Store(true)
	beat := &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), Term: new(uint64(1))}
	pass := func(ticks int) {
		require.True(t, f.ask(f.events, func() {
			for range ticks {
				f.consensus.tick()
			}
		}))
	}
	require.NoError(t, f.say(beat))
	pass(electionTicks - 1)
	require.NoError(t, f.say(beat))
	pass(electionTicks - 1) // since it heard the leader
	require.True(t, f.ask(f.events, func() { assert.Equal(t, uint64(2), f.consensus.raft.BasicStatus().Lead) }))
	pass(1)
	require.NoError(t, f.say(&pb.Message{
		Type: pb.MsgPreVote.Enum(), From: new(uint64(3)), Term: new(uint64(2)), Index: new(uint64(0)), LogTerm: new(uint64(0)),
	}))
	_, m := f.answers(pb.MsgPreVoteResp)
	assert.False(t, m.GetReject())
}

func TestAnEngineDoesNotOutliveTheRecordsThatARebuildRemoves(t *testing.T) {
	f := newFollower(t)
	close(f.slots.open)
	close(f.disk.open)
	require.NoError(t, f.say(f.write(2, 1, 1, 4, 0xa1)))
	f.answers(pb.MsgAppResp)
	var c *state.CatchUp
	require.True(t, f.ask(f.keeper.jobs, func() {
		f.keeper.deaf = true
		f.rotten.Store(true)
		var err error
		c, err = f.keeper.replica.CatchUp(state.Snapshot{Index: 1, Term: 1, Whole: 1, Size: blocks})
		assert.NoError(t, err)
	}))
	_, differs := c.Next()
	require.False(t, differs)
	require.NoError(t, c.Flush())
	require.True(t, f.ask(f.events, func() { assert.False(t, f.consensus.adopt(c, membership{Members: f.log.Members()})) }))
	f.answers(pb.MsgAppResp) // it has caught up
	require.NoError(t, f.say(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), Term: new(uint64(1)), Commit: new(uint64(1))}))
	f.answers(pb.MsgHeartbeatResp)
	require.NoError(t, f.say(f.write(2, 1, 2, 5, 0xb1)))
	_, m := f.answers(pb.MsgAppResp)
	assert.Equal(t, uint64(2), m.GetIndex())
}

func TestEntriesWhoseSlotsHaveOtherDataAreOfferedNoMore(t *testing.T) {
	f := newFollower(t)
	close(f.slots.open)
	close(f.disk.open)
	var m *pb.Message
	for index := range uint64(3) {
		m = f.write(2, 1, index+1, 4+uint32(index), byte(index+1))
		require.NoError(t, f.say(m))
		f.answers(pb.MsgAppResp)
	}
	first := func() (first uint64) {
		require.True(t, f.ask(f.events, func() {
			var err error
			first, err = f.log.FirstIndex()
			assert.NoError(t, err)
		}))
		return first
	}
	lanes := &f.consensus.lanes
	lanes.withdraw(m, errGone)
	require.Equal(t, uint64(1), first(), "no disk has the entries for good")
	require.Eventually(t, func() bool {
		require.NoError(t, f.say(&pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), Term: new(uint64(1)), Commit: new(uint64(2))}))
		return f.released.Load() == 2
	}, patient, time.Millisecond)
	lanes.withdraw(m, errHeld)
	require.Equal(t, uint64(1), first(), "the slots have the data")
	lanes.withdraw(m, errGone)
	require.Equal(t, uint64(3), first())
}
