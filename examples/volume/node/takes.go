package node

import (
	"time"

	"go.etcd.io/raft/v3/tracker"
)

// taking is how long a replica takes until it has more of what it lacks, as its leader sees it.
type taking struct {
	pace
	match uint64
}

// measure looks, at each tick, how far a replica is.
func (r *reign) measure(id uint64, p *tracker.Progress) {
	t := r.takes[id]
	if t == nil {
		t = new(taking)
		r.takes[id] = t
	}
	if id == r.c.cfg.ID || r.out[id] || r.silent(id) || p.State == tracker.StateSnapshot {
		t.forget() // which is told as what it is
		return
	}
	if p.Match != t.match || p.Match >= r.c.last {
		t.end()
	}
	if t.match = p.Match; p.Match < r.c.last {
		t.begin()
	}
}

// takesOf is how long a replica takes, or took of late.
func (r *reign) takesOf(id uint64) time.Duration {
	if t := r.takes[id]; t != nil && !r.silent(id) {
		return t.longest()
	}
	return 0
}

// silent reports whether nothing has been heard of a node for some time.
func (r *reign) silent(id uint64) bool { return r.unheard[id] > electionTicks/2 }
