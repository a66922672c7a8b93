package node

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"godat/examples/nvmeof/nvme"
	"godat/examples/volume/state"
)

// consensus is the room of the engine. Its goroutine owns all in it.
type consensus struct {
	*site
	keeper *keeper
	lanes  lanes

	raft     *raft.RawNode
	life     uint64 // counts the engines
	silence  int    // ticks since a rotten node heard its leader
	term     uint64
	role     raft.StateType
	applied  uint64
	last     uint64
	shared   common // of this node's log and the leader's
	ana      nvme.ANAState
	reign    *reign // while this node leads, or nil
	reigns   uint64
	filling  fills
	offer    offer
	corridor *corridor
	holds    holds
	waited   int    // for how many ticks this node has waited for something
	older    uint64 // the term of the leader of whom sayOlder has spoken
	yields   yields
}

// common is up to which record the log of this engine is that of a term's leader, since the engine compared the two: that is
// what it has told that leader.
type common struct{ term, index uint64 }

// offer is what a leader offers this node, which does not have it.
type offer struct{ term, index uint64 }

func newConsensus(s *site, k *keeper) *consensus {
	c := &consensus{site: s, keeper: k, filling: make(fills), ana: nvme.ANAInaccessible}
	c.corridor = newCorridor(c)
	c.lanes = lanes{s, make(map[uint64]*peer), func(id uint64) { c.raft.ReportUnreachable(id) }, c.answered}
	s.ways.news = func() { s.events.put(c.lanes.set) }
	return c
}

// start begins with an engine that has what the log has.
func (c *consensus) start() error {
	c.applied, _ = c.disk.Applied()
	_, c.last = c.log.Bounds()
	c.term, c.role = c.log.Vote().Term, raft.StateFollower
	c.released.Store(c.applied)
	engine, err := raft.NewRawNode(&raft.Config{
		ID: c.cfg.ID, ElectionTick: electionTicks, HeartbeatTick: 1, Storage: &storage{c.log, c.disk}, Applied: c.applied,
		AsyncStorageWrites: true, MaxSizePerMsg: mostAppend, MaxCommittedSizePerReady: 1 << 20, MaxInflightMsgs: 1,
		CheckQuorum: true, PreVote: true, DisableProposalForwarding: true, StepDownOnRemoval: true, Logger: quiet{c.cfg.Logger},
	})
	if err != nil {
		return err
	}
	c.raft = engine
	c.life++
	c.shared = common{}
	c.lanes.set()
	return nil
}

// run is the goroutine of the engine.
func (c *consensus) run() {
	ticker := time.NewTicker(c.cfg.Tick)
	defer ticker.Stop()
	for c.ctx.Err() == nil {
		select {
		case <-c.ctx.Done():
		case <-ticker.C:
			c.tick()
		case <-c.events.filled:
		}
		c.events.drain(c.ctx)
		if c.reign != nil {
			c.reign.askReaders()
		}
		for c.ctx.Err() == nil && c.raft.HasReady() {
			c.handle(c.raft.Ready())
		}
	}
	c.abdicate()
	c.corridor.end()
	c.events.close()
}

// tick lets time pass. The engine of a rotten node has no time, so it does not want to lead; when
// its leader has been silent it forgets him, and votes for another.
func (c *consensus) tick() {
	if c.ahead.Load() != nil {
		c.silence = 0 // nor has that of one that follows nobody
	} else if !c.rotten.Load() {
		c.raft.Tick()
	} else if c.silence++; c.silence%electionTicks == 0 {
		_ = c.raft.ForgetLeader() // a leader steps down by itself
	}
	c.keeper.jobs.put(c.keeper.release)
	c.sayWaits()
	c.corridor.tick()
	if c.reign != nil {
		c.reign.supervise()
	}
}

// handle does what the engine says.
func (c *consensus) handle(rd raft.Ready) {
	if rd.SoftState != nil {
		c.counts.leader(c.leader.Load(), rd.Lead)
		c.leader.Store(rd.Lead)
		c.role = rd.RaftState
		c.corridor.follow()
	}
	if rd.HardState != nil {
		c.term = rd.GetTerm()
	}
	if c.reign != nil && (c.role != raft.StateLeader || c.reign.term != c.term) {
		c.abdicate()
	}
	for _, e := range rd.Entries {
		c.last = e.GetIndex()
		c.name(e)
	}
	for _, s := range rd.ReadStates {
		if c.reign != nil {
			c.reign.confirm(s)
		}
	}
	life := c.life
	for _, m := range rd.Messages {
		switch m.GetTo() {
		case raft.LocalAppendThread:
			c.keeper.keep(life, m)
		case raft.LocalApplyThread:
			c.keeper.jobs.put(func() { c.keeper.apply(life, m) })
		default:
			c.send(m)
		}
	}
	c.showState()
}

