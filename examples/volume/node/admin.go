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

	"godat/examples/nvmeof/nvme"
	"godat/examples/volume/entry"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// Command is what an operator asks of a node. All but status, sums and meet are for the leader.
type Command struct {
	Do string `json:"do"` // status, sums, meet, add, promote, remove, transfer or check
	// Volume is the volume that is meant. For a status alone it may be empty.
	Volume string `json:"volume,omitempty"`
	ID     uint64 `json:"id,omitempty"`
	For    uint64 `json:"for,omitempty"` // of add: the node in whose place the other one comes, if it does
	Addr   string `json:"addr,omitempty"`
	From   int    `json:"from,omitempty"` // of sums: the first chunk
	// Members are, of meet, what a node learns of where the others are, that is about to be added.
	Members raftlog.Members `json:"members,omitempty"`
	// Force does what leaves those that are heard no majority.
	Force bool `json:"force,omitempty"`
}

// Status is what a node knows.
type Status struct {
	ID       uint64              `json:"id"`
	Volume   string              `json:"volume"`
	Version  int                 `json:"version"` // of what nodes say to each other
	Terms    Terms               `json:"terms"`
	Gone     []uint64            `json:"gone,omitempty"`    // that were members
	Instead  map[uint64]uint64   `json:"instead,omitempty"` // members that were added in another's place, which is one still
	Refusals []Refusal           `json:"refusals,omitempty"`
	Waits    string              `json:"waits,omitempty"` // what the node waits for
	Role     string              `json:"role"`
	State    string              `json:"state"` // ANA
	Leader   uint64              `json:"leader"`
	Term     uint64              `json:"term"`
	Last     uint64              `json:"last"` // record
	Applied  uint64              `json:"applied"`
	Released uint64              `json:"released"`
	Rotten   bool                `json:"rotten,omitempty"`
	Ahead    string              `json:"ahead,omitempty"`    // why the node follows nobody: it has applied what its leader never had
	Rebuilt  uint64              `json:"rebuilt,omitempty"`  // bytes of the disk that are right
	Rebuilds uint64              `json:"rebuilds,omitempty"` // bytes of the disk while it is rebuilt
	Members  raftlog.Members     `json:"members"`
	Replicas map[uint64]Progress `json:"replicas,omitempty"` // of a leader
	Told     map[uint64]Progress `json:"told,omitempty"`     // of another node: as its leader has said lately
	Others   map[uint64]Other    `json:"others,omitempty"`   // as this node knows them by itself
	Self     Self                `json:"self"`
	Slots    int                 `json:"slots"`   // that the node has when it leads
	Free     int                 `json:"free"`    // slots of a leader
	Waiting  int                 `json:"waiting"` // writes that wait for a slot of a leader
	Checked  state.Checked       `json:"checked"`
	Counts   Counts              `json:"counts"`
	Zeros    int                 `json:"zeros,omitempty"`    // bytes that read as zeros, and are still to be written to the disk
	Checking uint64              `json:"checking,omitempty"` // the record of a check under way
	Sums     []byte              `json:"sums,omitempty"`     // of the last check's chunks, if that was asked; see state.Disk.Sums
}

// Serves reports whether the node serves the disk: it leads.
func (s *Status) Serves() bool { return s.State == nvme.ANAOptimized.String() }

// Follower is the role of a node that neither leads nor stands for election.
const Follower = "follower"

// roles are the engine's roles in words.
var roles = map[raft.StateType]string{
	raft.StateFollower: Follower, raft.StateCandidate: "candidate", raft.StatePreCandidate: "candidate", raft.StateLeader: "leader",
}

// Progress is how far a replica is, as its leader knows.
type Progress struct {
	Match uint64 `json:"match"`
	State string `json:"state"` // the engine's word; Text is for people
	Out   bool   `json:"out,omitempty"`
	// Silent is a node that the leader has not heard for some time.
	Silent bool `json:"silent,omitempty"`
	// Takes is how long the replica has had no more, though it lacks records, or had so within the last half minute.
	Takes  time.Duration `json:"takes,omitempty"`
	Behind uint64        `json:"behind,omitempty"` // records, behind the leader
	Missed               // of one that is silent
	// Back is how long ago the replica came back within the last minute, after it had been Away.
	Back time.Duration `json:"back,omitempty"`
	Away time.Duration `json:"away,omitempty"`
	Self *Self         `json:"self,omitempty"` // what its node has said
	// Term is that of the leader, of its own replica, and First the first record of that term.
	Term  uint64 `json:"term,omitempty"`
	First uint64 `json:"first,omitempty"`
}

// Follows reports whether the replica answers what its leader sends.
func (p *Progress) Follows() bool { return p.State == tracker.StateReplicate.String() }

// Text says how the leader sees the replica.
func (p *Progress) Text() string {
	switch p.State {
	case tracker.StateReplicate.String():
		return "follows"
	case tracker.StateProbe.String():
		return "is asked what it has"
	}
	return "is sent the disk"
}

