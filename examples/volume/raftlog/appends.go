package raftlog

import (
	"sync"

	pb "go.etcd.io/raft/v3/raftpb"
)

// Appends are what an engine wants to be kept and nobody has begun to keep. What came while the disk was busy is kept by
// one write and one sync. Its methods may be called from any goroutine. The zero value has none.
type Appends struct {
	mu      sync.Mutex // held for moments
	waiting []*pb.Message
}

// Put adds a message for raft.LocalAppendThread. It reports whether no other one waited: the caller then has Take called.
func (a *Appends) Put(m *pb.Message) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, m)
	return len(a.waiting) == 1
}

// Append is what one write of the disk keeps: entries without gaps, and a term with its vote, which goes first.
type Append struct {
	Vote      *Vote // nil if the engine said none
	Entries   []*pb.Entry
	Responses []*pb.Message // that may go when all is stable, in their order
}

// Take takes as many messages from the beginning as one write can keep. An engine that writes entries in place of
// earlier ones begins another one. It reports false when there are none.
func (a *Appends) Take() (x Append, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for ; n < len(a.waiting) && x.add(a.waiting[n]); n++ {
		a.waiting[n] = nil
	}
	a.waiting = a.waiting[n:]
	return x, n != 0
}

// add adds a message, unless its entries do not follow.
func (x *Append) add(m *pb.Message) bool {
	entries := m.GetEntries()
	if last := len(x.Entries); last != 0 && len(entries) != 0 && entries[0].GetIndex() != x.Entries[last-1].GetIndex()+1 {
		return false
	}
	if m.Term != nil {
		x.Vote = &Vote{Term: m.GetTerm(), For: m.GetVote()}
	}
	x.Entries = append(x.Entries, entries...)
	x.Responses = append(x.Responses, m.GetResponses()...)
	return true
}
