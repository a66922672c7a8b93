package node

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/target"
	"godat/examples/volume/entry"
	"godat/examples/volume/journal"
)

// reign is what a node has while it leads, from the first entry of its term on. What an earlier
// reign has placed in slots stays there until the host's data has come or never will.
type reign struct {
	c        *consensus
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
	// Followers that wait for the next round, and for the one under way.
	questions, questioned []func(index uint64, err error)

	behind, at uint64 // the node that has released least, and up to where
	held       int    // for how many ticks
	mark       uint64 // an entry that was committed at some tick
	late       int    // for how many ticks another node has released it, and this one has not
	stall      stall
	yielded    int             // how often it was to let another node lead, since nothing was committed
	rotten     map[uint64]bool // nodes that are being rebuilt, as they say
	lost       map[uint64]int
	unheard    map[uint64]int // for how many ticks, as far as the engine counts
	takes      map[uint64]*taking
	backs      map[uint64]back
	passes     *passes
	grants     grants
	changing   bool   // a change of the members is proposed, and not applied
	urgent     uint64 // the last record of which others are to know at once that it is committed
}

// proposal is an entry that the leader proposes.
type proposal struct {
	data  []byte
	index uint64
	slot  uint32
	large bool // slot is named
	done  func(error)
	begun time.Time
}

// reading are reads that may see the disk when an entry is applied.
type reading struct {
	index uint64
	reads []*target.Read
}

const (
	brief    = 2                 // for how many ticks a node alone may hold slots that others want
	patience = electionTicks     // for how many ticks a node may hold records that nobody waits for, and be rebuilt
	lateness = 5 * electionTicks // by how many ticks a leader's disk may be behind another node's: one that is busy is, for seconds
)

var (
	errElsewhere = nvme.StatusError(nvme.ANAInaccessibleStatus)
	errChange    = nvme.StatusError(nvme.ANATransitionStatus)
)

// refusal is why this node does not serve the disk, or nil.
func (c *consensus) refusal() error {
	switch {
	case c.reign != nil && c.reign.serves:
		return nil
	case c.ana == nvme.ANAInaccessible:
		return errElsewhere
	}
	return errChange
}

// name takes an entry of the engine's, which has an index now. The first one of a term begins a reign.
func (c *consensus) name(e *pb.Entry) {
	switch {
	case c.role != raft.StateLeader || e.GetTerm() != c.term:
	case c.reign == nil:
		c.beginReign(e.GetIndex())
	default:
		c.reign.name(e)
	}
}

func (c *consensus) beginReign(first uint64) {
	c.reigns++
	members := c.log.Members()
	var direct []uint64
	voters := 0
	for id, m := range members {
		direct = append(direct, id)
		if !m.Learner {
			voters++
		}
	}
	c.reign = &reign{
		c: c, number: c.reigns, term: c.term, first: first, urgent: first, out: make(map[uint64]bool), stash: make(map[uint32]bool), lost: make(map[uint64]int), unheard: make(map[uint64]int), takes: make(map[uint64]*taking), backs: make(map[uint64]back), rotten: make(map[uint64]bool),
		pool: journal.NewPool(c.cfg.Layout, int(c.cfg.ID-1), first, voters/2+1, direct...),
	}
	c.reign.beginPasses()
	c.reign.pool.Release(c.cfg.ID, c.released.Load())
}

// abdicate ends the reign, if there is one.
func (c *consensus) abdicate() {
	if r := c.reign; r != nil {
		c.reign = nil
		if r.yielded != 0 {
			c.yields.note()
		}
		r.end()
	}
}

// tellReleased tells the leader, or the pool, what this node has released. The engine knows by now that it has
// applied that, and looks for none of these records.
func (c *consensus) tellReleased(index uint64) {
	c.released.Store(index)
	if c.reign != nil {
		c.reign.pool.Release(c.cfg.ID, index)
		c.reign.reuse()
		return
	}
	c.log.SetFloor(min(index, c.floor.Load()))
	if p := c.lanes.peers[c.leader.Load()]; p != nil {
		select {
		case p.other <- justNote:
		default:
		}
	}
}

