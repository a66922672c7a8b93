package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	"godat/runtime/rpc"
)

// A follower speaks to the leader alone, so it does not know that a third node is away. It tells the leader, once in an
// election's time, how it is, and hears how all are: each node's page says what the leader knows.

// Self is what a node says of itself.
type Self struct {
	Page string        `json:"page,omitempty"` // its page's URL, or empty
	Disk Takes         `json:"disk"`
	Runs time.Duration `json:"runs"` // since it was opened
}

// Missed is what a node knows of another one that it does not hear.
type Missed struct {
	For     time.Duration `json:"for,omitempty"`     // nothing has been heard of it; 0 is never
	Why     string        `json:"why,omitempty"`     // it is not reached, or empty
	Refuses bool          `json:"refuses,omitempty"` // one of the two does not take the other: it is of another volume
	Ended   bool          `json:"ended,omitempty"`   // nobody listens there: its process has ended
}

// back is a node that was away.
type back struct {
	gone time.Time     // when it was heard last, while it is away
	at   time.Time     // when it came back
	away time.Duration // before that
}

// health is what a node knows of the others' health.
type health struct {
	mu      sync.Mutex
	heard   map[uint64]time.Time // of each node, the last time
	said    map[uint64]said
	ended   map[uint64]string   // why the last connection with it ended
	missed  map[uint64]Missed   // of those that are not reached
	callers map[string]uint64   // by the remote address of a connection that a node has dialed
	seen    map[uint64]Progress // as a leader sees all
	at      time.Time           // when one told so
}

// said is what a node said of itself.
type said struct {
	Self
	at time.Time
}

// put puts a value into a map, which it makes.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[key] = value
}

// hears notes that a node has said something.
func (h *health) hears(id uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	put(&h.heard, id, time.Now())
}

const mostCallers = 256

// calls notes at which address a node calls from.
func (h *health) calls(id uint64, addr string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.callers) == mostCallers {
		clear(h.callers)
	}
	put(&h.callers, addr, id)
}

// says notes what a node says of itself.
func (h *health) says(id uint64, x Self) {
	h.mu.Lock()
	defer h.mu.Unlock()
	put(&h.said, id, said{x, time.Now()})
}

// hasPage notes where a node's page is.
func (h *health) hasPage(id uint64, page string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.said[id]
	if page != "" {
		x.Page = page
		put(&h.said, id, x)
	}
}

// page is where a node's page is, or empty.
func (h *health) page(id uint64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said[id].Page
}

// reaches notes that a node is reached, or why not.
func (h *health) reaches(id uint64, err error, refused bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.missed, id)
		return
	}
	x := Missed{Why: short(err), Refuses: refused, Ended: !refused && !late(err)}
	if before := h.ended[id]; before != "" && x.Ended {
		x.Why = before + "; now " + x.Why
	}
	put(&h.missed, id, x)
}

// loses notes why a connection with a node has ended.
func (h *health) loses(id uint64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := Missed{Why: short(err)}
	if late(err) {
		delete(h.ended, id)
	} else {
		put(&h.ended, id, x.Why)
	}
	put(&h.missed, id, x)
}

// tells notes how the leader sees all.
func (h *health) tells(all map[uint64]Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen, h.at = all, time.Now()
	for id, p := range all {
		if p.Self != nil && p.Self.Page != "" && h.said[id].Page == "" {
			x := h.said[id]
			x.Page = p.Self.Page
			put(&h.said, id, x)
		}
	}
}

// Other is what a node knows of another one by itself.
type Other struct {
	Missed
	Page  string   `json:"page,omitempty"`
	Addrs []string `json:"addrs,omitempty"` // from which it has called
}

// others are what a node knows by itself.
func (h *health) others(members []uint64) map[uint64]Other {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make(map[uint64]Other)
	for _, id := range members {
		x := Other{Missed: h.missed[id], Page: h.said[id].Page}
		if heard := h.heard[id]; !heard.IsZero() {
			x.For = time.Since(heard)
		}
		for addr, caller := range h.callers {
			if caller == id {
				x.Addrs = append(x.Addrs, addr)
			}
		}
		slices.Sort(x.Addrs)
		all[id] = x
	}
	return all
}

// told is how a leader sees all, if one has said so lately: while another comes to lead, what the former knew is true.
func (h *health) told(lately time.Duration) map[uint64]Progress {
	h.mu.Lock()
	defer h.mu.Unlock()
	age := time.Since(h.at)
	if age > lately {
		return nil
	}
	all := make(map[uint64]Progress)
	for id, p := range h.seen {
		all[id] = p.aged(age)
	}
	return all
}

// of completes what a leader sees of a node: what the node has said, and why it is not heard.
func (h *health) of(id uint64, p Progress, lately time.Duration) Progress {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x, has := h.said[id]; has {
		age := time.Since(x.at)
		x.Disk = x.Disk.aged(age)
		x.Runs += age
		if x.at.IsZero() || age > lately {
			x.Disk, x.Runs = Takes{}, 0
			if was := h.seen[id].aged(time.Since(h.at)); was.Self != nil && time.Since(h.at) <= lately { // to a former leader
				x.Disk, x.Runs = was.Self.Disk, was.Self.Runs
			}
		}
		p.Self = &x.Self
	}
	if p.Silent {
		p.Missed = h.missed[id]
		if heard := h.heard[id]; !heard.IsZero() {
			p.For = time.Since(heard)
		}
	}
	return p
}

