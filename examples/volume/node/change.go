package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"godat/examples/volume/raftlog"
)

// What a leader asks itself before it changes the members, or gives the lead away: a volume that can't decide any more
// can't undo that.

// NodeList is the ids of members, as text.
func NodeList(all raftlog.Members) string {
	var text []string
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if all[id].Learner {
			text = append(text, fmt.Sprintf("%d (which does not vote yet)", id))
		} else {
			text = append(text, fmt.Sprint(id))
		}
	}
	return strings.Join(text, ", ")
}

// decides refuses a change after which those that vote, and are heard now, are no majority.
func (c *consensus) decides(after raftlog.Members, force bool) error {
	var voters, heard []string
	for _, id := range slices.Sorted(maps.Keys(after)) {
		if after[id].Learner {
			continue
		}
		voters = append(voters, fmt.Sprint(id))
		if id == c.cfg.ID || c.reign.unheard[id] <= electionTicks/2 {
			heard = append(heard, fmt.Sprint(id))
		}
	}
	switch {
	case len(voters) == 0:
		return fmt.Errorf("nobody would be left to vote: the volume would end")
	case len(heard) <= len(voters)/2 && !force:
		return fmt.Errorf("of nodes %s, which would be left to vote, only %s are heard: no majority; --force does it all the same",
			strings.Join(voters, ", "), strings.Join(heard, ", "))
	}
	return nil
}

// add adds a node that no one was before.
func (c *consensus) add(x Command) error {
	members := c.log.Members()
	if m, member := members[x.ID]; member {
		return fmt.Errorf("node %d is a member already, at %s", x.ID, m.Addr)
	}
	if c.log.Gone(x.ID) {
		return fmt.Errorf("node %d was a member: give the new node another id", x.ID)
	}
	for id, m := range members {
		if m.Addr == x.Addr {
			return fmt.Errorf("%s is the address of node %d", x.Addr, id)
		}
	}
	if _, member := members[x.For]; member {
		c.tasks.Go(func() { c.comesFor(x.ID, x.For) })
	}
	return c.proposeMember(pb.ConfChangeAddLearnerNode, x.ID, x.Addr)
}

// remove removes a member without which the others can decide.
func (c *consensus) remove(x Command) error {
	members := c.log.Members()
	if _, member := members[x.ID]; !member {
		return fmt.Errorf("no node %d; members are %s", x.ID, NodeList(members))
	}
	delete(members, x.ID)
	if err := c.decides(members, x.Force); err != nil {
		return err
	}
	return c.proposeMember(pb.ConfChangeRemoveNode, x.ID, "")
}

// transfer begins to give the lead to a node that can take it.
func (c *consensus) transfer(x Command) error {
	if m, member := c.log.Members()[x.ID]; !member || m.Learner || x.ID == c.cfg.ID {
		return fmt.Errorf("node %d is no other member that votes; members are %s", x.ID, NodeList(c.log.Members()))
	}
	r := c.reign
	match := uint64(0)
	c.raft.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		if id == x.ID {
			match = p.Match
		}
	})
	switch {
	case r.unheard[x.ID] > electionTicks/2:
		return fmt.Errorf("node %d has not been heard for %v", x.ID, c.cfg.Tick*time.Duration(r.unheard[x.ID]))
	case r.out[x.ID]:
		return fmt.Errorf("node %d is out: it has record %d of %d", x.ID, match, c.last)
	}
	c.raft.TransferLeader(x.ID)
	return nil
}

// heir is the node to which this one gives the lead before it ends, or 0.
func (c *consensus) heir() (next uint64) {
	if c.reign == nil {
		return 0
	}
	most := uint64(0)
	c.raft.WithProgress(func(id uint64, kind raft.ProgressType, p tracker.Progress) {
		if kind == raft.ProgressTypePeer && id != c.cfg.ID && !c.reign.out[id] && c.reign.unheard[id] <= electionTicks/2 && p.Match > most {
			next, most = id, p.Match
		}
	})
	return next
}

// HandOver gives the lead to another node, if this one has it and another one can take it. It waits no longer than an
// election takes. The node must run.
func (n *Node) HandOver() {
	next := uint64(0)
	asked := n.ask(n.events, func() {
		if next = n.consensus.heir(); next != 0 {
			n.cfg.Logger.Info("the node is to end: another one is to lead", "node", next)
			n.consensus.raft.TransferLeader(next)
		}
	})
	if !asked {
		return
	}
	for range 4 * electionTicks {
		if next == 0 || n.ctx.Err() != nil || n.leader.Load() == next {
			return
		}
		pause(n.ctx, n.cfg.Tick/4)
	}
}
