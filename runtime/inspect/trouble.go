package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"godat/ep"
	"godat/mem"
	dat "godat/runtime"
)

const (
	late      = Late
	fresh     = time.Minute // an end of this age still is
	ofEach    = 5           // troubles of a kind that are told one by one
	manyTimes = 5           // connections in the place of one within a minute
	manyPeers = 64          // peers that have said nothing
)

var connected = ep.Connected.String()

// trouble is something that is wrong. The page and its JSON have the exported fields.
type trouble struct {
	Kind string        // the same for all troubles of the kind
	Show string        // the list in which its object is; empty of the process
	Name string        // of the object
	Head string        // what the line begins with: the object's name, with what it is where that is not plain
	Text string        // what is wrong, and what to look at
	rank int           // the worst first
	age  time.Duration // how long it has lasted, where that tells which of a kind is the worst
	// misses is the address of a peer that the line misses; empty if it says why, or misses none.
	misses string
	peers  []string // that the line explains
	with   string   // the address of the connections that the line is about; empty if it is about none
	// explained says that the line knows better than others why those ended or failed, and joined that it is said
	// with another one.
	explained, joined bool

	adapter int // of which it is, where that is not the page's; the number plus 1
}

// Link leads to the object in the tables of an adapter: to its story, if it has one.
func (t trouble) Link(adapter int) string {
	if t.adapter > 0 {
		adapter = t.adapter - 1
	}
	q := query{adapter: adapter, show: t.Show, page: 1, filter: t.Name}
	if t.Show == "connections" || t.Show == "endpoints" || t.Show == "last ends" {
		q.filter, q.of = "", t.Name
	}
	return q.with()
}

type finder struct {
	now, last *seen // last is empty in the first snapshot
	list      []trouble
	found     map[string]int    // by kind
	explained []string          // addresses of peers of which a row says what is wrong
	ends      map[[2]string]end // by the local and the remote address; nil before it is asked for
	silentAt  map[string]int    // by the dialed address, the line in list of a peer that does not answer
}

// end is a connected end in this program.
type end struct {
	name string
	*ep.EndpointSnapshot
}

// troubles finds what is wrong now, given an earlier snapshot.
func troubles(now, last *seen) []trouble {
	f := &finder{now: now, last: cmp.Or(last, new(seen)), list: []trouble{}, found: make(map[string]int), silentAt: make(map[string]int)}
	f.remember()
	f.explained = explained(&now.Snapshot)
	f.dispatchers()
	f.listeners()
	f.pools()
	for i := range now.Conns {
		f.conn(&now.Conns[i])
	}
	for i := range now.Endpoints {
		e := &now.Endpoints[i]
		f.row("endpoints", e.Name, e.Name, "connection to "+e.Remote+": ", e.Owner)
		f.endpoint("endpoints", e.Name, e)
	}
	f.shared()
	f.device()
	f.rows()
	f.owners()
	f.process()
	f.broken()
	f.join()
	for i, t := range f.list {
		if more := f.found[t.Kind] - ofEach; more > 0 && f.isLastTold(i) {
			f.list[i].Text += fmt.Sprintf("; %s more in the list %s %s in trouble", number(more), t.Show, isOrAre(more))
		}
	}
	slices.SortStableFunc(f.list, byRank)
	causesFirst(f.list)
	return f.list
}

// byRank puts the worst first, and of a rank what says why before what only misses a peer, and what is here before what is there.
func byRank(a, b trouble) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(min(1, len(a.misses)), min(1, len(b.misses))), cmp.Compare(min(1, len(a.peers)), min(1, len(b.peers))))
}

// add tells a trouble, if it is one of the first of its kind.
func (f *finder) add(rank int, kind, show, name, format string, args ...any) {
	f.addHead(rank, kind, show, name, name, fmt.Sprintf(format, args...))
}

// addHead is add of a line that begins with more than the name.
func (f *finder) addHead(rank int, kind, show, name, head, text string) {
	f.put(trouble{Kind: kind, Show: show, Name: name, Head: head, Text: text, rank: rank})
}

