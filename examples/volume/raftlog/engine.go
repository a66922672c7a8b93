package raftlog

import (
	"fmt"
	"maps"
	"slices"

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

// SetFloor says up to which record none is offered any more: others have it for good, or get it
// otherwise. The record is there.
func (l *Log) SetFloor(index uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.floor = max(l.floor, min(index, l.last()))
}

// slack is how many records that are not offered stay in the file.
const slack = 512

// Trim removes the records that are not offered any more, when they are many.
func (l *Log) Trim() error {
	floor, term, ok := l.excess()
	if !ok {
		return nil
	}
	return l.Begin(floor, term)
}

// excess is the last record that is not offered any more, at one moment: SetFloor goes on. ok is false when such
// records are few.
func (l *Log) excess() (floor, term uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.floor-l.before < slack {
		return 0, 0, false
	}
	return l.floor, l.records[l.floor-l.before-1].Term, true
}

// Vote is the term and the vote that SetVote has set.
func (l *Log) Vote() Vote {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.vote
}

// Members are the members that SetMembers has set.
func (l *Log) Members() Members {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.members)
}

// Founded reports whether the log has members: its node was there from the beginning, or was rebuilt since.
func (l *Log) Founded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.members) != 0
}

// Member is a member.
func (l *Log) Member(id uint64) (m Member, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok = l.members[id]
	return m, ok
}

// Gone reports whether a node was a member, and is none any more.
func (l *Log) Gone(id uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, member := l.members[id]
	return !member && slices.Contains(l.gone, id)
}

// AllGone are the nodes that were members.
func (l *Log) AllGone() []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.gone)
}

// SetGone keeps for good that nodes were members once.
func (l *Log) SetGone(ids ...uint64) error {
	all := l.AllGone()
	for _, id := range ids {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	if len(all) == len(l.AllGone()) {
		return nil
	}
	if err := l.setSealed(keyGone, all); err != nil {
		return fmt.Errorf("raftlog: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = all
	return nil
}