// hear takes a note of another node.
func (c *consensus) hear(x note) {
	if c.reign != nil {
		c.reign.hear(x)
	} else if x.from == c.leader.Load() {
		c.floor.Store(max(x.floor, c.floor.Load()))
		c.log.SetFloor(min(c.released.Load(), x.floor))
	}
}

// name gives the entry that was proposed first its index.
func (r *reign) name(e *pb.Entry) {
	if !writes(e) || 4*r.pool.Free() <= 3*r.c.cfg.Layout.Slots {
		r.urgent = e.GetIndex()
	}
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

// writes reports whether an entry writes data.
func writes(e *pb.Entry) bool {
	if e.GetType() != pb.EntryNormal || len(e.Data) == 0 {
		return false
	}
	op := entry.Op(e.Data[0])
	return op == entry.Write || op == entry.Small
}

// spares reports whether an append need not be sent: it only says that records are committed, and nobody waits for others to
// apply them. The next append says that, too, or the heartbeat of the next tick. A writer that waits for each write finds the
// lane free, and two calls in four are not made. Each index is spared once, so an append by which the engine
// asks what a node has goes.
func (r *reign) spares(m *pb.Message) bool {
	p := r.c.lanes.peers[m.GetTo()]
	if p == nil || len(m.GetEntries()) != 0 || m.GetCommit() <= p.told || p.told < r.urgent || len(r.placing) != 0 {
		return false
	}
	p.told = m.GetCommit()
	return true
}

// end refuses all that waits. Nobody knows what becomes of the writes under way: hosts make them again at
// the next leader, whose log has them before, or never.
func (r *reign) end() {
	r.passes.end()
	r.grants.end()
	for _, w := range r.placing {
		w.Done(errChange)
	}
	for _, p := range append(r.named, r.proposed...) {
		p.done(errChange)
	}
	for _, got := range append(r.questions, r.questioned...) {
		got(0, errChange)
	}
	reads := append(r.reads, r.asked...)
	for _, x := range r.reading {
		reads = append(reads, x.reads...)
	}
	for _, x := range reads {
		x.Done(errChange)
	}
}

// finish answers what waits for entries that are applied now.
func (r *reign) finish() {
	r.serves = r.serves || r.c.applied >= r.first
	for len(r.named) != 0 && r.named[0].index <= r.c.applied {
		r.c.committed(r.named[0].begun)
		r.named[0].done(nil)
		r.named = r.named[1:]
	}
	for len(r.reading) != 0 && r.reading[0].index <= r.c.applied {
		for _, x := range r.reading[0].reads {
			x.Done(nil)
		}
		r.reading = r.reading[1:]
	}
	r.c.showState()
}

// hear takes a note of another node.
func (r *reign) hear(x note) {
	if _, member := r.c.log.Member(x.from); !member {
		return
	}
	if r.rotten[x.from] = x.rotten; x.rotten {
		return
	}
	if r.out[x.from] && r.pool.Join(x.from, x.released) {
		delete(r.out, x.from)
	}
	r.pool.Release(x.from, x.released)
	r.reuse()
}

// reuse goes on when more may be released.
func (r *reign) reuse() {
	r.c.floor.Store(max(r.pool.Released(), r.c.floor.Load()))
	r.c.log.SetFloor(min(r.c.released.Load(), r.c.floor.Load()))
	r.placeAll()
}

// takeOut stops writing to a node's slots.
func (r *reign) takeOut(id uint64) {
	r.c.cfg.Logger.Warn("a node is out", "node", id)
	r.out[id] = true
	r.pool.Leave(id)
	r.reuse()
}

// membersChanged takes out those that are members no more. A new one gets no data in slots before it says
// that it has what went before.
func (r *reign) membersChanged() {
	r.changing = false
	members, voters := r.c.log.Members(), 0
	r.c.raft.WithProgress(func(id uint64, kind raft.ProgressType, _ tracker.Progress) {
		if kind == raft.ProgressTypePeer {
			voters++
		}
		if !r.pool.Has(id) {
			r.out[id] = true
		}
	})
	for id := range uint64(r.c.cfg.Layout.Nodes) {
		if _, member := members[id+1]; !member {
			r.pool.Leave(id + 1)
			delete(r.out, id+1)
		}
	}
	r.pool.SetMajority(voters/2 + 1)
	r.reuse()
}

// mostKept is how many records may wait for one node to release them. That node applies no more then.
const mostKept = 4096

// supervise takes out a node that holds what others need, and asks again one that does not say that
// it has caught up.
func (r *reign) supervise() {
	id, at := r.pool.Behind()
	short := len(r.placing) != 0 && r.pool.Holds(id)
	if id == r.c.cfg.ID || id == 0 || id != r.behind || at != r.at || !short && r.c.last-at < mostKept {
		r.behind, r.at, r.held = id, at, 0
	} else if r.held++; short && r.held >= brief || r.held > patience {
		r.takeOut(id)
	}
	r.handOver()
	r.watch()
	r.grants.tick()
	var again []uint64
	r.c.raft.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		if r.unheard[id]++; p.RecentActive || id == r.c.cfg.ID {
			r.unheard[id] = 0
		}
		r.measure(id, &p)
		r.returns(id, r.silent(id))
		if p.State != tracker.StateSnapshot {
			r.lost[id] = 0
		} else if r.lost[id]++; r.lost[id]%patience == 0 {
			again = append(again, id)
		}
	})
	for _, id := range again {
		r.c.raft.ReportSnapshot(id, raft.SnapshotFailure)
	}
}

