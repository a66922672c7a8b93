// Package node is one machine's part of a volume: a replica, the engine that orders its log, and the
// connections to the other nodes.
//
//	run       owns the engine and what a leader has; all events come to it as functions
//	keeper    owns the replica: writes log and slots, applies, releases; may wait for the disk
//	lanes     two for each other node, which send: appends, and all else
//	handlers  of what other nodes send; they read the data of slots from the sender by RDMA
//	rebuild   makes the disk that of the leader when the log does not do
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
	"godat/examples/nvmeof/target"
	"godat/examples/volume/journal"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/replica"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// Config says what a node is. Zero values take the defaults.
type Config struct {
	ID     uint64 // 1 to journal.Layout.Nodes
	Addr   string // at which other nodes reach it
	Peers  raftlog.Members
	Layout journal.Layout
	// Journal and Disk are the replica's stores. The caller closes them after Run.
	Journal, Disk store.Store
	Log           *raftlog.Log
	Tick          time.Duration // default 100 ms; an election takes 10 to 20
	// OnState hears how this node reaches the disk. It must not call the node.
	OnState func(nvme.ANAState)
	Logger  *slog.Logger
}

// Node is a running node. Its methods may be called from any goroutine.
type Node struct {
	// Immutable.
	cfg     Config
	ia      *dat.IA
	log     *raftlog.Log
	journal *journal.Journal
	replica *replica.Replica // owned by the keeper
	zone    *dat.PZ
	region  *dat.LMR // the journal
	server  *rpc.Server
	events  mailbox // of run
	jobs    mailbox // of the keeper
	wake    chan struct{}
	ctx     context.Context
	end     context.CancelCauseFunc
	tasks   sync.WaitGroup

	leader   atomic.Uint64 // the leader that run knows of, or 0
	floor    atomic.Uint64 // up to where the leader has freed
	released atomic.Uint64
	rotten   atomic.Bool
	deaf     bool // records wait for the engine of a rebuilt replica; owned by the keeper

	fetching sync.Mutex
	fence    uint64 // the highest term whose appends came; guarded by fetching

	// Owned by run.
	raft    *raft.RawNode
	life    uint64 // counts the engines
	silence int    // ticks since a rotten node heard its leader
	term    uint64
	role    raft.StateType
	applied uint64
	last    uint64
	ana     nvme.ANAState
	peers   map[uint64]*peer
	reign   *reign // what a leader has, or nil
	filling map[*target.Write]fill
	reigns  uint64
}

const (
	electionTicks = 10
	mostMessage   = 64 << 10 // of the engine's messages: an entry is less than half
	smallest      = 16 << 10 // a write of fewer bytes is in its entry
)

// Open opens a node, which serves other nodes when Run runs. The caller closes what Config names, and the
// adapter.
func Open(ctx context.Context, ia *dat.IA, cfg Config) (*Node, error) {
	if cfg.ID < 1 || cfg.ID > uint64(cfg.Layout.Nodes) {
		return nil, fmt.Errorf("node: id %d; it may be 1 to %d", cfg.ID, cfg.Layout.Nodes)
	}
	if cfg.Tick == 0 {
		cfg.Tick = 100 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	j, err := journal.Open(cfg.Journal, cfg.Layout)
	if err != nil {
		return nil, err
	}
	r, err := replica.Open(j, cfg.Disk, cfg.Log)
	if err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, ia: ia, log: cfg.Log, journal: j, replica: r, events: newMailbox(), jobs: newMailbox(),
		wake: make(chan struct{}, 1), peers: make(map[uint64]*peer), filling: make(map[*target.Write]fill), ana: nvme.ANAInaccessible,
	}
	n.ctx, n.end = context.WithCancelCause(context.Background())
	n.fence = n.log.Vote().Term
	n.rotten.Store(r.Rotten() || len(n.log.Members()) == 0)
	if n.rotten.Load() {
		n.deaf = true
		n.wake <- struct{}{}
	}
	if err := n.connect(ctx); err != nil {
		return nil, err
	}
	if err := n.start(); err != nil {
		return nil, errors.Join(err, n.disconnect())
	}
	return n, nil
}

// connect makes the memory and the server.
func (n *Node) connect(ctx context.Context) (err error) {
	if n.zone, err = n.ia.NewPZ(); err != nil {
		return err
	}
	n.region, err = n.zone.Register(n.journal.Memory(), dat.LocalRead|dat.LocalWrite|dat.RemoteRead)
	if err == nil {
		n.server, err = rpc.Listen(ctx, n.ia, n.cfg.Addr, n.rpc())
	}
	if err != nil {
		return errors.Join(err, n.disconnect())
	}
	return nil
}

func (n *Node) rpc() rpc.Config {
	return rpc.Config{Calls: calls, Message: mostMessage, PZ: n.zone, Stall: 2 * time.Second}
}

// disconnect is the end of connect.
func (n *Node) disconnect() error {
	var errs []error
	if n.server != nil {
		errs = append(errs, n.server.Close())
	}
	if n.region != nil {
		errs = append(errs, n.region.Free())
	}
	return errors.Join(append(errs, n.zone.Close())...)
}