// answered takes what a node answered to messages.
func (c *consensus) answered(x note, messages []*pb.Message) {
	c.hear(x)
	for _, m := range messages {
		c.step(m)
	}
}

// send sends a message, or loses it.
func (c *consensus) send(m *pb.Message) {
	if c.ahead.Load() != nil {
		return
	}
	if m.GetType() == pb.MsgAppResp && !m.GetReject() {
		c.shares(m)
	}
	if m.GetType() == pb.MsgApp && c.reign != nil {
		if c.reign.out[m.GetTo()] {
			m.Entries = nil // its slots are not written to
		} else if c.reign.spares(m) {
			return
		}
	}
	if !c.holds.give(m) && !c.lanes.send(m) {
		c.lanes.lost(m.GetTo())
	}
}

// answer takes the answers of the keeper to an engine.
func (c *consensus) answer(life uint64, responses []*pb.Message) {
	for _, m := range responses {
		switch {
		case m.GetTo() != c.cfg.ID:
			c.send(m)
		case life == c.life:
			c.step(m)
		}
	}
}

// step gives the engine a message. What it refuses is as if it were lost. When the node ends its engine may look
// for records that are gone; that of a rotten replica must not lead.
func (c *consensus) step(m *pb.Message) {
	if c.ctx.Err() != nil || m.GetType() == pb.MsgTimeoutNow && c.rotten.Load() {
		return
	}
	if other := m.GetFrom() <= uint64(c.cfg.Layout.Nodes); other && (c.ahead.Load() != nil || !c.agrees(m)) {
		return
	}
	if m.GetType() == pb.MsgAppResp && !m.GetReject() && m.GetTerm() == c.term && m.GetIndex() > c.last {
		c.refused(m.GetFrom(), c.where()[m.GetFrom()].Addr, true, stranger("node %d acknowledges record %d, which nobody has sent: it is ahead of node %d, which leads", m.GetFrom(), m.GetIndex(), c.cfg.ID))
		return
	}
	if m.GetFrom() == c.leader.Load() {
		c.silence = 0
	}
	if m.GetType() == pb.MsgHeartbeat && m.GetTerm() >= c.term {
		if m.GetCommit() > c.last {
			c.sayOlder(m)
			c.catchUp(m.GetTerm(), m.GetCommit()) // this node has acknowledged that, and lost it
		}
		m.Commit = new(min(m.GetCommit(), c.shared.of(m.GetTerm())))
	}
	if err := c.raft.Step(m); err != nil {
		c.cfg.Logger.Debug("message refused", "type", m.GetType(), "from", m.GetFrom(), "error", err)
	}
}

// shares notes what this node tells a leader that it has as he has it. A leader says that a record is committed to whom told him so;
// a node that was started again, of an older copy of its files, may have other records there. It tells him anew before it believes him.
func (c *consensus) shares(m *pb.Message) {
	x := common{m.GetTerm(), m.GetIndex()}
	if x.term == c.shared.term {
		x.index = max(x.index, c.shared.index)
	}
	c.shared = x
}

// of is the record of a term's leader, or 0.
func (x common) of(term uint64) uint64 {
	if x.term != term {
		return 0
	}
	return x.index
}

// sayOlder says, once for each leader, that a leader counts on records that this node has no more.
func (c *consensus) sayOlder(m *pb.Message) {
	if c.rotten.Load() || c.older == m.GetTerm() {
		return
	}
	c.older = m.GetTerm()
	c.cfg.Logger.Warn("this node has acknowledged records that it has no more: its directory is an older copy, or its log was cut short; the disk is rebuilt from the leader",
		"node", c.cfg.ID, "acknowledged", m.GetCommit(), "has", c.last, "leader", m.GetFrom())
}

// took notes what was applied.
func (c *consensus) took(life, index uint64, changes []*pb.ConfChange, responses []*pb.Message) {
	c.applied = max(c.applied, index)
	if life == c.life {
		for _, change := range changes {
			c.raft.ApplyConfChange(change)
		}
	}
	if len(changes) != 0 {
		c.lanes.set()
		if c.reign != nil {
			c.reign.membersChanged()
		}
	}
	c.answer(life, responses)
	c.corridor.finish()
	if c.reign != nil {
		c.reign.finish()
	}
}

