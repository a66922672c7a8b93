package replica

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/volume/entry"
	"godat/examples/volume/fault"
	"godat/examples/volume/journal"
	"godat/examples/volume/state"
)

// record fills a slot of a node, and is the record with an index that names it.
func (n *node) record(t *testing.T, index uint64, slot uint32) Record {
	b, err := n.Replica.journal.Slot(slot, 4096)
	require.NoError(t, err)
	n.Replica.journal.Forget(slot)
	copy(b, bytes.Repeat([]byte{byte(index), byte(slot)}, 2048))
	e := entry.Entry{Op: entry.Write, Off: 4096 * (index % 4), Len: 4096, Slot: slot}.Sealed(b)
	return Record{Index: index, Term: 1, Data: e.Append(nil)}
}

// flip flips a byte of a slot.
func (n *node) flip(t *testing.T, slot uint32) {
	n.slots.Flip(4096 + int(slot)*layout.SlotSize + 77)
	n.open(t)
}

func TestALogIsCutAtTheFirstRecordWhoseSlotHasOtherData(t *testing.T) {
	n := newNode(t, 0)
	require.NoError(t, n.Accept([]Record{n.record(t, 1, 0)}))
	require.NoError(t, n.Accept([]Record{n.record(t, 2, 1), n.record(t, 3, 2)}))
	n.flip(t, 1)
	assert.False(t, n.Rotten())
	_, last := n.log.Bounds()
	assert.Equal(t, uint64(1), last)
	require.NoError(t, n.Accept([]Record{n.record(t, 2, 4)}))
	require.NoError(t, n.Apply(2))
}

func TestARecordThatWasAcknowledgedForCertainIsNotCut(t *testing.T) {
	n := newNode(t, 0)
	require.NoError(t, n.Accept([]Record{n.record(t, 1, 0)}))
	require.NoError(t, n.Accept([]Record{n.record(t, 2, 1)}))
	n.flip(t, 0)
	assert.True(t, n.Rotten())
	_, last := n.log.Bounds()
	assert.Equal(t, uint64(2), last)
	require.ErrorIs(t, n.Accept([]Record{n.record(t, 3, 2)}), ErrRotten)
	require.ErrorIs(t, n.Apply(1), ErrRotten)
}

func TestAReplicaThatWasCatchingUpCutsNothing(t *testing.T) {
	n := newNode(t, 0)
	require.NoError(t, n.Accept([]Record{n.record(t, 1, 0)}))
	_, err := n.CatchUp(state.Snapshot{Index: 5, Whole: 5, Size: blocks})
	require.NoError(t, err)
	n.flip(t, 0)
	assert.True(t, n.Rotten())
	_, last := n.log.Bounds()
	assert.Equal(t, uint64(1), last, "it was acknowledged")
}

func TestAReplicaKeepsASlotThatItNeedsWhenAnotherLeaderNamesItAgain(t *testing.T) {
	c := newCluster(t)
	c.elect(t, c.nodes[0])
	c.rest(t)
	require.True(t, c.fill(t, 4096, 0))
	c.name()
	c.deliverAll(t)
	slow := c.nodes[2]
	c.takeOut(slow)
	for _, n := range c.nodes[:2] {
		c.apply(t, n)
		index, err := n.Release()
		require.NoError(t, err)
		c.release(n, index)
	}
	for range layout.Slots {
		require.True(t, c.fill(t, 4096, 4096), "all slots are free without the slow one")
		c.name()
	}
	c.deliverAll(t)
	c.elect(t, c.nodes[1])
	require.NotEmpty(t, slow.queue)
	c.deliverAll(t)
	c.rest(t)
	require.False(t, slow.Rotten())
}

func TestASlotThatLosesItsDataIsFoundWhenItIsApplied(t *testing.T) {
	n := newNode(t, 0)
	require.NoError(t, n.Accept([]Record{n.record(t, 1, 0)}))
	n.Replica.journal.Forget(0) // somebody wrote to it
	n.slots.Flip(4096)
	require.ErrorIs(t, n.Apply(1), ErrRotten)
	assert.True(t, n.Rotten())
}

func TestARecordWhoseDataIsNotInItsSlotIsRefused(t *testing.T) {
	n := newNode(t, 0)
	record := n.record(t, 1, 0)
	n.slots.Flip(4096)
	require.ErrorIs(t, n.Accept([]Record{record}), journal.ErrOther)
	_, last := n.log.Bounds()
	assert.Zero(t, last)
	n.slots.Flip(4096)
	require.NoError(t, n.Accept([]Record{record}), "the data has come")
}

func TestAReplicaWhoseLogOrJournalFailedAcknowledgesNothing(t *testing.T) {
	for name, fail := range map[string]func(*node){
		"log":     func(n *node) { n.log.doomed = true },
		"journal": func(n *node) { n.slots.FailAfter(0) },
	} {
		n := newNode(t, 0)
		record := n.record(t, 1, 0)
		fail(n)
		require.ErrorIs(t, n.Accept([]Record{record}), fault.ErrDisk, name)
		n.slots.Repair()
		n.log.doomed = false
		require.ErrorIs(t, n.Accept([]Record{{Index: 2, Term: 1}}), fault.ErrDisk, name)
	}
}

func TestWhatWasAcknowledgedIsThereAfterAPowerCut(t *testing.T) {
	for s := range uint64(10) {
		n := newNode(t, 0)
		require.NoError(t, n.Accept([]Record{n.record(t, 1, 0), n.record(t, 2, 2)}))
		n.crash(t, rand.New(rand.NewPCG(s, 0)))
		_, last := n.log.Bounds()
		require.Equal(t, uint64(2), last)
		require.NoError(t, n.Apply(2))
	}
}

