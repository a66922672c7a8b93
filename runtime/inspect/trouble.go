package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	dat "godat/runtime"
)

const (
	late      = time.Second // an operation, event or callback of this age is in trouble
	fresh     = time.Minute // an end of this age still is
	ofEach    = 5           // troubles of a kind that are told one by one
	manyPeers = 64          // peers that have said nothing
)

var connected = dat.StateConnected.String()

// Trouble is something that is wrong.
type Trouble struct {
	Kind string // the same for all troubles of the kind
	Show string // the list in which its object is
	Name string // of the object
	Text string // what is wrong, and what to look at
	rank int    // the worst first
}

// Link leads to the object in the tables of an adapter: to its story, if it has one.
func (t Trouble) Link(adapter int) string {
	q := query{adapter: adapter, show: t.Show, page: 1, filter: t.Name}
	if t.Show == "connections" || t.Show == "endpoints" || t.Show == "last ends" {
		q.filter, q.of = "", t.Name
	}
	return q.with()
}

// finder collects troubles.
type finder struct {
	now, last *seen // last is nil in the first snapshot
	list      []Trouble
	found     map[string]int // by kind
}

// troubles finds what is wrong now, given an earlier snapshot.
func troubles(now, last *seen) []Trouble {
	f := &finder{now: now, last: last, list: []Trouble{}, found: make(map[string]int)}
	f.dispatchers()
	f.listeners()
	f.pools()
	for i := range now.Conns {
		f.conn(&now.Conns[i])
	}
	for i := range now.Endpoints {
		e := &now.Endpoints[i]
		f.row("endpoints", e.Name, "connection to "+e.Remote+": ", e.Owner)
		f.endpoint("endpoints", e.Name, e)
	}
	for i := range now.SRQs {
		if q := &now.SRQs[i]; q.Outstanding == 0 && q.Endpoints > 0 {
			f.add(2, "no shared receives", "shared receives", q.Name, "has no receive for %d endpoints: the program posts too few", q.Endpoints)
		}
	}
	f.rows()
	f.ends()
	for i, t := range f.list {
		if more := f.found[t.Kind] - ofEach; more > 0 && f.isLastTold(i) {
			f.list[i].Text += fmt.Sprintf("; the same of %s more", number(more))
		}
	}
	slices.SortStableFunc(f.list, func(a, b Trouble) int { return cmp.Compare(a.rank, b.rank) })
	return f.list
}

// add tells a trouble, if it is one of the first of its kind.
func (f *finder) add(rank int, kind, show, name, format string, args ...any) {
	if f.found[kind]++; f.found[kind] <= ofEach {
		f.list = append(f.list, Trouble{kind, show, name, fmt.Sprintf(format, args...), rank})
	}
}

// isLastTold reports whether no later trouble is of the kind of trouble i.
func (f *finder) isLastTold(i int) bool {
	return !slices.ContainsFunc(f.list[i+1:], func(t Trouble) bool { return t.Kind == f.list[i].Kind })
}

// dispatchers looks for consumers that sleep, and for events without room.
func (f *finder) dispatchers() {
	for i := range f.now.Dispatchers {
		d := &f.now.Dispatchers[i]
		was := before(f, d.Name, func(s *seen) []dat.DispatcherSnapshot { return s.Dispatchers }, func(d *dat.DispatcherSnapshot) string { return d.Name })
		name := cmp.Or(d.Owner, d.Name)
		if d.CallbackAge >= late {
			f.add(0, "callback", "dispatchers", name, "this program's callback of %s has run for %s, with %s waiting for it", d.Name, ago(d.CallbackAge), many(d.Queued, "event"))
		} else if d.OldestAge >= late {
			f.add(0, "no consumer", "dispatchers", name, "this program has taken no event of %s for %s, with %s waiting: its loop sleeps or is blocked", d.Name, ago(d.OldestAge), many(d.Queued, "event"))
		} else if was != nil && d.Queued > 0 && d.Queued >= d.QLen/2 {
			f.add(1, "slow consumer", "dispatchers", name, "this program takes events of %s more slowly than they come: %s wait, and there is room for %s", d.Name, number(d.Queued), number(d.QLen))
		}
		if d.QLen > 0 && d.Reserved >= d.QLen {
			f.add(0, "full", "dispatchers", name, "%s is full: %s of %s places are reserved, and it has refused %s; make it longer or take its events", d.Name, number(d.Reserved), number(d.QLen), many(d.Refused, "post"))
		} else if was != nil && d.Refused > was.Refused {
			f.add(1, "full", "dispatchers", name, "%s was full, and refused %s lately", d.Name, many(grown(d.Refused, was.Refused), "post"))
		}
		if d.Lost > 0 {
			f.add(0, "lost", "dispatchers", name, "%s has lost %s, because more were posted than it has room for", d.Name, many(d.Lost, "event"))
		}
	}
}

// grown is by how much a count has grown. One that is less is another object's of that name.
func grown(now, then uint64) uint64 {
	if now < then {
		return now
	}
	return now - then
}