// Status is status for other goroutines; of a node that has ended it is zero.
func (c *consensus) Status() Status {
	var s Status
	if !c.ask(c.events, func() { s = c.status() }) {
		return Status{} // it may be written yet
	}
	return s
}

func (c *consensus) status() Status {
	s := Status{
		ID: c.cfg.ID, Volume: c.cfg.Layout.Volume.String(), Version: wireVersion, Terms: c.terms, Gone: c.log.AllGone(), Instead: c.instead(c.log.Members()), Refusals: c.refusals.list(time.Now()), Waits: c.waits(), Role: roles[c.role], State: c.ana.String(), Leader: c.leader.Load(), Term: c.term, Last: c.last,
		Applied: c.applied, Released: c.released.Load(), Rotten: c.rotten.Load(), Members: c.log.Members(),
		Checking: c.disk.Checking(), Checked: c.disk.Checked(), // in this order: a check that ends is in one of both
		Counts: c.counts.now(), Zeros: c.disk.Zeros(), Slots: c.cfg.Layout.Slots, Rebuilt: c.rebuilt.Load(), Rebuilds: c.rebuilds.Load(),
		Self: c.self(), Others: c.health.others(c.others()),
	}
	if ahead := c.ahead.Load(); ahead != nil {
		s.Ahead = ahead.advice
	}
	if r := c.reign; r != nil {
		s.Free, s.Waiting, s.Replicas = r.pool.Free(), len(r.placing), c.sees()
	} else {
		s.Told = c.health.told(c.lately())
	}
	return s
}

// ErrNotNow is the error of a command that the volume may do later.
var ErrNotNow = &rpc.Error{Code: rpc.CodeUser}

func notNow(format string, args ...any) error {
	return &rpc.Error{Code: ErrNotNow.Code, Text: "node: " + fmt.Sprintf(format, args...)}
}

// command does what an operator asks of the leader.
func (c *consensus) command(x Command, done chan error) {
	if c.refusal() != nil {
		done <- notNow("node %d does not lead; node %d does", c.cfg.ID, c.leader.Load())
		return
	}
	switch x.Do {
	case "add":
		done <- c.add(x)
	case "promote":
		done <- c.promote(x)
	case "remove":
		done <- c.remove(x)
	case "transfer":
		done <- c.transfer(x)
	case "check":
		c.reign.propose(proposal{data: (&entry.Entry{Op: entry.Check}).Append(nil), done: func(err error) { done <- err }})
	default:
		done <- fmt.Errorf("no command %q", x.Do)
	}
}

// promote lets a learner vote that has all that is committed, or nearly.
func (c *consensus) promote(x Command) error {
	id, members := x.ID, c.log.Members()
	m := members[id]
	if !m.Learner {
		return fmt.Errorf("node %d is no learner", id)
	}
	match := uint64(0)
	c.raft.WithProgress(func(other uint64, _ raft.ProgressType, p tracker.Progress) {
		if other == id {
			match = p.Match
		}
	})
	if match+near < c.applied || match == 0 {
		return notNow("node %d has record %d of %d", id, match, c.applied)
	}
	m.Learner = false
	members[id] = m
	if err := c.decides(members, x.Force); err != nil {
		return err
	}
	return c.proposeMember(pb.ConfChangeAddNode, id, m.Addr)
}

// near is how far behind a learner may be that begins to vote.
const near = 64

// proposeMember proposes a change of the members, one at a time: the engine would put an empty entry in the place of a
// second one.
func (c *consensus) proposeMember(kind pb.ConfChangeType, id uint64, addr string) error {
	if id < 1 || id > uint64(c.cfg.Layout.Nodes) {
		return fmt.Errorf("node id %d; it may be 1 to %d", id, c.cfg.Layout.Nodes)
	}
	if c.reign.changing {
		return notNow("another change of the members is under way")
	}
	if err := c.raft.ProposeConfChange(&pb.ConfChange{Type: kind.Enum(), NodeId: new(id), Context: []byte(addr)}); err != nil {
		return notNow("%v", err)
	}
	c.reign.changing = true
	return nil
}

// MostSums is how many CRCs of chunks an answer has at most.
const MostSums = 16 << 10

// sums are CRCs of chunks of the last check.
func (c *consensus) sums(from int) ([]byte, error) {
	s := c.Status()
	s.Checked, s.Sums = c.disk.Sums(from, MostSums)
	return json.Marshal(s)
}

// Ask asks a node at an address.
func Ask(ctx context.Context, ia *dat.IA, addr string, x Command) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := rpc.Dial(ctx, ia, addr, rpc.Config{Message: mostMessage, Calls: 1, Methods: methods})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	b, err := json.Marshal(x)
	if err != nil {
		return s, err
	}
	answer, err := client.Call(ctx, rpc.Call{Method: methodAdmin, Payload: b}, nil)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(answer, &s)
}
