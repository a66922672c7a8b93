package replica

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"

	"godat/examples/volume/fault"
	"godat/examples/volume/journal"
	"godat/examples/volume/state"
)

// memoryLog is a log that loses power and fails.
type memoryLog struct {
	first  uint64 // index of records[0]
	term   uint64 // of the record before the first
	now    []Record
	stable []Record
	doomed bool
}

func (l *memoryLog) Bounds() (first, last uint64) { return l.first, l.first + uint64(len(l.now)) - 1 }

func (l *memoryLog) Record(index uint64) (Record, error) {
	if first, last := l.Bounds(); index < first || index > last {
		return Record{}, errors.New("no such record")
	}
	return l.now[index-l.first], nil
}

func (l *memoryLog) Append(records []Record) error {
	l.now = append(slices.Clone(l.now[:records[0].Index-l.first]), records...)
	return l.sync()
}

func (l *memoryLog) Cut(index uint64) error {
	l.now = slices.Clone(l.now[:index-l.first])
	return l.sync()
}

func (l *memoryLog) Begin(index, term uint64) error {
	if last, err := l.Record(index); err == nil && last.Term == term {
		l.now = slices.Clone(l.now[index+1-l.first:])
	} else {
		l.now = nil
	}
	l.first, l.term, l.stable = index+1, term, l.now
	return nil
}

func (l *memoryLog) sync() error {
	if l.doomed {
		return fault.ErrDisk
	}
	l.stable = l.now
	return nil
}

// fail is a power cut: of what was not synced a part is there.
func (l *memoryLog) fail(r *rand.Rand) {
	if r.IntN(2) == 0 {
		l.now = l.stable
		return
	}
	same := 0
	for same < min(len(l.now), len(l.stable)) && l.now[same].Term == l.stable[same].Term {
		same++
	}
	l.now = l.now[:same+r.IntN(len(l.now)-same+1)]
}

// termOf is the term of the record with an index, or 0.
func (l *memoryLog) termOf(index uint64) uint64 {
	if index+1 == l.first {
		return l.term
	}
	record, _ := l.Record(index)
	return record.Term
}

// node is a replica with its stores, and what others know of it.
type node struct {
	*Replica
	id      uint64
	journal *journal.Journal
	slots   *fault.Store
	disk    *fault.Store
	log     memoryLog
	out     bool   // the leader does not write to its slots
	lost    bool   // its disks are new ones
	stable  uint64 // has released
	match   uint64 // has acknowledged to the leader
	grants  []*grant
	queue   []message // from the leader, in order
}

// message is a write of a slot, or an append, on the connection that has a grant.
type message struct {
	slot   uint32
	data   []byte
	off    uint64 // where the data goes on the disk
	append *Record
	before uint64 // term of the record before
}

// grant is a connection's right to write a node's slots.
type grant struct {
	memory  []byte
	revoked bool
}

// write is an RDMA write. It fails, as it should, when the right was taken back.
func (g *grant) write(slot uint32, data []byte) {
	if !g.revoked {
		copy(g.memory[int(slot)%layout.Slots*layout.SlotSize:], data)
	}
}

var layout = journal.Layout{Nodes: nodes, Slots: 3, SlotSize: 4096}

const (
	nodes  = 3
	blocks = 16 << 10
)

func newNode(t require.TestingT, id uint64) *node {
	n := &node{id: id, slots: fault.New(layout.Size()), disk: fault.New(state.Size(blocks)), log: memoryLog{first: 1}}
	n.open(t)
	return n
}

// open opens the node again.
func (n *node) open(t require.TestingT) {
	require.NoError(t, n.log.sync())
	var err error
	n.journal, err = journal.Open(n.slots, layout)
	require.NoError(t, err)
	n.Replica, err = Open(n.journal, n.disk, &n.log)
	require.NoError(t, err)
	n.queue = nil
	for _, g := range n.grants {
		if g != nil {
			g.revoked = true // it was of the process that has ended
		}
	}
	n.grants = make([]*grant, nodes)
}

// connect gives a leader's new connection its slots.
func (n *node) connect(t require.TestingT, leader uint64) *grant {
	g := new(grant)
	var err error
	g.memory, err = n.journal.Grant(int(leader), func() { g.revoked = true })
	require.NoError(t, err)
	n.queue = nil
	n.grants[leader] = g
	return g
}

// crash ends the node, and opens it again; with a power cut if there is a source of chance.
func (n *node) crash(t require.TestingT, r *rand.Rand) {
	n.slots.Repair()
	n.disk.Repair()
	n.log.doomed = false
	if r != nil {
		n.slots.Fail(r)
		n.disk.Fail(r)
		n.log.fail(r)
	}
	n.open(t)
}
