package node

import (
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"godat/examples/volume/raftlog"
	"godat/examples/volume/replica"
)

// keep is the goroutine of the replica.
func (n *Node) keep() {
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.jobs.filled:
			n.jobs.drain()
		}
	}
}

// keepAppend keeps what the engine wants to be kept, and then lets go its answers. A replica that is
// rebuilt takes no records; it votes.
func (n *Node) keepAppend(life uint64, m *pb.Message) {
	if m.Term != nil {
		if err := n.log.SetVote(raftlog.Vote{Term: m.GetTerm(), For: m.GetVote()}); err != nil {
			n.fail(err)
			return
		}
	}
	responses := m.GetResponses()
	switch err := n.accept(m.GetEntries()); {
	case n.deaf || errors.Is(err, replica.ErrRotten):
		responses = slices.DeleteFunc(responses, func(r *pb.Message) bool {
			return r.GetType() != pb.MsgVoteResp && r.GetType() != pb.MsgPreVoteResp
		})
	case err != nil:
		n.fail(err)
		return
	}
	n.events.put(func() { n.answer(life, responses) })
}

// accept makes records and their slots stable.
func (n *Node) accept(entries []*pb.Entry) error {
	if n.deaf || len(entries) == 0 {
		return nil
	}
	records := make([]replica.Record, len(entries))
	for i, e := range entries {
		records[i] = replica.Record{Index: e.GetIndex(), Term: e.GetTerm(), Member: e.GetType() == pb.EntryConfChange, Data: e.Data}
	}
	return n.replica.Accept(records)
}

// keepApply applies what is committed.
func (n *Node) keepApply(life uint64, m *pb.Message) {
	entries := m.GetEntries()
	if n.deaf || len(entries) == 0 {
		return
	}
	changes, err := n.changeMembers(entries)
	index := entries[len(entries)-1].GetIndex()
	if err == nil {
		err = n.replica.Apply(index)
	}
	if err != nil {
		n.fail(fmt.Errorf("node: apply %d: %w", index, err))
		return
	}
	n.events.put(func() { n.took(life, index, changes, m.GetResponses()) })
	if index-n.released.Load() >= uint64(n.cfg.Layout.Slots/4) {
		n.release()
	}
}

// changeMembers keeps the members as they are after entries, before those count as applied.
func (n *Node) changeMembers(entries []*pb.Entry) (changes []*pb.ConfChange, err error) {
	members := n.log.Members()
	for _, e := range entries {
		if e.GetType() != pb.EntryConfChange {
			continue
		}
		c := new(pb.ConfChange)
		if err := proto.Unmarshal(e.Data, c); err != nil {
			return nil, err
		}
		changes = append(changes, c)
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
	return changes, n.log.SetMembers(members)
}

// release makes the disk stable, and says so.
func (n *Node) release() {
	if n.deaf {
		return
	}
	index, err := n.replica.Release()
	if err == nil {
		err = n.log.Trim()
	}
	if err != nil {
		n.fail(err)
		return
	}
	if index != n.released.Swap(index) {
		n.events.put(func() { n.tellReleased(index) })
	}
}

// took notes what was applied.
func (n *Node) took(life, index uint64, changes []*pb.ConfChange, responses []*pb.Message) {
	n.applied = max(n.applied, index)
	if life == n.life {
		for _, c := range changes {
			n.raft.ApplyConfChange(c)
		}
	}
	if len(changes) != 0 {
		n.setPeers()
		n.membersChanged()
	}
	n.answer(life, responses)
	n.finishApplied()
}