// aged is what was said some time ago.
func (p Progress) aged(d time.Duration) Progress {
	if p.Back != 0 {
		p.Back += d
	}
	if p.For != 0 {
		p.For += d
	}
	if p.Self != nil {
		x := *p.Self
		x.Disk = x.Disk.aged(d)
		if x.Runs != 0 {
			x.Runs += d
		}
		p.Self = &x
	}
	return p
}

// lately is for how long holds what nodes tell each other once in an election's time.
func (s *site) lately() time.Duration { return 3*electionTicks*s.cfg.Tick + callTime }

// self is what this node says of itself.
func (s *site) self() Self {
	return Self{s.cfg.Page, takes(&s.keeping, &s.releasing, &s.catching), time.Since(s.began)}
}

// sees is how a leader sees all; nil of another node.
func (c *consensus) sees() map[uint64]Progress {
	r := c.reign
	if r == nil {
		return nil
	}
	all := make(map[uint64]Progress)
	c.raft.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		x := Progress{Match: p.Match, State: p.State.String(), Out: r.out[id], Silent: r.silent(id), Takes: r.takesOf(id), Behind: c.last - min(c.last, p.Match)}
		if b := r.backs[id]; !b.at.IsZero() && !x.Silent && time.Since(b.at) < backIsNews {
			x.Back, x.Away = time.Since(b.at), b.away
		}
		if id == c.cfg.ID {
			x.Self, x.Term, x.First = new(c.self()), r.term, r.first
		} else {
			x = c.health.of(id, x, c.lately())
		}
		all[id] = x
	})
	return all
}

// Briefly is for how long a node that is silent is not missed: one with a slow disk answers late.
const Briefly = 2 * time.Second

// backIsNews is for how long it is told that a node came back.
const backIsNews = time.Minute

// returns notes that a node that was missed is heard again, if it had ever been heard before. One that goes again soon has
// not been back.
func (r *reign) returns(id uint64, silent bool) {
	h := &r.c.health
	h.mu.Lock()
	defer h.mu.Unlock()
	b, heard := r.backs[id], h.heard[id]
	switch away := !b.gone.IsZero(); {
	case silent && !away && !heard.IsZero() && time.Since(heard) >= Briefly:
		if b.gone = heard; time.Since(b.at) < backIsNews {
			b.gone = b.at.Add(-b.away)
		}
	case !silent && away:
		b = back{at: time.Now(), away: time.Since(b.gone)}
	}
	r.backs[id] = b
}

// exchange tells the leader how this node is, and hears how all are. A leader of before does not know the question.
func (c *consensus) exchange(client *rpc.Client, lead uint64) error {
	ctx, cancel := context.WithTimeout(c.ctx, callTime)
	defer cancel()
	b, err := json.Marshal(c.self())
	if err != nil {
		return err
	}
	applied, at := uint64(0), uint64(0)
	if !c.ask(c.events, func() { applied, at = c.stands(lead) }) {
		return context.Cause(c.ctx)
	}
	answer, err := client.Call(ctx, rpc.Call{Method: methodHealth, Payload: append(c.note(lead), b...)}, nil)
	if err != nil {
		return err
	}
	var all map[uint64]Progress
	if err := json.Unmarshal(answer, &all); err != nil {
		return errNote
	}
	if leads, is := all[lead]; is && beyond(applied, at, &leads) {
		c.events.put(func() { c.goAhead(applied, at, lead, leads.Term) })
		return errAhead
	}
	c.health.tells(all)
	return nil
}

// takeHealth takes what a follower says of itself.
func (d *door) takeHealth(from uint64, b []byte) ([]byte, error) {
	var x Self
	if json.Unmarshal(b, &x) != nil {
		return nil, errNote
	}
	d.health.says(from, x)
	var all map[uint64]Progress
	if !d.ask(d.events, func() { all = d.consensus.sees() }) {
		return nil, context.Cause(d.ctx)
	}
	return json.Marshal(all)
}

// others are the numbers of the other nodes that this one knows to be somewhere.
func (s *site) others() (all []uint64) {
	for id := range s.where() {
		if id != s.cfg.ID {
			all = append(all, id)
		}
	}
	return all
}

// Seen is how the leader sees the replicas, as far as this node knows.
func (s *Status) Seen() map[uint64]Progress {
	if s.Replicas != nil {
		return s.Replicas
	}
	return s.Told
}

// Name is what people call a node.
func (s *Status) Name(id uint64) string {
	page := s.Others[id].Page
	if id == s.ID {
		page = s.Self.Page
	}
	return name(id, s.Members[id].Addr, page)
}

func name(id uint64, addr, page string) string {
	if page != "" {
		return fmt.Sprintf("node %d (its page %s)", id, page)
	}
	return fmt.Sprintf("node %d at %s", id, addr)
}
