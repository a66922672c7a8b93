// Package node is one machine's part of a volume: a replica, the engine that orders its log, and the
// connections to the other nodes.
//
//	consensus  owns the engine, and the reign while this node leads; all events come to it as functions
//	reign      what a leader has: writes and reads of hosts, slots, how far the others are
//	keeper     owns the replica: writes log and slots, applies, releases; may wait for the disk
//	lanes      two for each other node, which send: appends, and all else
//	door       answers what other nodes send; it reads the data of slots from the sender by RDMA
//	corridor   brings hosts' commands to the leader, while this node follows
//	holds      calls that wait for what the engine answers, so that it goes back with them
//	rebuilder  makes the disk that of the leader when the log does not do
//	site       what they share: the connections' memory, mailboxes, a few numbers
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
	"godat/examples/volume/journal"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/replica"
	dat "godat/runtime"
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
	// Terms are what is the same on all nodes, beside what a node knows itself.
	Terms Terms
	// Birth was drawn when the files were made; 0 is not known.
	Birth uint64
	Hosts Hosts
	Page  string // of this node, for people: a URL, or empty
	// OnState hears how this node reaches the disk. It must not call the node.
	OnState func(nvme.ANAState)
	Logger  *slog.Logger
	// OnCommit hears how long a write took from its proposal on until this node, which leads, had applied it. It may be nil,
	// must not call the node, and must not wait.
	OnCommit func(time.Duration)

	held  time.Duration // how long a call waits for its answers; default mostHeld
	stall time.Duration // how long a transfer may stand still; default mostStall
}

// terms are all that is the same on all nodes.
func (cfg *Config) terms(size int) Terms {
	own := []Term{
		{"size", strconv.Itoa(size)},
		{"slots", strconv.Itoa(cfg.Layout.Slots)},
		{"slot-size", strconv.Itoa(cfg.Layout.SlotSize)},
		{"ids", strconv.Itoa(cfg.Layout.Nodes)},
		{"tick", cfg.Tick.String()},
	}
	return Terms{All: append(own, cfg.Terms.All...), Founding: cfg.Terms.Founding}
}

// Node is a running node. Its methods may be called from any goroutine.
type Node struct {
	*site
	consensus *consensus
	keeper    *keeper
	rebuilder *rebuilder
	door      *door
}

const (
	electionTicks = 10
	mostMessage   = 128 << 10           // of the messages of a call: an entry is less than half
	mostAppend    = mostMessage / 8 * 7 // of the entries of an append, as the engine counts them: the rest is what goes around them
	smallest      = 16 << 10            // a write of fewer bytes is in its entry
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
	if cfg.held == 0 {
		cfg.held = mostHeld
	}
	if cfg.stall == 0 {
		cfg.stall = mostStall
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
	s := newSite(ia, cfg, j, r)
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	k := &keeper{site: s, replica: r, jobs: newMailbox(), deaf: s.rotten.Load(), due: make(chan struct{}, 1)}
	k.told, _ = s.disk.Applied()
	c := newConsensus(s, k)
	k.consensus = c
	b := &rebuilder{site: s, consensus: c, keeper: k}
	if k.deaf {
		s.wake <- struct{}{}
	}
	d := &door{site: s, consensus: c, orders: make(chan struct{}, max(1, cfg.Layout.Slots/4)), fence: journal.NewFence(s.log.Vote().Term)}
	if err := errors.Join(c.start(), d.hold()); err != nil {
		return nil, errors.Join(err, s.disconnect())
	}
	return &Node{s, c, k, b, d}, nil
}

// Run serves until ctx ends, or until the node can't go on. It is called once.
func (n *Node) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { n.end(context.Cause(ctx)) })
	defer stop()
	n.tasks.Go(n.keeper.run)
	n.tasks.Go(n.keeper.releases)
	n.tasks.Go(n.rebuilder.run)
	n.tasks.Go(n.tellHosts)
	n.tasks.Go(n.door.run)
	n.consensus.run()
	_ = n.server.Close() // again below, when the memory is free
	n.tasks.Wait()
	err := n.disconnect()
	if cause := context.Cause(n.ctx); ctx.Err() == nil {
		return errors.Join(cause, err)
	}
	return err
}

// Addr is the address at which other nodes reach this one.
func (n *Node) Addr() string { return n.server.Addr() }

// Self is what the node says of itself. It waits for nothing.
func (n *Node) Self() Self { return n.self() }

// Status is what the node knows.
func (n *Node) Status() Status { return n.consensus.Status() }
