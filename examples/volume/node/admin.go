package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"godat/examples/volume/entry"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// Command is what an operator asks of a node. All but Status are for the leader.
type Command struct {
	Do   string `json:"do"` // status, add, promote, remove, transfer or check
	ID   uint64 `json:"id,omitempty"`
	Addr string `json:"addr,omitempty"`
}

// Status is what a node knows.
type Status struct {
	ID       uint64              `json:"id"`
	Role     string              `json:"role"`
	State    string              `json:"state"` // ANA
	Leader   uint64              `json:"leader"`
	Term     uint64              `json:"term"`
	Last     uint64              `json:"last"` // record
	Applied  uint64              `json:"applied"`
	Released uint64              `json:"released"`
	Rotten   bool                `json:"rotten,omitempty"`
	Members  raftlog.Members     `json:"members"`
	Replicas map[uint64]Progress `json:"replicas,omitempty"` // of a leader
	Free     int                 `json:"free"`               // slots of a leader
	Checked  state.Checked       `json:"checked"`
}

// Progress is how far a replica is, as its leader knows.
type Progress struct {
	Match uint64 `json:"match"`
	State string `json:"state"`
	Out   bool   `json:"out,omitempty"`
}

// Status is what the node knows.
func (n *Node) Status() (s Status) {
	n.ask(n.events, func() { s = n.status() })
	return s
}

func (n *Node) status() Status {
	s := Status{
		ID: n.cfg.ID, Role: n.role.String(), State: n.ana.String(), Leader: n.leader.Load(), Term: n.term, Last: n.last,
		Applied: n.applied, Released: n.released.Load(), Rotten: n.rotten.Load(), Members: n.log.Members(), Checked: n.replica.Disk().Checked(),
	}
	if r := n.reign; r != nil {
		s.Free, s.Replicas = r.pool.Free(), make(map[uint64]Progress)
		n.raft.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
			s.Replicas[id] = Progress{p.Match, p.State.String(), r.out[id]}
		})
	}
	return s
}

// administer does what an operator asks.
func (n *Node) administer(r *rpc.Request) ([]byte, error) {
	var c Command
	if err := json.Unmarshal(r.Payload(), &c); err != nil {
		return nil, err
	}
	if c.Do == "status" {
		return json.Marshal(n.Status())
	}
	done := make(chan error, 1)
	n.events.put(func() { n.command(c, done) })
	select {
	case err := <-done:
		if err != nil {
			return nil, err
		}
		return json.Marshal(n.Status())
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	case <-n.ctx.Done():
		return nil, context.Cause(n.ctx)
	}
}

// command does what an operator asks of the leader.
func (n *Node) command(c Command, done chan error) {
	if n.refusal() != nil {
		done <- fmt.Errorf("node %d does not lead; node %d does", n.cfg.ID, n.leader.Load())
		return
	}
	switch c.Do {
	case "add":
		done <- n.proposeMember(pb.ConfChangeAddLearnerNode, c.ID, c.Addr)
	case "promote":
		done <- n.promote(c.ID)
	case "remove":
		done <- n.proposeMember(pb.ConfChangeRemoveNode, c.ID, "")
	case "transfer":
		if n.peers[c.ID] == nil {
			done <- fmt.Errorf("node %d is no other member", c.ID)
			return
		}
		n.raft.TransferLeader(c.ID)
		done <- nil
	case "check":
		n.propose((&entry.Entry{Op: entry.Check}).Append(nil), 0, false, func(err error) { done <- err })
	default:
		done <- fmt.Errorf("no command %q", c.Do)
	}
}

// promote lets a learner vote that has all that is committed, or nearly.
func (n *Node) promote(id uint64) error {
	m := n.log.Members()[id]
	if !m.Learner {
		return fmt.Errorf("node %d is no learner", id)
	}
	match := uint64(0)
	n.raft.WithProgress(func(other uint64, _ raft.ProgressType, p tracker.Progress) {
		if other == id {
			match = p.Match
		}
	})
	if match+near < n.applied || match == 0 {
		return fmt.Errorf("node %d has record %d of %d", id, match, n.applied)
	}
	return n.proposeMember(pb.ConfChangeAddNode, id, m.Addr)
}

// near is how far behind a learner may be that begins to vote.
const near = 64

// proposeMember proposes a change of the members. The engine refuses a second one at a time, by an empty
// entry in its place.
func (n *Node) proposeMember(kind pb.ConfChangeType, id uint64, addr string) error {
	if id < 1 || id > uint64(n.cfg.Layout.Nodes) {
		return fmt.Errorf("node id %d; it may be 1 to %d", id, n.cfg.Layout.Nodes)
	}
	return n.raft.ProposeConfChange(&pb.ConfChange{Type: kind.Enum(), NodeId: new(id), Context: []byte(addr)})
}

// Ask asks a node at an address.
func Ask(ctx context.Context, ia *dat.IA, addr string, c Command) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := rpc.Dial(ctx, ia, addr, rpc.Config{Message: mostMessage, Calls: 1})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	b, err := json.Marshal(c)
	if err != nil {
		return s, err
	}
	answer, err := client.Call(ctx, rpc.Call{Method: methodAdmin, Payload: b}, nil)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(answer, &s)
}