// put is add of a line that is made. Of a kind of which enough are told it replaces the least bad one, if that is less bad.
func (f *finder) put(t trouble) {
	if t.isOf(f.explained) {
		return
	}
	if f.found[t.Kind]++; f.found[t.Kind] <= ofEach {
		f.list = append(f.list, t)
		return
	}
	least := &t
	for i := range f.list {
		if told := &f.list[i]; told.Kind == t.Kind && worse(least, told) {
			least = told
		}
	}
	*least = t
}

// worse reports whether a line is worse than another of its kind, which was told before.
func worse(t, told *trouble) bool {
	return cmp.Or(cmp.Compare(t.rank, told.rank), cmp.Compare(told.age, t.age)) < 0
}

// isLastTold reports whether no later trouble is of the kind of trouble i.
func (f *finder) isLastTold(i int) bool {
	return !slices.ContainsFunc(f.list[i+1:], func(t trouble) bool { return t.Kind == f.list[i].Kind })
}

// grown is by how much a count has grown. One that is less is another object's of that name.
func grown(now, then uint64) uint64 {
	if now < then {
		return now
	}
	return now - then
}

// before finds an object of a name in a list of the earlier snapshot, which is sorted by name.
func before[T any](all []T, name string, nameOf func(*T) string) *T {
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
		if w := before(f.last.Listeners, l.Name, func(l *dat.ListenerSnapshot) string { return l.Name }); w != nil {
			was = *w
		}
		d, then := device(l), device(&was)
		if n := f.lately("descriptors", l.Name, grown(d.Descriptors, then.Descriptors)); n > 0 {
			f.add(0, "descriptors", "listeners", l.Name, "%s turned away: this process has no descriptor left; raise ulimit -n, or close files", many(n, "peer"))
		}
		// Some who waited then wait still.
		if l.Waiting > 0 && grown(l.Accepted+l.Rejected, was.Accepted+was.Rejected) < uint64(was.Waiting) {
			f.add(0, "not accepted", "listeners", l.Name, "%s for this program to accept or reject the connection", wait(l.Waiting, "peer"))
		}
		refusals := f.lately("rejected", l.Name, grown(l.Rejected, was.Rejected))
		if l.Conns > 0 && l.Taken >= l.Conns && refusals == 0 {
			refused := ""
			if l.Rejected == 0 {
				refused = "; none was so far"
			}
			f.add(1, "no places", "listeners", l.Name, "connections, dialed and accepted, have taken %s: the next peer is refused%s", all(l.Conns, "place"), refused)
		}
		if n := refusals; n > 0 {
			f.add(felt, "rejected", "listeners", l.Name, "%s refused within the last minute: %s", were(n, "peer"), f.whyRefused(l, &was))
		}
		if n := f.lately("backlog", l.Name, grown(l.Overflows, was.Overflows)); n > 0 {
			f.add(1, "backlog", "listeners", l.Name, "%s found the backlog of %d full", many(n, "request"), l.Backlog)
		}
		foreign := grown(d.Foreign, then.Foreign)
		if n := f.lately("another protocol", l.Name, foreign); n > 0 {
			f.add(1, "another protocol", "listeners", l.Name, "%s turned away within the last minute, %s because %s%s", were(n, "peer"), allOr(d.Alike >= n), d.Spoke, lastFrom(d.Stranger))
		}
		silent := f.lately("silent", l.Name, grown(d.GaveWay, then.GaveWay)+grown(d.Silent, then.Silent)-min(foreign, grown(d.Silent, then.Silent)))
		if d.HalfOpen >= manyPeers {
			f.add(1, "silent", "listeners", l.Name, "%s have brought no request to connect yet; the device drops them in time, and this program has nothing to do", many(d.HalfOpen, "TCP connection"))
		} else if n := silent; n > 0 {
			f.add(2, "silent", "listeners", l.Name, "%s dropped for bringing no request to connect; this program has nothing to do", were(n, "TCP connection"))
		}
	}
}

