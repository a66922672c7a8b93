package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"godat/examples/volume/raftlog"
	"godat/examples/volume/secure"
	"godat/hw"
	"godat/hw/event"
	"godat/runtime/rpc"
)

// ways is where other nodes are, as nodes have said in their hellos, and why those are not reached that this node tried
// last. A node that joins, or was away while members were replaced, does not know where the leader is by its own files.
type ways struct {
	mu     sync.Mutex
	told   raftlog.Members   // what others have said
	failed map[uint64]string // by node; empty of one that was reached last
	gets   string            // why the disk of the leader has not come the last time
	takes  map[uint64]bool   // nodes that take what hosts ask of followers; those of the version before do not
	news   func()            // hears that told has more; it must not wait
}

// learnWays keeps where nodes are, as a node of the volume says.
func (s *site) learnWays(told raftlog.Members) {
	w := &s.ways
	w.mu.Lock()
	defer w.mu.Unlock()
	all := maps.Clone(w.told)
	if all == nil {
		all = make(raftlog.Members)
	}
	for id, m := range told {
		if id >= 1 && id <= uint64(s.cfg.Layout.Nodes) && id != s.cfg.ID && m.Addr != "" {
			all[id] = raftlog.Member{Addr: m.Addr}
		}
	}
	if !maps.Equal(all, w.told) {
		w.told = all
		w.news()
	}
}

// where is at which addresses other nodes are: the members', of the configuration when there are none, and what others
// have said of those that are not known otherwise.
func (s *site) where() raftlog.Members {
	all := s.log.Members()
	if len(all) == 0 {
		all = maps.Clone(s.cfg.Peers)
	}
	founded := s.log.Founded()
	s.ways.mu.Lock()
	defer s.ways.mu.Unlock()
	for id, m := range s.ways.told {
		if _, known := all[id]; !s.log.Gone(id) && (!known || !founded) {
			if all == nil {
				all = make(raftlog.Members)
			}
			all[id] = m
		}
	}
	return all
}

// learnForwards notes whether a node takes what hosts ask of followers.
func (w *ways) learnForwards(id uint64, takes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.takes == nil {
		w.takes = make(map[uint64]bool)
	}
	w.takes[id] = takes
}

// forwards reports whether a node takes what hosts ask of followers.
func (w *ways) forwards(id uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.takes[id]
}

// reached notes that a node is reached, or why it is not.
func (s *site) reached(id uint64, err error) {
	s.health.reaches(id, err, errors.Is(err, errStranger) || secure.Distrusts(err))
	s.ways.mu.Lock()
	defer s.ways.mu.Unlock()
	if s.ways.failed == nil {
		s.ways.failed = make(map[uint64]string)
	}
	s.ways.failed[id] = short(err)
}

// Words is an error in words for people: what was met, and not by which call.
func Words(err error) string { return short(err) }

// short is an error as one of a list.
func short(err error) string {
	var refused *rpc.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused):
		return strings.TrimPrefix(refused.Text, "node: ")
	case strings.Contains(err.Error(), "connection refused"):
		return "nobody listens there"
	case errors.Is(err, event.Error(event.Unreachable)) && (errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EACCES)):
		return "no route to it" // as the system calls that of a route by which nothing is to go
	case late(err):
		return "it does not answer"
	case errors.Is(err, rpc.ErrEnded) && !errors.As(err, new(*hw.Cause)):
		return "it ended the connection"
	case errors.Is(err, event.Error(event.NonPeerRejected)):
		return "it takes no connection"
	}
	return innermost(err)
}

// late reports whether an error is that of somebody who does not answer in time.
func late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, hw.ErrTimeout) || errors.Is(err, event.Error(event.TimedOut))
}

// ofPeer has what a connection says of its peer said of the node.
var ofPeer = strings.NewReplacer("the peer's ", "its ", "the peer ", "it ")

