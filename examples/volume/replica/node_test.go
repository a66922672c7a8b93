package replica

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/identity"
	"godat/examples/volume/entry"
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
	missed  bool   // an earlier leader may have freed slots without it
	lost    bool   // its disks are new ones
	stable  uint64 // has released
	match   uint64 // has acknowledged to the leader
	term    uint64 // of its vote, or of the last append
	fence   *journal.Fence
	life    int       // counts its processes
	queue   []message // from the leader, in order
}

// message is an append of a leader's.
type message struct {
	Record
	term   uint64 // of the leader
	before uint64 // term of the record before
	from   *node
	life   int // of the sender
}

var layout = journal.Layout{Nodes: nodes, Slots: 3, SlotSize: 4096, Volume: identity.ID{7}}

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
	n.life++
	n.fence = journal.NewFence(n.term)
	applied, _ := n.Disk().Applied()
	first, last := n.log.Bounds()
	for index := max(first, applied+1); index <= last; index++ {
		_, e, err := n.Replica.record(index)
		require.NoError(t, err)
		if e.Op == entry.Write {
			n.fence.Hold(e.Slot, index)
		}
	}
}

var errRefused = errors.New("the data of an append is not here")

// fetch reads the data that an append names from its sender, if it may.
func (n *node) fetch(m message) error {
	if !n.fence.Pass(m.term) || n.Rotten() {
		return errRefused
	}
	e, err := m.entry()
	if err != nil || e.Op != entry.Write || n.has(m.Record) {
		return err
	}
	if n.inPlace(&e) != nil {
		released, _ := n.Disk().Applied()
		if released = min(released, n.stable); n.fence.Held(e.Slot, m.Index, released) || m.life != m.from.life {
			return errRefused
		}
		to, err := n.journal.Slot(e.Slot, int(e.Len))
		if err != nil {
			return err
		}
		n.journal.Forget(e.Slot)
		from, _ := m.from.journal.Slot(e.Slot, int(e.Len)) // as above
		copy(to, from)
		if n.inPlace(&e) != nil {
			return errRefused
		}
	}
	n.fence.Hold(e.Slot, m.Index)
	return nil
}

// has reports whether the log has a record, or had it.
func (n *node) has(r Record) bool {
	first, _ := n.log.Bounds()
	return r.Index < first || n.log.termOf(r.Index) == r.Term
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
