package node

import (
	"bytes"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/target"
	"godat/examples/volume/journal"
)

// reign is what a node has while it leads, from the first entry of its term on. What an earlier
// reign has placed in slots stays there until the host's data has come or never will.
type reign struct {
	number   uint64
	term     uint64
	first    uint64 // its first entry
	serves   bool   // that entry is applied: the disk has all that earlier leaders acknowledged
	pool     *journal.Pool
	out      map[uint64]bool // nodes whose slots are not written to
	proposed []proposal      // that have no index yet
	named    []proposal      // by index
	placing  []*target.Write // that wait for a slot
	stash    map[uint32]bool // slots that are free, but for a transfer of an earlier reign

	reads   []*target.Read // that wait for the next round of heartbeats
	round   uint64         // counts the rounds
	asked   []*target.Read // that wait for the round under way; nil if there is none
	reading []reading      // that wait for an entry to be applied

	behind, at uint64 // the node that has released least, and up to where
	held       int    // for how many ticks
	lost       map[uint64]int
}

// proposal is an entry that the leader proposes.
type proposal struct {
	data  []byte
	index uint64
	slot  uint32
	large bool // slot is named
	done  func(error)
}

// reading are reads that may see the disk when an entry is applied.
type reading struct {
	index uint64
	reads []*target.Read
}

// fill is a slot into which a host's data comes.
type fill struct {
	slot  uint32
	reign uint64
}

// patience is for how many ticks a node may hold slots that others want, and be rebuilt.
const patience = electionTicks

var (
	errElsewhere = nvme.StatusError(nvme.ANAInaccessibleStatus)
	errChange    = nvme.StatusError(nvme.ANATransitionStatus)
)

// refusal is why this node does not serve the disk, or nil.
func (n *Node) refusal() error {
	switch {
	case n.reign != nil && n.reign.serves:
		return nil
	case n.ana == nvme.ANAInaccessible:
		return errElsewhere
	}
	return errChange
}

// name takes an entry of the engine's, which has an index now. The first one of a term begins a reign.
func (n *Node) name(e *pb.Entry) {
	if n.role != raft.StateLeader || e.GetTerm() != n.term {
		return
	}
	if n.reign == nil {
		n.beginReign(e.GetIndex())
		return
	}
	r := n.reign
	if len(r.proposed) == 0 || !bytes.Equal(r.proposed[0].data, e.Data) || e.GetType() != pb.EntryNormal {
		return // a change of the members
	}
	p := r.proposed[0]
	r.proposed = r.proposed[1:]
	p.index = e.GetIndex()
	if p.large {
		r.pool.Name(p.slot, p.index)
	}
	r.named = append(r.named, p)
}

func (n *Node) beginReign(first uint64) {
	n.reigns++
	members := n.log.Members()
	var direct []uint64
	voters := 0
	for id, m := range members {
		direct = append(direct, id)
		if !m.Learner {
			voters++
		}
	}
	n.reign = &reign{
		number: n.reigns, term: n.term, first: first, out: make(map[uint64]bool), stash: make(map[uint32]bool), lost: make(map[uint64]int),
		pool: journal.NewPool(n.cfg.Layout, int(n.cfg.ID-1), first, voters/2+1, direct...),
	}
	n.reign.pool.Release(n.cfg.ID, n.released.Load())
}

// abdicate ends the reign. Nobody knows what becomes of the writes under way: hosts make them again at
// the next leader, whose log has them before, or never.
func (n *Node) abdicate() {
	r := n.reign
	if r == nil {
		return
	}
	n.reign = nil
	for _, w := range r.placing {
		w.Done(errChange)
	}
	for _, p := range append(r.named, r.proposed...) {
		p.done(errChange)
	}
	reads := append(r.reads, r.asked...)
	for _, x := range r.reading {
		reads = append(reads, x.reads...)
	}
	for _, x := range reads {
		x.Done(errChange)
	}
}

// finishApplied answers what waits for entries that are applied now.
func (n *Node) finishApplied() {
	r := n.reign
	if r == nil {
		return
	}
	r.serves = r.serves || n.applied >= r.first
	for len(r.named) != 0 && r.named[0].index <= n.applied {
		r.named[0].done(nil)
		r.named = r.named[1:]
	}
	for len(r.reading) != 0 && r.reading[0].index <= n.applied {
		for _, x := range r.reading[0].reads {
			x.Done(nil)
		}
		r.reading = r.reading[1:]
	}
	n.showState()
}

// tellReleased tells the leader, or the pool, what this node has released.
func (n *Node) tellReleased(index uint64) {
	if n.reign != nil {
		n.reign.pool.Release(n.cfg.ID, index)
		n.reuse()
		return
	}
	n.log.SetFloor(min(index, n.floor.Load()))
	if p := n.peers[n.leader.Load()]; p != nil {
		select {
		case p.other <- nil:
		default:
		}
	}
}

// hear takes a note of another node.
func (n *Node) hear(x note) {
	r := n.reign
	if r == nil {
		if x.from == n.leader.Load() {
			n.floor.Store(max(x.floor, n.floor.Load()))
			n.log.SetFloor(min(n.released.Load(), x.floor))
		}
		return
	}
	if _, member := n.log.Members()[x.from]; !member || x.rotten {
		return
	}
	if r.out[x.from] && r.pool.Join(x.from, x.released) {
		delete(r.out, x.from)
	}
	r.pool.Release(x.from, x.released)
	n.reuse()
}

// reuse goes on when more may be released.
func (n *Node) reuse() {
	n.floor.Store(max(n.reign.pool.Released(), n.floor.Load()))
	n.log.SetFloor(min(n.released.Load(), n.floor.Load()))
	n.placeAll()
}

// takeOut stops writing to a node's slots.
func (n *Node) takeOut(id uint64) {
	n.cfg.Logger.Warn("a node is out", "node", id)
	n.reign.out[id] = true
	n.reign.pool.Leave(id)
	n.reuse()
}

// membersChanged takes out those that are members no more. A new one gets no data in slots before it says
// that it has what went before.
func (n *Node) membersChanged() {
	r := n.reign
	if r == nil {
		return
	}
	members, voters := n.log.Members(), 0
	n.raft.WithProgress(func(id uint64, kind raft.ProgressType, _ tracker.Progress) {
		if kind == raft.ProgressTypePeer {
			voters++
		}
		if !r.pool.Has(id) {
			r.out[id] = true
		}
	})
	for id := range uint64(n.cfg.Layout.Nodes) {
		if _, member := members[id+1]; !member {
			r.pool.Leave(id + 1)
			delete(r.out, id+1)
		}
	}
	r.pool.SetMajority(voters/2 + 1)
	n.reuse()
}

// mostKept is how many records may wait for one node to release them.
const mostKept = 4096

// superviseReign takes out a node that holds what others need, and asks again one that does not say that
// it has caught up.
func (n *Node) superviseReign() {
	r := n.reign
	if r == nil {
		return
	}
	id, at := r.pool.Behind()
	if id == n.cfg.ID || id == 0 || id != r.behind || at != r.at || len(r.placing) == 0 && n.last-at < mostKept {
		r.behind, r.at, r.held = id, at, 0
	} else if r.held++; r.held > patience {
		n.takeOut(id)
	}
	var again []uint64
	n.raft.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		if p.State != tracker.StateSnapshot {
			r.lost[id] = 0
		} else if r.lost[id]++; r.lost[id]%patience == 0 {
			again = append(again, id)
		}
	})
	for _, id := range again {
		n.raft.ReportSnapshot(id, raft.SnapshotFailure)
	}
}
