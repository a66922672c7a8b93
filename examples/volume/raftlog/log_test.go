package raftlog

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"godat/examples/volume/replica"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kept is a log that a test opens again and again.
type kept struct {
	testing.TB
	*Log
	dir string
}

func open(t testing.TB) *kept {
	k := &kept{TB: t, dir: t.TempDir()}
	var err error
	k.Log, err = Open(k.dir, Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, k.Close()) })
	return k
}

func (k *kept) again() {
	require.NoError(k, k.Close())
	var err error
	k.Log, err = Open(k.dir, Config{})
	require.NoError(k, err)
}

// add adds records of a term.
func (k *kept) add(term, first, last uint64) {
	var all []replica.Record
	for index := first; index <= last; index++ {
		all = append(all, replica.Record{Index: index, Term: term, Stable: index - 1, Member: index%2 == 0, Data: []byte{byte(index), byte(term)}})
	}
	require.NoError(k, k.Append(all))
}

// has checks the records, whose terms are given, from an index on; also after the log was opened again.
func (k *kept) has(first uint64, terms ...uint64) {
	k.Helper()
	for range 2 {
		begin, end := k.Bounds()
		require.Equal(k, [2]uint64{first, first + uint64(len(terms)) - 1}, [2]uint64{begin, end})
		for i, term := range terms {
			index := first + uint64(i)
			r, err := k.Record(index)
			require.NoError(k, err)
			require.Equal(k, replica.Record{Index: index, Term: term, Stable: index - 1, Member: index%2 == 0, Data: []byte{byte(index), byte(term)}}, r)
		}
		k.again()
	}
}

func TestALogKeepsItsRecords(t *testing.T) {
	k := open(t)
	k.has(1)
	k.add(1, 1, 4)
	k.has(1, 1, 1, 1, 1)
	k.add(2, 3, 4)
	k.has(1, 1, 1, 2, 2)
	require.NoError(t, k.Cut(4))
	k.has(1, 1, 1, 2)
	require.NoError(t, k.Begin(2, 1))
	k.has(3, 2)
	require.NoError(t, k.Begin(3, 3)) // another record than that of the log
	k.has(4)
	require.NoError(t, k.Begin(9, 3))
	k.has(10)
	k.add(4, 10, 11)
	k.has(10, 4, 4)
	require.NoError(t, k.Begin(8, 1), "that is gone already")
	k.has(10, 4, 4)
}

func TestABeginThatACrashInterruptedIsEnded(t *testing.T) {
	for _, x := range []struct {
		index, term uint64
		left        []uint64
	}{{2, 1, []uint64{1, 1}}, {2, 7, nil}, {9, 2, nil}} {
		k := open(t)
		k.add(1, 1, 4)
		require.NoError(t, k.setPair(keyBefore, x.index, x.term))
		k.again()
		k.has(x.index+1, x.left...)
	}
}

func TestALogKeepsItsVoteAndItsMembers(t *testing.T) {
	k := open(t)
	v, m := Vote{Term: 7, For: 2}, Members{1: {Addr: "a:1"}, 2: {Addr: "b:2", Learner: true}}
	require.NoError(t, k.SetVote(v))
	require.NoError(t, k.SetMembers(m))
	k.again()
	assert.Equal(t, v, k.Vote())
	assert.Equal(t, m, k.Members())
}

func TestAnEngineSeesNoRecordBelowTheFloor(t *testing.T) {
	k := open(t)
	k.add(1, 1, 1000)
	k.SetFloor(600)
	first, err := k.FirstIndex()
	require.NoError(t, err)
	assert.Equal(t, uint64(601), first)
	_, err = k.Entries(600, 602, 1000)
	require.ErrorIs(t, err, raft.ErrCompacted)
	_, err = k.Term(599)
	require.ErrorIs(t, err, raft.ErrCompacted)
	term, err := k.Term(600)
	require.NoError(t, err)
	assert.Equal(t, uint64(1), term)
	all, err := k.Entries(601, 1001, 2*(2+framing))
	require.NoError(t, err)
	assert.Len(t, all, 2, "of two bytes each, and what is around them")
	_, err = k.Entries(601, 1002, 4)
	require.ErrorIs(t, err, raft.ErrUnavailable)
	require.NoError(t, k.Trim())
	begin, _ := k.Bounds()
	assert.Equal(t, uint64(601), begin)
}

func TestRecordsThatAreOfferedAreNoLongerThanTheEngineAsksFor(t *testing.T) {
	l, err := Open(t.TempDir(), Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	const most = 64 << 10
	for _, size := range []int{24, 500} {
		records := make([]replica.Record, 2000)
		require.NoError(t, l.Cut(1))
		for i := range records {
			records[i] = replica.Record{Index: uint64(i + 1), Term: 1, Data: make([]byte, size)}
		}
		require.NoError(t, l.Append(records))
		all, err := l.Entries(1, 2001, most)
		require.NoError(t, err)
		sum := proto.Size(&pb.Message{Entries: all})
		assert.LessOrEqual(t, sum, most, "records of %d bytes", size)
		assert.Greater(t, sum, most/2, "records of %d bytes", size)
	}
}
