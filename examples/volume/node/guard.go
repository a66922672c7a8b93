package node

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"godat/runtime/rpc"
)

// What a node says to another one is taken only from a node of the same volume, with the same terms, that means this
// one. All else is refused before the engine sees it and before anything is kept.

// errStranger has the code of a refusal for that reason.
var errStranger = &rpc.Error{Code: rpc.CodeUser + 2}

func stranger(format string, args ...any) error {
	return &rpc.Error{Code: errStranger.Code, Text: "node: " + fmt.Sprintf(format, args...)}
}

// check checks who calls, or answers, and whom he means. greets is set for a hello, which has the terms themselves.
func (s *site) check(x *note, greets bool) error {
	err := s.belongs(x, greets)
	if err == nil {
		s.health.hears(x.from)
	}
	return err
}

// belongs is why who says something is not heard, or nil.
func (s *site) belongs(x *note, greets bool) error {
	ahead := s.ahead.Load()
	switch {
	case x.magic != noteMagic || x.version < wireEarliest || x.version > wireVersion:
		return stranger("node %d speaks versions %d to %d of the protocol, and the caller another", s.cfg.ID, wireEarliest, wireVersion)
	case x.volume != s.cfg.Layout.Volume:
		return stranger("node %d at this address is of volume %v, and the other node of volume %v", s.cfg.ID, s.cfg.Layout.Volume, x.volume)
	case x.to != s.cfg.ID:
		return stranger("this is node %d, and the other node means node %d: one of the two has a wrong address", s.cfg.ID, x.to)
	case x.from == s.cfg.ID:
		return stranger("both are node %d: a node's directory is served twice, or was made twice", s.cfg.ID)
	case x.from < 1 || x.from > uint64(s.cfg.Layout.Nodes):
		return stranger("there is no node %d", x.from)
	case s.log.Gone(x.from):
		return stranger("node %d was removed from the volume; it comes back as a node of another id", x.from)
	case !greets && x.terms != s.digest:
		return stranger("the options of node %d are not those of node %d", x.from, s.cfg.ID)
	case ahead != nil:
		return stranger("%s", ahead.why)
	}
	return nil
}

const (
	mostTerms  = 1 << 20 // by which a message's term may be above the highest that this node has seen
	mostJoined = 1 << 40 // the highest term for a node that has seen none
)

// bounded refuses messages of terms that no election of this volume can have come to: what is kept of them would stay.
func (s *site) bounded(messages []*pb.Message) error {
	most := uint64(mostJoined)
	if s.log.Founded() {
		most = s.log.Vote().Term + mostTerms
	}
	for _, m := range messages {
		if m.GetTerm() > most {
			return stranger("a message of node %d has term %d, and this node has seen none above %d", m.GetFrom(), m.GetTerm(), most-mostTerms)
		}
	}
	return nil
}

// Refusal is why what one node says to another one is not taken.
type Refusal struct {
	Node uint64    `json:"node"` // the other one, as it says; 0 if it says nothing
	Addr string    `json:"addr"` // of the other one
	Here bool      `json:"here"` // this node refuses; else the other one does
	Why  string    `json:"why"`
	Last time.Time `json:"last"`
}

// refusals are those that still hold. One that holds comes again with each tick, or with each attempt to connect.
type refusals struct {
	mu  sync.Mutex
	all map[refusedBy]time.Time // when each came last
}

// refusedBy is a refusal but for when.
type refusedBy struct {
	node      uint64
	addr, why string
	here      bool
}

const (
	mostRefusals = 32
	refusalHolds = 30 * time.Second // after the last time
)

// refused notes an error if it is a refusal, and logs it if it is news.
func (s *site) refused(node uint64, addr string, here bool, err error) {
	var why *rpc.Error
	if !errors.As(err, &why) || why.Code != errStranger.Code {
		return
	}
	s.counts.refusals.Add(1)
	if node == 0 {
		node = s.at(addr)
	}
	if host, _, err := net.SplitHostPort(addr); err == nil && here {
		addr = host
	}
	if s.refusals.note(refusedBy{node, addr, why.Text, here}, time.Now()) {
		s.cfg.Logger.Warn("nodes refuse each other", "node", node, "address", addr, "here", here, "why", why.Text)
	}
}

// at is the node at an address; 0 is unknown.
func (s *site) at(addr string) uint64 {
	for id, m := range s.where() {
		if m.Addr == addr {
			return id
		}
	}
	return 0
}

// Refused notes that a connection came to nothing since one end does not trust the other: this one, or the one at addr.
func (n *Node) Refused(addr string, here bool, why string) {
	n.refused(0, addr, here, stranger("%s", why))
}

// note notes a refusal, and reports whether it is news.
func (q *refusals) note(x refusedBy, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forget(now)
	_, known := q.all[x]
	if !known && len(q.all) == mostRefusals {
		return false
	}
	if q.all == nil {
		q.all = make(map[refusedBy]time.Time)
	}
	q.all[x] = now
	return !known
}

// forget forgets those that hold no more. The caller holds the lock.
func (q *refusals) forget(now time.Time) {
	maps.DeleteFunc(q.all, func(_ refusedBy, last time.Time) bool { return now.Sub(last) > refusalHolds })
}

// list lists them.
func (q *refusals) list(now time.Time) (all []Refusal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forget(now)
	for x, last := range q.all {
		all = append(all, Refusal{x.node, x.addr, x.here, x.why, last})
	}
	slices.SortFunc(all, func(a, b Refusal) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Why, b.Why)) })
	return all
}