// start begins with an engine that has what the log has.
func (n *Node) start() (err error) {
	disk := n.replica.Disk()
	n.applied, _ = disk.Applied()
	_, n.last = n.log.Bounds()
	n.term, n.role = n.log.Vote().Term, raft.StateFollower
	n.released.Store(n.applied)
	n.raft, err = raft.NewRawNode(&raft.Config{
		ID: n.cfg.ID, ElectionTick: electionTicks, HeartbeatTick: 1, Storage: &storage{n.log, disk}, Applied: n.applied,
		AsyncStorageWrites: true, MaxSizePerMsg: mostMessage / 2, MaxCommittedSizePerReady: 1 << 20, MaxInflightMsgs: 64,
		CheckQuorum: true, PreVote: true, DisableProposalForwarding: true, StepDownOnRemoval: true, Logger: quiet{n.cfg.Logger},
	})
	n.life++
	n.setPeers()
	return err
}

// Run serves until ctx ends, or until the node can't go on. It is called once.
func (n *Node) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { n.end(context.Cause(ctx)) })
	defer stop()
	n.tasks.Go(n.keep)
	n.tasks.Go(n.rebuild)
	n.tasks.Go(n.serve)
	n.run()
	for _, p := range n.peers {
		p.stop()
	}
	_ = n.server.Close() // again below, when the memory is free
	n.tasks.Wait()
	err := n.disconnect()
	if cause := context.Cause(n.ctx); ctx.Err() == nil {
		return errors.Join(cause, err)
	}
	return err
}

// fail ends the node: it can't go on.
func (n *Node) fail(err error) {
	n.cfg.Logger.Error("the node ends", "error", err)
	n.end(err)
}

// run is the goroutine of the engine.
func (n *Node) run() {
	ticker := time.NewTicker(n.cfg.Tick)
	defer ticker.Stop()
	for {
		select {
		case <-n.ctx.Done():
			n.abdicate()
			n.events.close()
			return
		case <-ticker.C:
			n.tick()
		case <-n.events.filled:
		}
		n.events.drain()
		n.askReaders()
		for n.raft.HasReady() {
			n.handle(n.raft.Ready())
		}
	}
}

// tick lets time pass. The engine of a rotten node has no time, so it does not want to lead; when
// its leader has been silent it forgets him, and votes for another.
func (n *Node) tick() {
	if !n.rotten.Load() {
		n.raft.Tick()
	} else if n.silence++; n.silence%electionTicks == 0 {
		_ = n.raft.ForgetLeader() // a leader steps down by itself
	}
	n.jobs.put(n.release)
	n.superviseReign()
}

// handle does what the engine says.
func (n *Node) handle(rd raft.Ready) {
	if rd.SoftState != nil {
		n.leader.Store(rd.Lead)
		n.role = rd.RaftState
	}
	if rd.HardState != nil {
		n.term = rd.GetTerm()
	}
	if n.reign != nil && (n.role != raft.StateLeader || n.reign.term != n.term) {
		n.abdicate()
	}
	for _, e := range rd.Entries {
		n.last = e.GetIndex()
		n.name(e)
	}
	for _, s := range rd.ReadStates {
		n.confirm(s)
	}
	life := n.life
	for _, m := range rd.Messages {
		switch m.GetTo() {
		case raft.LocalAppendThread:
			n.jobs.put(func() { n.keepAppend(life, m) })
		case raft.LocalApplyThread:
			n.jobs.put(func() { n.keepApply(life, m) })
		default:
			n.send(m)
		}
	}
	n.showState()
}

// answer takes the answers of the keeper to an engine.
func (n *Node) answer(life uint64, responses []*pb.Message) {
	for _, m := range responses {
		switch {
		case m.GetTo() != n.cfg.ID:
			n.send(m)
		case life == n.life:
			n.step(m)
		}
	}
}

// step gives the engine a message. What it refuses is as if it were lost.
func (n *Node) step(m *pb.Message) {
	if m.GetFrom() == n.leader.Load() {
		n.silence = 0
	}
	if err := n.raft.Step(m); err != nil {
		n.cfg.Logger.Debug("message refused", "type", m.GetType(), "from", m.GetFrom(), "error", err)
	}
}

// showState tells how this node reaches the disk, if that is news.
func (n *Node) showState() {
	state := nvme.ANAInaccessible
	switch lead := n.leader.Load(); {
	case n.reign != nil && n.reign.serves:
		state = nvme.ANAOptimized
	case lead == 0 || lead == n.cfg.ID:
		state = nvme.ANAChange
	}
	if state != n.ana {
		n.ana = state
		n.cfg.Logger.Info("state", "node", n.cfg.ID, "term", n.term, "leader", n.leader.Load(), "ana", state)
		if n.cfg.OnState != nil {
			n.cfg.OnState(state)
		}
	}
}

// Addr is the address at which other nodes reach this one.
func (n *Node) Addr() string { return n.server.Addr() }