func TestARecordThatIsNotAppliedIsNotReleased(t *testing.T) {
	n := newNode(t, 0)
	require.NoError(t, n.Accept([]Record{n.record(t, 1, 0), n.record(t, 2, 1)}))
	for commit := range uint64(3) {
		require.NoError(t, n.Apply(commit))
		index, err := n.Release()
		require.NoError(t, err)
		require.Equal(t, commit, index)
	}
}

func TestWhatAKillLeftIsStableWhenTheReplicaIsOpen(t *testing.T) {
	n := newNode(t, 0)
	n.slots.FailAfter(0)
	require.ErrorIs(t, n.Accept([]Record{n.record(t, 1, 0)}), fault.ErrDisk)
	n.slots.Repair()
	n.open(t)
	for s := range uint64(10) {
		n.crash(t, rand.New(rand.NewPCG(s, 0)))
		_, last := n.log.Bounds()
		require.Equal(t, uint64(1), last, "it may have been acknowledged")
		require.False(t, n.Rotten())
	}
}

func TestAReplicaThatCaughtUpStaysRottenForALaterRecord(t *testing.T) {
	n := newNode(t, 0)
	for index := range uint64(3) {
		require.NoError(t, n.Accept([]Record{n.record(t, index+1, uint32(index))}))
	}
	snapshot := state.Snapshot{Index: 1, Term: 1, Whole: 1, Size: blocks}
	catchUp := func() {
		c, err := n.CatchUp(snapshot)
		require.NoError(t, err)
		_, ok := c.Next()
		require.False(t, ok)
		require.NoError(t, n.CaughtUp(c))
	}
	n.flip(t, 1)
	catchUp()
	assert.True(t, n.Rotten())
	snapshot.Index, snapshot.Whole = 2, 2
	catchUp()
	assert.False(t, n.Rotten())
	_, last := n.log.Bounds()
	assert.Equal(t, uint64(3), last, "what it acknowledged stays")
	require.NoError(t, n.Apply(3))
	snapshot.Index, snapshot.Term, snapshot.Whole = 3, 2, 3
	catchUp()
	first, last := n.log.Bounds()
	assert.Equal(t, [2]uint64{4, 3}, [2]uint64{first, last})
}

func TestASnapshotThatIsRefusedChangesNothing(t *testing.T) {
	n := newNode(t, 0)
	for index := range uint64(3) {
		require.NoError(t, n.Accept([]Record{n.record(t, index+1, uint32(index))}))
	}
	refused := func(index uint64) {
		_, err := n.CatchUp(state.Snapshot{Index: index, Term: 1, Whole: index, Size: blocks})
		require.Error(t, err)
		require.False(t, n.Rotten())
	}
	require.NoError(t, n.Apply(2))
	refused(1) // it has applied more
	_, err := n.Release()
	require.NoError(t, err)
	refused(1)
	_, err = n.CatchUp(state.Snapshot{Index: 5, Whole: 5})
	require.ErrorContains(t, err, "a snapshot of 0 bytes")
	require.NoError(t, n.Apply(3))
	n.open(t)
	_, err = n.CatchUp(state.Snapshot{Index: 5, Whole: 5, Size: blocks})
	require.NoError(t, err)
	_, err = n.CatchUp(state.Snapshot{Index: 1, Whole: 1, Size: blocks})
	require.Error(t, err)
	require.True(t, n.Rotten(), "it has begun to catch up")
}

// A replica that ended when its disk had caught up and its log had not.
func TestALogBeginsWhereItsDiskIs(t *testing.T) {
	for name, x := range map[string]struct {
		index, term uint64
		left        int
	}{
		"beyond the log":   {9, 2, 0},
		"of another log":   {2, 2, 0},
		"in the log":       {2, 1, 1},
		"at the log's end": {3, 1, 0},
		"before the log's": {1, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, 0)
			for index := range uint64(3) {
				require.NoError(t, n.Accept([]Record{n.record(t, index+1, uint32(index))}))
			}
			c, err := n.CatchUp(state.Snapshot{Index: x.index, Term: x.term, Whole: x.index, Size: blocks})
			require.NoError(t, err)
			_, ok := c.Next()
			require.False(t, ok)
			require.NoError(t, c.Finish())
			n.open(t)
			require.False(t, n.Rotten())
			_, last := n.log.Bounds()
			require.Equal(t, x.index+uint64(x.left), last)
			applied, term := n.Disk().Applied()
			require.Equal(t, x.index, applied)
			require.Equal(t, term, n.log.termOf(applied))
			require.NoError(t, n.Apply(last))
		})
	}
}

// A record that was acknowledged says something else by now.
func TestARecordThatSaysSomethingElseIsFoundLikeASlot(t *testing.T) {
	for name, e := range map[string]entry.Entry{
		"zeros": entry.Entry{Op: entry.Zero, Len: 512}.Sealed(nil),
		"small": entry.Entry{Op: entry.Small, Len: 512, Data: make([]byte, 512)}.Sealed(make([]byte, 512)),
	} {
		for what, at := range map[string]int{"length": 5, "offset": 9, "CRC": 20} {
			if name == "small" && what == "length" {
				continue // it has other bytes than it says
			}
			n := newNode(t, 0)
			require.NoError(t, n.Accept([]Record{{Index: 1, Term: 1, Data: e.Append(nil)}}))
			require.NoError(t, n.Accept([]Record{n.record(t, 2, 1)}))
			n.log.now[0].Data[at] ^= 0x4
			n.open(t)
			assert.True(t, n.Rotten(), "%s, %s", name, what)
		}
	}
}
