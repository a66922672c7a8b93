package replica

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"godat/examples/volume/entry"
	"godat/examples/volume/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is three replicas and a leader who knows all: it is elected and commits by raft's
// rules, and answers no one else.
type cluster struct {
	nodes     []*node
	leader    *node // nil after it ended
	term      uint64
	next      uint64 // index of the next record
	unstable  []Record
	pool      *journal.Pool
	filling   []filled             // slots that the leader has filled and not named
	committed []Record             // from index 1 on
	late      []late               // appends that are still under way, of leaders that ended for example
	number    uint64               // of the last data
	written   map[[2]uint64][]byte // the data of writes, by index and term
}

// late is an append that comes late, or never.
type late struct {
	to *node
	message
}

// filled is the data of a slot, and where it goes on the disk.
type filled struct {
	slot uint32
	data []byte
	off  uint64
}

func newCluster(t require.TestingT) *cluster {
	c := &cluster{written: make(map[[2]uint64][]byte)}
	for id := range uint64(nodes) {
		c.nodes = append(c.nodes, newNode(t, id))
	}
	return c
}

// data is n bytes that have their place and a number of their own.
func (c *cluster) data(off uint64, n int) []byte {
	c.number++
	b := make([]byte, n)
	for at := 0; at < n; at += 16 {
		binary.LittleEndian.PutUint64(b[at:], c.number)
		binary.LittleEndian.PutUint64(b[at+8:], off+uint64(at))
	}
	return b
}

// elect makes a node the leader, if a majority would vote for it. It must have all that
// was committed.
func (c *cluster) elect(t require.TestingT, n *node) {
	newer := func(a, b *node) bool {
		_, i := a.log.Bounds()
		_, j := b.log.Bounds()
		p, q := a.log.termOf(i), b.log.termOf(j)
		return p > q || p == q && i > j
	}
	votes := 0
	for _, other := range c.nodes {
		if !other.lost && !newer(other, n) {
			votes++
		}
	}
	if votes <= nodes/2 || n.Rotten() || n.lost || n == c.leader {
		return
	}
	c.depose()
	c.leader = n
	c.term++
	_, last := n.log.Bounds()
	c.next = last + 1
	for i, r := range c.committed {
		first, _ := n.log.Bounds()
		if uint64(i+1) >= first {
			require.Equal(t, r.Term, n.log.termOf(r.Index), "the leader has what was committed")
		}
	}
	var direct []uint64
	for _, other := range c.nodes {
		other.match = 0
		if !other.lost && !newer(other, n) {
			other.term = c.term // it has voted
		}
		other.missed = other.missed || other.out
		other.out = other.lost || other.Rotten()
		if !other.out {
			direct = append(direct, other.id)
		}
	}
	c.pool = journal.NewPool(layout, int(n.id), c.next, nodes/2+1, direct...)
	c.propose(entry.Entry{})
	for _, other := range c.nodes {
		c.resend(t, other)
	}
}

// depose ends the leader. The data that it was sending is under way for some time.
func (c *cluster) depose() {
	if c.leader == nil {
		return
	}
	for _, n := range c.nodes {
		c.drop(n)
	}
	c.filling, c.leader, c.unstable = nil, nil, nil
}

// drop ends the connection to a replica. What was sent may come yet.
func (c *cluster) drop(n *node) {
	for _, m := range n.queue {
		c.late = append(c.late, late{n, m})
	}
	n.queue = nil
}

// send sends a record to a replica.
func (c *cluster) send(n *node, r Record, before uint64) {
	n.queue = append(n.queue, message{r, c.term, before, c.leader, c.leader.life})
}

// propose adds a record, and sends it.
func (c *cluster) propose(e entry.Entry) {
	record := Record{Index: c.next, Term: c.term, Data: e.Append(nil)}
	before := c.leader.log.termOf(c.next - 1)
	if len(c.unstable) != 0 {
		before = c.term
	}
	c.unstable = append(c.unstable, record)
	c.next++
	for _, n := range c.nodes {
		if n != c.leader && !n.out {
			c.send(n, record, before)
		}
	}
}

// fill takes a slot and fills it.
func (c *cluster) fill(t require.TestingT, n int, off uint64) bool {
	slot, ok := c.pool.Take()
	if !ok {
		return false
	}
	f := filled{slot, c.data(off, n), off}
	own, err := c.leader.journal.Slot(slot, n)
	require.NoError(t, err)
	c.leader.journal.Forget(slot)
	copy(own, f.data)
	c.filling = append(c.filling, f)
	return true
}