// whyRefused says who refused the peers of the last minute.
func (f *finder) whyRefused(l, was *dat.ListenerSnapshot) string {
	accepted := f.lately("accepted", l.Name, grown(l.Accepted, was.Accepted))
	switch n := f.lately("no place", l.Name, grown(l.NoPlace, was.NoPlace)); {
	case n > 0 && accepted > manyTimes*uint64(l.Conns):
		return fmt.Sprintf("%s (ConnConfig.Conns) %s taken; %s accepted meanwhile, so peers connect again and again for a moment: let each keep its connection", all(l.Conns, "place"), wasOrWere(l.Conns), number(accepted)+" more were")
	case n > 0:
		return fmt.Sprintf("%s for connections (ConnConfig.Conns) %s taken; see why peers need so many, or allow more", all(l.Conns, "place"), wasOrWere(l.Conns))
	case l.Conns == 0:
		return "this program rejected them, or there was no place"
	}
	return "this program rejected them, or Accept told it what was lacking for a connection: each has the reason on its own page"
}

// shared looks for shared receive queues that are empty at two looks, and for those that the device gave up.
func (f *finder) shared() {
	empty := func(q *ep.SRQSnapshot) bool { return q.Outstanding == 0 && q.Endpoints > 0 }
	for i := range f.now.SRQs {
		switch q := &f.now.SRQs[i]; {
		case q.Failed:
			f.add(0, "shared receives failed", "shared receives", q.Name, "the device gave it up, so no message comes for %s; close them and it, and make others", many(q.Endpoints, "endpoint"))
		case empty(q) && slices.ContainsFunc(f.last.SRQs, func(was ep.SRQSnapshot) bool { return was.Name == q.Name && empty(&was) }):
			f.add(2, "no shared receives", "shared receives", q.Name, "has no receive for %s: the program posts too few", many(q.Endpoints, "endpoint"))
		}
	}
}

// device looks for errors that the device has reported of its own accord.
func (f *finder) device() {
	now, was := &f.now.Counters.Async, &f.last.Counters.Async
	lately := func(what string, now, was uint64) uint64 { return f.lately("device", what, grown(now, was)) }
	n := lately("", now.Errors, was.Errors)
	if n == 0 {
		return
	}
	var of []string
	rest := n
	for _, part := range []struct {
		what string
		n    uint64
	}{
		{"queue pairs", lately("pairs", now.Endpoints, was.Endpoints)},
		{"completion queues", lately("completions", now.Dispatchers, was.Dispatchers)},
		{"shared receive queues", lately("shared", now.SharedReceivers, was.SharedReceivers)},
	} {
		if rest -= part.n; part.n > 0 {
			of = append(of, number(part.n)+" of "+part.what)
		}
	}
	if rest > 0 {
		of = append(of, number(rest)+" of the device or a port")
	}
	f.addHead(0, "device", "dispatchers", "", cmp.Or(f.now.Device, f.now.Provider, "the device"),
		fmt.Sprintf("the device reported %s within the last minute: %s; the log says which, and IA.Async has the events", many(n, "error"), strings.Join(of, ", ")))
}

func (f *finder) conn(c *dat.ConnSnapshot) {
	f.endpoint("connections", c.Name, &c.Endpoint)
	if c.HookAge >= late {
		f.add(0, "hook", "connections", c.Name, "this program's hook (Established or Ended of ConnConfig) has not returned for %s", ago(c.HookAge))
	}
	i, ok := slices.BinarySearchFunc(f.last.Conns, c.ID, func(was dat.ConnSnapshot, id uint64) int { return cmp.Compare(was.ID, id) })
	if !ok {
		return
	}
	was, b := &f.last.Conns[i], &c.Buffers
	unposted := func(c *dat.ConnSnapshot) bool { return c.Missing > 0 && c.Endpoint.Receives.Outstanding == 0 }
	starved := func(c *dat.ConnSnapshot) bool { return c.Buffers.Waiting > 0 && c.Buffers.Sending == 0 }
	switch {
	case c.Ending && b.Held > 0 && b.HeldAge >= late:
		f.add(0, "buffers", "connections", c.Name, "Shutdown waits: %s", kept(b.Held, heldText(b.HeldAge)))
	case unposted(c) && unposted(was) && c.Endpoint.State == connected:
		f.add(0, "buffers", "connections", c.Name, "no receive is posted: %s", kept(b.Held, heldText(b.HeldAge)))
	case starved(c) && starved(was) && b.Held > 0 && b.HeldAge > 0:
		f.add(0, "buffers", "connections", c.Name, "%s for a buffer: %s", wait(b.Waiting, "call"), kept(b.Held, heldText(b.HeldAge)))
	}
}

