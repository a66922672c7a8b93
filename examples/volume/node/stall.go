package node

import (
	"fmt"
	"strings"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// A leader whose own network is slow, or loses much, still hears the answers to its heartbeats, which are small, so it goes on
// to lead, and what it sends of writes does not come through. It sees that nothing is committed. When the others are fine, it
// lets one of them lead: what they send each other does not go by this node's network.

// stall is for how long nothing has been committed, though records wait for it.
type stall struct {
	commit uint64    // at the last tick
	ticks  int       // since it was that
	since  time.Time // the first of them
	asked  int       // the tick at which another node was to lead; 0 is none
}

// stallTicks is for how many ticks records wait until another node is to lead: an election takes as long, and an append that
// does not come through ends after callTime, so two of them have.
func (c *consensus) stallTicks() int { return 2*electionTicks + int(2*callTime/c.cfg.Tick) }

// yields are how often this node has let another one lead that did so. Each time it waits twice as long: where no network
// is better, the lead goes round, and no faster than that.
type yields struct {
	times int
	last  time.Time
}

const (
	mostYields  = 5
	yieldsFresh = 10 * time.Minute // what is longer ago does not count
)

// note notes that another node leads.
func (y *yields) note() {
	if time.Since(y.last) > yieldsFresh {
		y.times = 0
	}
	y.times, y.last = min(y.times+1, mostYields), time.Now()
}

// watch looks, at each tick, whether anything is committed, and lets another node lead if that is better.
func (r *reign) watch() {
	s := &r.stall
	if commit := r.c.raft.BasicStatus().GetCommit(); commit != s.commit || commit >= r.c.last {
		*s, r.yielded = stall{commit: commit}, 0
		return
	}
	if s.ticks++; s.ticks == 1 {
		s.since = time.Now()
	}
	least := r.c.stallTicks()
	if s.ticks < least<<r.c.yields.times || s.asked != 0 && s.ticks < s.asked+least {
		return
	}
	next := r.successor()
	if next == 0 {
		return
	}
	r.c.cfg.Logger.Warn("no write is acknowledged: another node is to lead", "node", next, "for", time.Since(s.since).Round(time.Millisecond))
	s.asked = s.ticks
	r.yielded++
	// The engine's own transfer waits until the node has all records, which do not come through.
	r.c.send(&pb.Message{Type: pb.MsgTimeoutNow.Enum(), From: new(r.c.cfg.ID), To: new(next), Term: new(r.c.term)})
}

// successor is the node that is to lead when nothing is committed, or 0: those that are fine are a majority without this
// node, and elect the one that has most.
func (r *reign) successor() (next uint64) {
	most, voters, fine := uint64(0), 0, 0
	r.c.raft.WithProgress(func(id uint64, kind raft.ProgressType, p tracker.Progress) {
		if kind != raft.ProgressTypePeer {
			return
		}
		if voters++; id == r.c.cfg.ID || r.hinders(id) != "" {
			return
		}
		if fine++; next == 0 || p.Match > most {
			next, most = id, p.Match
		}
	})
	if fine <= voters/2 {
		return 0
	}
	return next
}

// hinders is why a node does not acknowledge that is no matter of the network between, or empty. Where that is slow, answers
// are late, so a node is heard as long as the engine counts it for a majority.
func (r *reign) hinders(id uint64) string {
	if r.unheard[id] > electionTicks {
		return "nothing is heard of it"
	}
	if r.rotten[id] {
		return "it is being rebuilt"
	}
	if took := r.c.health.diskOf(id, r.c.lately()); took >= callTime {
		return fmt.Sprintf("its disk is slow: a write took %v", took.Round(time.Millisecond))
	}
	return ""
}

// diskOf is how long a node's slowest write to its disk took of late, as the node has said lately; 0 is not known.
func (h *health) diskOf(id uint64, lately time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	x, has := h.said[id]
	if !has || x.at.IsZero() || time.Since(x.at) > lately {
		return 0
	}
	return x.Disk.Longest
}

// waits says for how long nothing has been committed, and why, or nothing.
func (r *reign) waits() string {
	if r.stall.ticks == 0 || time.Since(r.stall.since) < Briefly {
		return ""
	}
	var all []string
	members := r.c.log.Members()
	r.c.raft.WithProgress(func(id uint64, kind raft.ProgressType, p tracker.Progress) {
		if kind != raft.ProgressTypePeer || id == r.c.cfg.ID || p.Match > r.stall.commit {
			return
		}
		why := r.hinders(id)
		if why == "" {
			why = "it answers, and what it is sent of writes does not come through: the network between is slow, or loses it"
		}
		all = append(all, name(id, members[id].Addr, r.c.health.page(id))+": "+why)
	})
	text := fmt.Sprintf("writes have waited for %v", time.Since(r.stall.since).Round(time.Second))
	if all == nil {
		return text + " for this node's own disk, without which there is no majority"
	}
	return text + ", since no majority acknowledges them: " + strings.Join(all, "; ")
}