// name proposes the write whose slot was filled first.
func (c *cluster) name() {
	m := c.filling[0]
	c.filling = c.filling[1:]
	c.pool.Name(m.slot, c.next)
	c.written[[2]uint64{c.next, c.term}] = m.data
	c.propose(entry.Entry{Op: entry.Write, Off: m.off, Len: uint32(len(m.data)), Slot: m.slot}.Sealed(m.data))
}

// resend connects a replica anew and sends it all that it has not acknowledged.
func (c *cluster) resend(t require.TestingT, n *node) {
	if c.leader == nil || n == c.leader || n.out {
		return
	}
	c.drop(n)
	if !c.has(n) {
		c.takeOut(n)
		return
	}
	first, _ := n.log.Bounds()
	from, _ := c.leader.log.Bounds()
	index := max(first, from)
	for index < c.next && n.log.termOf(index) == c.termOf(index) {
		index++
	}
	n.match = index - 1
	c.commit()
	for ; index < c.next; index++ {
		record := c.record(index)
		e, err := entry.Parse(record.Data)
		require.NoError(t, err)
		if e.Op == entry.Write {
			if _, err := c.leader.journal.Data(&e); err != nil {
				require.True(t, n.missed, "a direct replica may need the slot")
				c.takeOut(n)
				return
			}
		}
		c.send(n, record, c.termOf(index-1))
	}
}

// has reports whether the leader has all records that a replica does not have.
func (c *cluster) has(n *node) bool {
	first, last := n.log.Bounds()
	from, _ := c.leader.log.Bounds()
	return from <= last+1 && (from <= first || n.log.termOf(from-1) == c.termOf(from-1))
}

// takeOut stops writing to the slots of a replica.
func (c *cluster) takeOut(n *node) {
	c.drop(n)
	n.out = true
	c.pool.Leave(n.id)
}

// record is a record of the leader.
func (c *cluster) record(index uint64) Record {
	if _, last := c.leader.log.Bounds(); index > last {
		return c.unstable[index-last-1]
	}
	record, _ := c.leader.log.Record(index)
	return record
}

// termOf is the term of a record of the leader.
func (c *cluster) termOf(index uint64) uint64 {
	if _, last := c.leader.log.Bounds(); index > last {
		return c.term
	}
	return c.leader.log.termOf(index)
}

// deliver delivers the next message to a replica.
func (c *cluster) deliver(n *node) error {
	m := n.queue[0]
	n.queue = n.queue[1:]
	err := c.take(n, m)
	if errors.Is(err, errRefused) {
		n.queue, err = nil, nil
	}
	return err
}

// take lets a replica take an append, by raft's rules.
func (c *cluster) take(n *node, m message) error {
	if err := n.fetch(m); err != nil {
		return err
	}
	_, last := n.log.Bounds()
	if m.term < n.term || m.Index > last+1 || !n.has(Record{Index: m.Index - 1, Term: m.before}) {
		return errRefused
	}
	n.term = m.term
	if !n.has(m.Record) {
		if err := n.Accept([]Record{m.Record}); err != nil {
			return err
		}
	}
	if c.leader != nil && m.term == c.term && !n.out {
		n.match = max(n.match, m.Index)
		c.commit()
	}
	return nil
}

// acceptOwn lets the leader make its records stable.
func (c *cluster) acceptOwn() error {
	if err := c.leader.Accept(slices.Clone(c.unstable)); err != nil {
		return err
	}
	_, c.leader.match = c.leader.log.Bounds()
	c.unstable = nil
	c.commit()
	return nil
}

// commit commits what a majority has acknowledged.
func (c *cluster) commit() {
	var match []uint64
	for _, n := range c.nodes {
		match = append(match, n.match)
	}
	slices.Sort(match)
	index := match[(nodes-1)/2]
	if _, last := c.leader.log.Bounds(); index > last || c.leader.log.termOf(index) != c.term {
		return
	}
	for i := uint64(len(c.committed)) + 1; i <= index; i++ {
		record, _ := c.leader.log.Record(i)
		c.committed = append(c.committed, record)
	}
}

// knows is the commit index that a replica has heard of: not more than it has matched.
func (c *cluster) knows(n *node) uint64 { return min(n.match, uint64(len(c.committed))) }

func seed(t *rapid.T) *rand.Rand { return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)) }