// innermost is what a connection met, without what it may come from, and between which addresses.
func innermost(err error) string {
	text := err.Error()
	failed := (*hw.Error)(nil)
	if cause := (*hw.Cause)(nil); errors.As(err, &cause) {
		if text = cause.Text; text == "" && cause.Err != nil {
			text = cause.Err.Error()
		}
	} else if errors.As(err, &failed) && failed.Text != "" {
		text = failed.Text
	}
	for _, end := range []string{" (", ": x509: ", ": the peer's process", "; "} {
		text, _, _ = strings.Cut(text, end)
	}
	return ofPeer.Replace(text)
}

// gets notes why the leader's disk has not come, or that it has, and reports whether that is news.
func (s *site) gets(err error) (news bool) {
	s.ways.mu.Lock()
	defer s.ways.mu.Unlock()
	was := s.ways.gets
	s.ways.gets = short(err)
	return s.ways.gets != was
}

const (
	waitsBrief = 3 * time.Second  // what lasts no longer is an election
	waitsAgain = 10 * time.Second // a node says again what it waits for
)

// waits is what this node waits for, or empty.
func (c *consensus) waits() string {
	where := c.where()
	lead := c.leader.Load()
	c.ways.mu.Lock()
	defer c.ways.mu.Unlock()
	switch {
	case c.log.Gone(c.cfg.ID):
		return "this node was removed from the volume: end it"
	case c.ahead.Load() != nil:
		return c.ahead.Load().advice
	case c.reign != nil:
		return c.reign.waits()
	case lead == 0 && !c.log.Founded():
		return fmt.Sprintf("the node is no member yet: it waits to be added: give add or replace, at a member's address, its number %d and its address %s", c.cfg.ID, c.cfg.Addr)
	case lead == 0:
		return "nobody leads that this node hears, so it serves no host" + c.unreached(where)
	case lead != c.cfg.ID && c.ways.failed[lead] != "":
		return fmt.Sprintf("it does not reach node %d, which leads, at %s: %s", lead, where[lead].Addr, c.ways.failed[lead])
	case lead != c.cfg.ID && c.rotten.Load() && c.ways.gets != "":
		return fmt.Sprintf("it has not got the disk of node %d, which leads, at %s, and tries again: %s", lead, where[lead].Addr, c.ways.gets)
	case lead != c.cfg.ID && c.rotten.Load() && where[lead].Addr == "":
		return fmt.Sprintf("node %d leads, and nobody has said where it is", lead)
	}
	return ""
}

// unreached says which members that vote this node does not reach, and what that means. The caller holds the lock.
func (c *consensus) unreached(where raftlog.Members) string {
	var not []string
	voters := 0
	for _, id := range slices.Sorted(maps.Keys(where)) {
		if where[id].Learner {
			continue
		}
		voters++
		if why := c.ways.failed[id]; why != "" && id != c.cfg.ID {
			not = append(not, fmt.Sprintf("%s: %s", name(id, where[id].Addr, c.health.page(id)), why))
		}
	}
	text := ""
	if c.rotten.Load() {
		text = "; this node is being rebuilt: it votes, and can't lead"
	}
	switch {
	case len(not) == 0:
		return text + "; an election may be under way"
	case len(not) > voters/2:
		return text + "; others may go on without it, since it does not reach " + strings.Join(not, ", nor ")
	}
	return text + "; it does not reach " + strings.Join(not, ", ")
}

// sayWaits says from time to time what this node waits for, if that lasts.
func (c *consensus) sayWaits() {
	what := c.waits()
	if what == "" || c.ahead.Load() != nil { // which it has said
		c.waited = 0
		return
	}
	c.waited++
	first, again := int(waitsBrief/c.cfg.Tick), int(waitsAgain/c.cfg.Tick)
	if c.waited >= first && (c.waited-first)%again == 0 {
		c.cfg.Logger.Warn("the node waits", "node", c.cfg.ID, "why", what)
	}
}