// before finds an object of a name in the earlier snapshot, whose list is sorted by name.
func before[T any](f *finder, name string, list func(*seen) []T, nameOf func(*T) string) *T {
	if f.last == nil {
		return nil
	}
	all := list(f.last)
	i, ok := slices.BinarySearchFunc(all, name, func(t T, name string) int { return cmp.Compare(nameOf(&t), name) })
	if !ok {
		return nil
	}
	return &all[i]
}

// listeners looks for peers that wait, and for those that were sent away.
func (f *finder) listeners() {
	for i := range f.now.Listeners {
		l := &f.now.Listeners[i]
		var was dat.ListenerSnapshot
		if w := before(f, l.Name, func(s *seen) []dat.ListenerSnapshot { return s.Listeners }, func(l *dat.ListenerSnapshot) string { return l.Name }); w != nil {
			was = *w
		}
		d, then := device(l), device(&was)
		if n := grown(d.Descriptors, then.Descriptors); n > 0 {
			f.add(0, "descriptors", "listeners", l.Name, "turned away, because this process has no descriptor left (ulimit -n): %s", many(n, "peer"))
		}
		if l.Waiting > 0 && was.Waiting > 0 {
			f.add(0, "not accepted", "listeners", l.Name, "%s waiting for this program to accept or reject the connection", many(l.Waiting, "peer"))
		}
		if l.Conns > 0 && l.Taken >= l.Conns {
			f.add(1, "no places", "listeners", l.Name, "all %s places are taken by connections, dialed and accepted: further peers are refused", number(l.Conns))
		}
		if n := grown(l.Overflows, was.Overflows); n > 0 {
			f.add(1, "backlog", "listeners", l.Name, "%s found the backlog of %d full", many(n, "request"), l.Backlog)
		}
		if d.HalfOpen >= manyPeers {
			f.add(1, "silent", "listeners", l.Name, "%s opened TCP connections and sent no request to connect", many(d.HalfOpen, "peer"))
		} else if n := grown(d.GaveWay, then.GaveWay) + grown(d.Silent, then.Silent); n > 0 {
			f.add(2, "silent", "listeners", l.Name, "dropped, since they opened a TCP connection and sent no request to connect: %s", many(n, "peer"))
		}
	}
}

// conn looks at a connection.
func (f *finder) conn(c *dat.ConnSnapshot) {
	f.endpoint("connections", c.Name, &c.Endpoint)
	if c.Missing == 0 || c.Endpoint.Receives.Outstanding > 0 || c.Endpoint.State != connected || f.last == nil {
		return
	}
	i, ok := slices.BinarySearchFunc(f.last.Conns, c.ID, func(was dat.ConnSnapshot, id uint64) int { return cmp.Compare(was.ID, id) })
	if ok && f.last.Conns[i].Missing > 0 && f.last.Conns[i].Endpoint.Receives.Outstanding == 0 {
		f.add(0, "buffers", "connections", c.Name, "no receive is posted: this program holds the messages of all %d, and gives no buffer back", c.Missing)
	}
}

// pools looks for calls that wait for a buffer while the program holds buffers, and sends none.
func (f *finder) pools() {
	starved := func(p *dat.PoolSnapshot) bool { return p.Waiting > 0 && p.Free == 0 && p.Sending == 0 }
	for i := range f.now.Pools {
		p := &f.now.Pools[i]
		if f.last == nil || !starved(p) || !slices.ContainsFunc(f.last.Pools, func(was dat.PoolSnapshot) bool { return was.Name == p.Name && starved(&was) }) {
			continue
		}
		text := ""
		if len(p.Holders) > 0 {
			text = ", most of them taken by " + p.Holders[0].Call
		}
		f.add(0, "no buffers", "pools", p.Name, "%s waiting for a buffer: this program holds all %s%s, and gives none back", many(p.Waiting, "call"), number(p.Held), text)
	}
}

// endpoint looks for a peer that does not answer, and for requests that do not complete.
func (f *finder) endpoint(show, name string, e *dat.EndpointSnapshot) {
	if e.Silence > 0 {
		f.add(0, "silent peer", show, name, "the peer %s has not answered the device for %s: its process is stopped or stuck, or its host is gone", e.Remote, ago(e.Silence))
	} else if q := &e.Requests; e.State == connected && q.OldestAge >= late {
		f.add(0, "peer", show, name, "%s outstanding, the oldest for %s: the peer %s has stopped, or posts no receives; look at its page", many(q.Outstanding, "request"), ago(q.OldestAge), e.Remote)
	}
}

// ends tells connections that broke lately.
func (f *finder) ends() {
	for i := len(f.now.LastEnds) - 1; i >= 0; i-- {
		e := &f.now.LastEnds[i]
		if age := f.now.At.Sub(e.At); e.Event != dat.Disconnected.String() && age < fresh {
			text := ""
			if e.Cause != nil {
				text = ": " + e.Cause.Text
			}
			f.add(2, "broke", "last ends", endName(e), "ended %s ago with %s%s", ago(age), e.Event, text)
		}
	}
}
