package nodes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"godat/check/world/program"
	"godat/examples/nvmeof/identity"
	"godat/examples/volume/fault"
	"godat/examples/volume/journal"
	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
	dat "godat/runtime"
)

const (
	size  = 96 << 10 // of the disk, in bytes
	block = 512
)

// member is a node of a volume, through its lives.
type member struct {
	w      *program.World
	id     uint64
	host   string
	ia     *dat.IA
	volume identity.ID
	peers  raftlog.Members
	made   bool

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
	return journal.Layout{Nodes: 5, Slots: 4, SlotSize: 16 << 10, Volume: volume}
}

// found makes the members of a volume, which listen at the hosts, and starts them.
func found(w *program.World, volume identity.ID, hosts []string, port int, slip func(raftlog.Members)) ([]*member, error) {
	peers := make(raftlog.Members)
	for i, host := range hosts {
		peers[uint64(i+1)] = raftlog.Member{Addr: fmt.Sprintf("%s:%d", host, port+i)}
		if w.Network == nil {
			peers[uint64(i+1)] = raftlog.Member{Addr: fmt.Sprintf("loop:%d", port+i)}
		}
	}
	all := make([]*member, len(hosts))
	for i, host := range hosts {
		ia, err := w.Open(host)
		if err != nil {
			return nil, err
		}
		m := &member{
			w: w, id: uint64(i + 1), host: host, ia: ia, volume: volume, peers: make(raftlog.Members),
			disk: fault.New(state.Size(size)), journal: fault.New(layout(volume).Size()), file: newFile(),
		}
		for id, is := range peers {
			m.peers[id] = is
		}
		if slip != nil {
			slip(m.peers)
			m.peers[m.id] = peers[m.id]
		}
		all[i] = m
	}
	for _, m := range all {
		if err := m.start(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// start begins a life.
func (m *member) start() error {
	log, err := raftlog.Open("", raftlog.Config{File: m.file, Volume: m.volume, Made: m.made})
	if err == nil && !m.made {
		err = log.SetMembers(m.peers)
	}
	if err != nil {
		return fmt.Errorf("node %d's log: %w", m.id, err)
	}
	m.made = true
	ctx, cancel := context.WithCancel(context.Background())
	n, err := node.Open(ctx, m.ia, node.Config{
		ID: m.id, Addr: m.peers[m.id].Addr, Peers: m.peers, Layout: layout(m.volume), Journal: m.journal, Disk: m.disk, Log: log,
	})
	if err != nil {
		cancel()
		return fmt.Errorf("node %d: %w", m.id, err)
	}
	ran := make(chan error, 1)
	m.mu.Lock()
	m.node, m.stop, m.ran, m.doomed = n, cancel, ran, false
	m.mu.Unlock()
	go func() {
		err := n.Run(ctx)
		m.mu.Lock()
		if ctx.Err() == nil && !m.doomed {
			m.w.Wrong("node %d has ended: %v", m.id, err)
		}
		m.node = nil
		m.mu.Unlock()
		ran <- err
	}()
	m.w.Step(m.host, "node %d is there", m.id)
	return nil
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
		m.doom()
		m.disk, m.journal, m.file = behind(m.disk, draw), behind(m.journal, draw), m.file.after(draw)
	}
	m.stop()
	err := <-m.ran
	m.w.Step(m.host, "node %d has ended, by a power cut: %v: %v", m.id, power, err)
	if err != nil && !power && !m.doomed {
		m.w.Wrong("node %d ended in order, and says %v", m.id, err)
	}
}

// behind is a disk behind a power cut. What the old one gets from now on is nobody's.
func behind(old *fault.Store, draw *rand.Rand) *fault.Store {
	old.FailAfter(0)
	old.Fail(draw)
	next := fault.New(len(old.Memory()))
	copy(next.Memory(), old.Memory())
	if err := next.Flush(0, len(next.Memory())); err != nil {
		panic(err) // it is in memory
	}
	return next
}

// pause is a wait of a random length.
func pause(draw *rand.Rand, most time.Duration) { time.Sleep(time.Duration(draw.Int64N(int64(most)))) }