// showState tells how this node reaches the disk, if that is news.
func (c *consensus) showState() {
	state := nvme.ANAInaccessible
	switch lead := c.leader.Load(); {
	case c.ahead.Load() != nil:
	case c.reign != nil && c.reign.serves:
		state = nvme.ANAOptimized
	case lead == 0 || lead == c.cfg.ID:
		state = nvme.ANAChange
	case c.corridor.open():
		state = nvme.ANANonOptimized
	}
	if state != c.ana {
		c.ana = state
		c.cfg.Logger.Info("state", "node", c.cfg.ID, "term", c.term, "leader", c.leader.Load(), "ana", state)
		if c.cfg.OnState != nil {
			c.cfg.OnState(state)
		}
	}
}

// offered takes a leader's offer of a snapshot.
func (c *consensus) offered(m *pb.Message) {
	if c.ahead.Load() == nil && c.agrees(m) {
		c.catchUp(m.GetTerm(), m.GetSnapshot().GetMetadata().GetIndex())
	}
}

// catchUp makes this node have what a leader has, up to an index: he offers a snapshot, since he has no records for
// this node, or counts on more than it has. If it has that much the leader does not know.
func (c *consensus) catchUp(term, index uint64) {
	if term < c.term || c.rotten.Load() {
		return
	}
	c.offer = offer{term, index}
	if !c.lacks() {
		c.tellCaughtUp()
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// lacks reports whether this node needs a snapshot. One that was offered is needed no more when the records have
// come meanwhile, or when a later leader may have them. One that is ahead keeps its disk.
func (c *consensus) lacks() bool {
	return c.ahead.Load() == nil && (c.rotten.Load() || c.offer.term >= c.term && c.offer.index > c.applied)
}

var errMayLead = errors.New("node: it may come to lead")

// begin begins to catch up from a list of the leader's disk. It returns nil if this node does not need that any more.
// From then on the engine has no time, so it follows.
func (c *consensus) begin(s state.Snapshot) (*state.CatchUp, error) {
	if !c.lacks() {
		c.tellCaughtUp()
		return nil, nil
	}
	if c.raft.BasicStatus().RaftState != raft.StateFollower {
		return nil, errMayLead
	}
	var caught *state.CatchUp
	var err error
	if !c.ask(c.keeper.jobs, func() {
		err = c.catching.during(func() (err error) { caught, err = c.keeper.replica.CatchUp(s); return err })
		if err == nil {
			c.keeper.deaf = true
			c.rotten.Store(true)
		}
	}) {
		return nil, context.Cause(c.ctx)
	}
	return caught, err
}

// tellCaughtUp tells the leader up to where the log is his.
func (c *consensus) tellCaughtUp() {
	c.send(&pb.Message{
		Type: pb.MsgAppResp.Enum(), From: new(c.cfg.ID), To: new(c.leader.Load()), Term: new(c.term), Index: new(c.applied),
	})
}

// adopt ends what CatchUp began, and begins with an engine that has what the log has then. The former one
// would look for records that are gone, so it runs no more from the moment on at which they go. again says
// that the replica needs another snapshot. The members are kept first: they may be those after later records, but
// must not be those before records that are gone.
func (c *consensus) adopt(caught *state.CatchUp, members membership) bool {
	var err error
	again := false
	if !c.ask(c.keeper.jobs, func() {
		err = c.catching.during(func() error {
			if err := members.keep(c.log); err != nil {
				return err
			}
			return c.keeper.replica.CaughtUp(caught)
		})
		if err == nil {
			again = c.keeper.replica.Rotten()
			c.keeper.told, _ = c.disk.Applied() // as the new engine begins
			c.keeper.deaf = again               // no job of the former engine is left
		}
	}) {
		return false
	}
	leader := c.leader.Load()
	if err == nil {
		err = c.start()
	}
	if err != nil {
		c.fail(err)
		return false
	}
	c.leader.Store(leader)
	c.rotten.Store(again)
	if !again {
		c.counts.rebuilds.Add(1)
		c.cfg.Logger.Info("rebuilt", "node", c.cfg.ID, "index", c.applied, "copied", c.counts.rebuiltBytes.Load())
		c.tellCaughtUp()
	}
	return again
}
