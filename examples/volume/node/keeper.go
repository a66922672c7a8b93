package node

import (
	"fmt"
	"runtime"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"godat/examples/volume/entry"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/replica"
)

// keeper is the room of the replica. Its goroutine owns both. After something failed it does no more: the answers of a
// later job may count on what an earlier one was to keep.
type keeper struct {
	*site
	consensus *consensus
	replica   *replica.Replica
	jobs      mailbox
	appends   raftlog.Appends
	deaf      bool          // records wait for the engine of a rebuilt replica
	told      uint64        // up to where the replica has released, as consensus was told
	checking  uint64        // the last check that was begun
	slots     int           // that were named by what was applied since a release was asked for
	due       chan struct{} // has a value when the disk is to be released
}

// run is the goroutine of the replica.
func (k *keeper) run() {
	always := make(chan struct{})
	close(always)
	for {
		var zeroing <-chan struct{}
		if k.disk.Zeroing() {
			zeroing = always
		}
		select {
		case <-k.ctx.Done():
			return
		case <-k.jobs.filled:
			k.jobs.drain(k.ctx)
		case <-zeroing:
			k.zero()
		}
	}
}

// zero writes some of the zeros of entries that are applied. When that is enough for a while, it is to be released first.
func (k *keeper) zero() {
	if err := k.disk.ZeroNext(); err != nil {
		k.fail(err)
		return
	}
	if !k.disk.Zeroing() {
		k.release()
	}
}

// keep has kept what the engine wants to be kept, with what waits for that already.
func (k *keeper) keep(life uint64, m *pb.Message) {
	if k.appends.Put(m) {
		k.jobs.put(func() { k.appendAll(life) }) // an engine ends when nothing of it waits
	}
}

// appendAll keeps all that waits.
func (k *keeper) appendAll(life uint64) {
	for {
		x, ok := k.appends.Take()
		if !ok || !k.append(life, x) {
			return
		}
	}
}

// append keeps a vote and entries, and then lets go the engine's answers. It reports whether it could. A replica that is
// rebuilt takes no records; it votes.
func (k *keeper) append(life uint64, x raftlog.Append) bool {
	if x.Vote != nil {
		if err := k.keeping.during(func() error { return k.log.SetVote(*x.Vote) }); err != nil {
			k.fail(err)
			return false
		}
	}
	responses := x.Responses
	switch err := k.accept(x.Entries); {
	case k.deaf:
		responses = slices.DeleteFunc(responses, func(r *pb.Message) bool {
			return r.GetType() != pb.MsgVoteResp && r.GetType() != pb.MsgPreVoteResp
		})
	case err != nil:
		k.fail(err)
		return false
	}
	k.events.put(func() { k.consensus.answer(life, responses) })
	return true
}

// accept makes records and their slots stable.
func (k *keeper) accept(entries []*pb.Entry) error {
	if k.deaf || len(entries) == 0 {
		return nil
	}
	records := make([]replica.Record, len(entries))
	for i, e := range entries {
		records[i] = replica.Record{Index: e.GetIndex(), Term: e.GetTerm(), Member: e.GetType() == pb.EntryConfChange, Data: e.Data}
	}
	return k.keeping.during(func() error { return k.replica.Accept(records) })
}

// apply applies what is committed.
func (k *keeper) apply(life uint64, m *pb.Message) {
	entries := m.GetEntries()
	if k.deaf || len(entries) == 0 {
		return
	}
	changes, err := k.changeMembers(entries)
	index := entries[len(entries)-1].GetIndex()
	if err == nil {
		err = k.replica.Apply(index)
	}
	if err != nil {
		k.fail(fmt.Errorf("node: apply %d: %w", index, err))
		return
	}
	if check := k.disk.Checking(); check > k.checking {
		k.checking = check
		k.tasks.Go(k.check)
	}
	k.events.put(func() { k.consensus.took(life, index, changes, m.GetResponses()) })
	for _, e := range entries {
		if e.GetType() == pb.EntryNormal && len(e.Data) != 0 && entry.Op(e.Data[0]) == entry.Write {
			k.slots++
		}
	}
	switch {
	case index-k.told >= mostKept: // the disk is slower than the log
		var released uint64
		err := k.keeping.during(func() (err error) { released, err = k.disk.Release(); return err })
		k.settle(released, err)
	case k.slots != 0 && k.slots >= k.cfg.Layout.Slots/4:
		k.release()
	}
}

// check is a goroutine that sums the disk beside what is applied meanwhile.
func (k *keeper) check() {
	for k.ctx.Err() == nil && k.disk.SumNext() {
		runtime.Gosched() // others want the lock
	}
}

// changeMembers keeps the members as they are after entries, before those count as applied.
func (k *keeper) changeMembers(entries []*pb.Entry) (changes []*pb.ConfChange, err error) {
	members := k.log.Members()
	for _, e := range entries {
		if e.GetType() != pb.EntryConfChange {
			continue
		}
		c := new(pb.ConfChange)
		if err := proto.Unmarshal(e.Data, c); err != nil {
			return nil, err
		}
		changes = append(changes, c)
		if k.replayed(c, members) {
			c.NodeId = new(raft.None) // to the engine it is nothing
			continue
		}
		switch id := c.GetNodeId(); c.GetType() {
		case pb.ConfChangeAddNode, pb.ConfChangeAddLearnerNode:
			members[id] = raftlog.Member{Addr: string(c.Context), Learner: c.GetType() == pb.ConfChangeAddLearnerNode}
		case pb.ConfChangeRemoveNode:
			delete(members, id)
		case pb.ConfChangeUpdateNode: // nobody proposes it
		}
	}
	if changes == nil {
		return nil, nil
	}
	return changes, k.keeping.during(func() error { return k.log.SetMembers(members) })
}

// replayed reports whether a change is applied once more, after a crash, to members that have it and perhaps later ones:
// nobody adds a member, or one that was a member. A voter would be a learner until the next change, and vote for nobody.
func (k *keeper) replayed(c *pb.ConfChange, members raftlog.Members) bool {
	id := c.GetNodeId()
	m, member := members[id]
	switch c.GetType() {
	case pb.ConfChangeAddLearnerNode:
		return k.log.Gone(id) || member && !m.Learner
	case pb.ConfChangeAddNode:
		return k.log.Gone(id)
	default:
		return false
	}
}

// release has the disk made stable. It waits for nothing.
func (k *keeper) release() {
	k.slots = 0
	select {
	case k.due <- struct{}{}:
	default: // it will have all that is applied by now
	}
}

// releases is the goroutine that makes the disk stable, while the keeper keeps and applies what comes next.
func (k *keeper) releases() {
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-k.due:
		}
		var index uint64
		err := k.releasing.during(func() (err error) { index, err = k.disk.Release(); return err })
		k.jobs.put(func() { k.settle(index, err) })
	}
}

// settle says that the disk has all up to a record for good. What was applied for that is known to consensus: its job
// was before this one.
func (k *keeper) settle(index uint64, err error) {
	if k.deaf {
		return
	}
	if err == nil {
		err = k.keeping.during(k.log.Trim)
	}
	if err != nil {
		k.fail(err)
		return
	}
	if index > k.told {
		k.told = index
		k.events.put(func() { k.consensus.tellReleased(index) })
	}
}
