package raftlog

import (
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// The methods of raft.Storage, but for those that need the disk.

// FirstIndex is the first index that is offered to others.
func (l *Log) FirstIndex() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.floor + 1, nil
}

// LastIndex is the last index.
func (l *Log) LastIndex() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last(), nil
}

// Term is the term of a record that is offered, or of the one before.
func (l *Log) Term(index uint64) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case index < l.floor:
		return 0, raft.ErrCompacted
	case index > l.last():
		return 0, raft.ErrUnavailable
	case index == l.before:
		return l.term, nil
	}
	return l.records[index-l.before-1].Term, nil
}

// framing is the most that an entry has in a message beside its data: tags, lengths, index, term and type.
const framing = 40

// Entries are the records from lo up to hi, without hi, of at most so many bytes in a message, or one that has more.
func (l *Log) Entries(lo, hi, most uint64) ([]*pb.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lo <= l.floor {
		return nil, raft.ErrCompacted
	}
	if hi > l.last()+1 {
		return nil, raft.ErrUnavailable
	}
	var all []*pb.Entry
	size := uint64(0)
	for ; lo < hi; lo++ {
		r := &l.records[lo-l.before-1]
		if size += framing + uint64(len(r.Data)); size > most && len(all) != 0 {
			break
		}
		kind := pb.EntryNormal
		if r.Member {
			kind = pb.EntryConfChange
		}
		all = append(all, &pb.Entry{Index: new(r.Index), Term: new(r.Term), Type: kind.Enum(), Data: r.Data})
	}
	return all, nil
}