// handOver gives the lead away when this node's disk is slow: another one has released long ago what this
// one has not. That all are slow, and how much waits for them, is no reason.
func (r *reign) handOver() {
	if r.c.released.Load() >= r.mark {
		r.mark, r.late = r.c.raft.BasicStatus().GetCommit(), 0
		return
	}
	next := uint64(0)
	r.c.raft.WithProgress(func(id uint64, kind raft.ProgressType, _ tracker.Progress) {
		if kind == raft.ProgressTypePeer && r.pool.ReleasedBy(id) >= r.mark {
			next = id
		}
	})
	if next == 0 {
		return
	}
	if r.late++; r.late%lateness == 0 {
		r.c.cfg.Logger.Warn("the disk is slow: another node is to lead", "node", next)
		r.c.raft.TransferLeader(next)
	}
}

var errNotLeader = errors.New("node: it gives no snapshot now")

// admit lets a node be rebuilt from this one, if what it acknowledged is not needed any more: it has
// lost that anyway, or a majority without it has all up to the list, or has released all that the node
// has of this log. The node is out until its last round.
func (c *consensus) admit(x note, last bool) error {
	r := c.reign
	if r == nil {
		return errNotLeader
	}
	if _, member := c.log.Member(x.from); !member {
		return fmt.Errorf("node: node %d is no member", x.from)
	}
	applied, _ := c.disk.Applied()
	first, _ := c.log.FirstIndex()
	voters, have, spared := 0, 0, x.rotten
	c.raft.WithProgress(func(id uint64, kind raft.ProgressType, p tracker.Progress) {
		if id == x.from && (p.State == tracker.StateSnapshot || p.Next < first) {
			spared = true
		}
		if kind == raft.ProgressTypePeer {
			voters++
			if id != x.from && p.Match >= applied {
				have++
			}
		}
	})
	if !spared && have <= voters/2 {
		return errors.New("node: others do not have all of it yet")
	}
	r.out[x.from] = true
	r.pool.Leave(x.from)
	if last && r.pool.Join(x.from, applied) {
		delete(r.out, x.from)
	}
	r.reuse()
	if last && r.out[x.from] {
		return fmt.Errorf("node: entries behind %d are not there any more", applied)
	}
	return nil
}
