package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"godat/check/world/program"
	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/target"
	"godat/examples/volume/fault"
	"godat/examples/volume/journal"
	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
	dat "godat/runtime"
)

const (
	size  = 192 << 10 // of the disk, in bytes
	block = 512
	tick  = 100 * time.Millisecond
)

// member is a node of a volume, through its lives.
type member struct {
	w      *program.World
	id     uint64
	host   string
	addr   string
	serves string // where hosts reach it
	ia     *dat.IA
	volume identity.ID
	peers  raftlog.Members
	made   bool
	joins  bool // it is about to be added

	disk, journal *fault.Store
	file          *file

	mu     sync.Mutex
	node   *node.Node // nil while it is down
	stop   context.CancelFunc
	ran    chan error
	doomed bool // it may end by itself: its disk is full
}

// layout is that of a volume's journals.
func layout(volume identity.ID) journal.Layout {
	return journal.Layout{Nodes: 7, Slots: 4, SlotSize: 32 << 10, Volume: volume}
}

// member makes a node with a number, which is told where the others are.
func (v *volume) member(id uint64, told raftlog.Members) (*member, error) {
	host, addr, serves := v.place(id)
	ia, err := v.w.Open(host)
	if err != nil {
		return nil, err
	}
	return &member{
		w: v.w, id: id, host: host, addr: addr, serves: serves, ia: ia, volume: v.id, peers: told,
		disk: fault.New(state.Size(size)), journal: fault.New(layout(v.id).Size()), file: newFile(),
	}, nil
}

// Write makes a line of the node's log a step.
func (m *member) Write(line []byte) (int, error) {
	m.w.Step(m.host, "%s", bytes.TrimSpace(line))
	return len(line), nil
}

// brief leaves out what a step has by itself.
func brief(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
		return slog.Attr{}
	}
	return a
}

// start begins a life.
func (m *member) start() error {
	log, err := raftlog.Open("", raftlog.Config{Medium: m.file, Volume: m.volume, Made: m.made})
	if err == nil && !m.made && !m.joins {
		err = log.SetMembers(m.peers)
	}
	if err != nil {
		return fmt.Errorf("node %d's log: %w", m.id, err)
	}
	m.made = true
	ctx, cancel := context.WithCancel(context.Background())
	n, t, err := m.open(ctx, log)
	if err != nil {
		cancel()
		return fmt.Errorf("node %d: %w", m.id, err)
	}
	ran := make(chan error, 1)
	m.mu.Lock()
	m.node, m.stop, m.ran, m.doomed = n, cancel, ran, false
	m.mu.Unlock()
	served := make(chan error, 1)
	go func() { served <- t.Run(ctx) }()
	go func() {
		err := n.Run(ctx)
		m.mu.Lock()
		if ctx.Err() == nil && !m.doomed {
			m.w.Wrong("node %d has ended: %v", m.id, err)
		}
		m.node = nil
		m.mu.Unlock()
		cancel()
		ran <- errors.Join(err, <-served)
		close(ran) // who ends a node that has ended hears of it, too
	}()
	m.w.Step(m.host, "node %d is there", m.id)
	return nil
}

// open opens the node, and the target by which hosts reach it.
func (m *member) open(ctx context.Context, log *raftlog.Log) (*node.Node, *target.Target, error) {
	t, err := target.New(ctx, m.ia, target.Config{Addr: m.serves, Subsystem: subsystem(m.volume), Queues: 1, Depth: 32, Transfer: layout(m.volume).SlotSize})
	if err != nil {
		return nil, nil, err
	}
	show := func(s nvme.ANAState) { _ = t.SetANAState(1, s) } // which is one
	show(nvme.ANAInaccessible)
	n, err := node.Open(ctx, m.ia, node.Config{
		ID: m.id, Addr: m.addr, Peers: m.peers, Layout: layout(m.volume), Journal: m.journal, Disk: m.disk, Log: log, Tick: tick,
		OnState: show, Logger: slog.New(slog.NewTextHandler(m, &slog.HandlerOptions{ReplaceAttr: brief})),
	})
	if err == nil {
		err = t.Set(1, target.Namespace{Store: n.Device(), BlockSize: block, ID: identity.ID{1, m.volume[0]}})
	}
	if err != nil {
		over, end := context.WithCancel(ctx)
		end()
		return nil, nil, errors.Join(err, t.Run(over))
	}
	return n, t, nil
}

// up is the node, nil while it is down.
func (m *member) up() *node.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node
}

// doom says that the node may end by itself.
func (m *member) doom() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doomed = true
}

// end ends the life in order, or by a power cut, at whose moment all that is not stable is lost.
func (m *member) end(power bool, draw *rand.Rand) {
	if power {
		m.lose(draw)
	}
	m.stop()
	err := <-m.ran
	m.mu.Lock()
	doomed := m.doomed
	m.mu.Unlock()
	m.w.Step(m.host, "node %d has ended, by a power cut: %v: %v", m.id, power, err)
	if err != nil && !doomed {
		m.w.Wrong("node %d ended in order, and says %v", m.id, err)
	}
}

// lose is a power cut. What the node does until its end is nobody's.
func (m *member) lose(draw *rand.Rand) {
	m.mu.Lock()
	m.node, m.doomed = nil, true
	m.mu.Unlock()
	m.disk, m.journal, m.file = behind(m.disk, draw), behind(m.journal, draw), m.file.after(draw)
}

// behind is a disk behind a power cut. The old one keeps what it has in memory: who still reads that read it before.
func behind(old *fault.Store, draw *rand.Rand) *fault.Store {
	old.FailAfter(0)
	before := bytes.Clone(old.Memory())
	old.Fail(draw)
	next := fault.New(len(before))
	copy(next.Memory(), old.Memory())
	copy(old.Memory(), before)
	if err := next.Flush(0, len(before)); err != nil {
		panic(err) // it is in memory
	}
	return next
}

// again begins a further life.
func (m *member) again() {
	if err := m.start(); err != nil {
		m.w.Wrong("a node does not come back: %v", err)
	}
}