// pools looks for calls that wait for a buffer while the program holds buffers, and sends none.
func (f *finder) pools() {
	starved := func(p *mem.PoolSnapshot) bool { return p.Waiting > 0 && p.Free == 0 && p.Sending == 0 }
	for i := range f.now.Pools {
		p := &f.now.Pools[i]
		if !starved(p) || !slices.ContainsFunc(f.last.Pools, func(was mem.PoolSnapshot) bool { return was.Name == p.Name && starved(&was) }) {
			continue
		}
		text := ""
		if len(p.Holders) > 0 {
			text = "; most were taken by " + p.Holders[0].Call
		}
		f.add(0, "no buffers", "pools", p.Name, "%s for a buffer: this program holds %s, and gives none back%s%s", wait(p.Waiting, "call"), all(p.Held, "buffer"), heldText(p.HeldAge), text)
	}
}

// endpoint looks for a peer that does not answer, and for requests that do not complete.
func (f *finder) endpoint(show, name string, e *ep.EndpointSnapshot) {
	t := trouble{Show: show, Name: name, Head: name, misses: e.Remote}
	if e.Silence > 0 {
		t.Kind, t.Text = "silent peer", fmt.Sprintf("the peer %s has not answered for %s: %s", e.Remote, ago(e.Silence), whoIsSilent(e))
		told := len(f.list)
		f.put(t)
		if to, _, ok := strings.Cut(name, " (dial "); ok && len(f.list) > told {
			f.silentAt[to] = told
		}
	} else if q := &e.Requests; e.State == connected && q.OldestAge >= late {
		outstanding := fmt.Sprintf("1 request has been outstanding for %s", ago(q.OldestAge))
		if q.Outstanding != 1 {
			outstanding = fmt.Sprintf("%s requests are outstanding, the oldest for %s", number(q.Outstanding), ago(q.OldestAge))
		}
		t.Kind, t.Text, t.age = "peer", outstanding+": "+f.otherEnd(e), q.OldestAge
		f.put(t)
	}
}

// whoIsSilent says where to look for a peer that does not answer.
func whoIsSilent(e *ep.EndpointSnapshot) string {
	switch {
	case e.PeerAcknowledges:
		return "TCP acknowledges, so its process is stopped or stuck, or, if its page answers, something between holds all back"
	case e.PeerLost:
		return "TCP acknowledges nothing: the network between is cut, or its host is down; if its page answers, it is the network"
	}
	return "its process is stopped or stuck, or its host or the network between is gone; if its page answers, it is the network"
}

// otherEnd says where to look for the reason that requests do not complete.
func (f *finder) otherEnd(e *ep.EndpointSnapshot) string {
	f.indexEnds()
	other := f.ends[[2]string{e.Remote, e.Local}]
	switch {
	case other.EndpointSnapshot == nil:
		return "the peer " + e.Remote + " has stopped, or posts no receives; look at its page"
	case other.Receives.Outstanding == 0 && other.SRQ == "":
		return "the other end, " + other.name + " in this program, has no receive posted"
	}
	return "look at the other end, " + other.name + " in this program"
}

// indexEnds makes the index of the ends of this program, once.
func (f *finder) indexEnds() {
	if f.ends != nil {
		return
	}
	f.ends = make(map[[2]string]end)
	index := func(name string, e *ep.EndpointSnapshot) {
		if e.State == connected {
			f.ends[[2]string{e.Local, e.Remote}] = end{name, e}
		}
	}
	for i := range f.now.Conns {
		index(f.now.Conns[i].Name, &f.now.Conns[i].Endpoint)
	}
	for i := range f.now.Endpoints {
		index(f.now.Endpoints[i].Name, &f.now.Endpoints[i])
	}
}
