package raftlog

import (
	"testing"

	"github.com/stretchr/testify/assert"
	pb "go.etcd.io/raft/v3/raftpb"
)

// appendOf is an append of entries with indexes from first up to last, if there are any, whose response has a number.
func appendOf(number, first, last uint64) *pb.Message {
	m := &pb.Message{Responses: []*pb.Message{{Index: new(number)}}}
	for ; first <= last; first++ {
		m.Entries = append(m.Entries, &pb.Entry{Index: new(first)})
	}
	return m
}

// taken is what Take took: the indexes, and the numbers of the responses.
func taken(x Append) (indexes, numbers []uint64) {
	for _, e := range x.Entries {
		indexes = append(indexes, e.GetIndex())
	}
	for _, r := range x.Responses {
		numbers = append(numbers, r.GetIndex())
	}
	return indexes, numbers
}

func TestAppendsThatWaitAreKeptTogetherUntilOneWritesOverAnother(t *testing.T) {
	var a Appends
	_, ok := a.Take()
	assert.False(t, ok)
	voted := appendOf(3, 1, 0)
	voted.Term, voted.Vote = new(uint64(7)), new(uint64(2))
	assert.True(t, a.Put(appendOf(1, 5, 6)))
	for _, m := range []*pb.Message{appendOf(2, 7, 7), voted, appendOf(4, 7, 8), appendOf(5, 1, 0)} {
		assert.False(t, a.Put(m))
	}
	x, ok := a.Take()
	assert.True(t, ok)
	indexes, numbers := taken(x)
	assert.Equal(t, []uint64{5, 6, 7}, indexes)
	assert.Equal(t, []uint64{1, 2, 3}, numbers)
	assert.Equal(t, &Vote{7, 2}, x.Vote)
	x, ok = a.Take()
	assert.True(t, ok)
	indexes, numbers = taken(x)
	assert.Equal(t, []uint64{7, 8}, indexes)
	assert.Equal(t, []uint64{4, 5}, numbers)
	assert.Nil(t, x.Vote)
	_, ok = a.Take()
	assert.False(t, ok)
	assert.True(t, a.Put(appendOf(6, 9, 9)))
}
