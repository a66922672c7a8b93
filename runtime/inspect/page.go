package inspect

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"godat/ep"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/inspect/internal/process"
)

// link is a link of the page's head.
type link struct {
	Text, To string
	Here     bool
}

// page is what the template and the JSON show.
type page struct {
	Adapter, Provider, Device string
	At                        time.Time
	Process                   process.Info
	Troubles                  []trouble // what users feel first, and the worst first
	// FirstLook says why no trouble may mean nothing yet; it is empty if the last look was shortly before.
	FirstLook string `json:",omitempty"`
	Show      string
	Table     *table     `json:",omitempty"`
	Story     *story     `json:",omitempty"`
	Trace     *seenTrace `json:",omitempty"` // of the story's connection or endpoint
	Ends      []ep.EndCount
	Counters  dat.Counters
	Memory    mem.Stats
	Polls     *dat.PollSnapshot `json:",omitempty"`
	Owners    []owner           // of the memory
	Sums      []sum             // since the adapter was opened
	Measuring *measuring        `json:",omitempty"`

	Adapters, Lists          []link `json:"-"`
	Filter, Sort, JSON, Back string `json:"-"`
	StartTrace, StopTrace    string `json:"-"` // empty if visitors may not trace it
	NoTrace                  string `json:"-"` // why none can begin now
	Number                   int    `json:"-"` // of the adapter
	Facts                    []fact `json:"-"`
	query                    query
	listens                  []string
}

// Measure is where a POST has requests measured for so many seconds.
func (p *page) Measure(seconds int) string { return p.query.with("measure", strconv.Itoa(seconds)) }

// Listens are addresses at which the adapter listens, by which other pages name it.
func (p *page) Listens() string {
	const most = 3
	list := p.listens[:min(most, len(p.listens))]
	if more := len(p.listens) - len(list); more > 0 {
		return fmt.Sprintf("%s and %s more", strings.Join(list, ", "), number(more))
	}
	return strings.Join(list, ", ")
}

type fact struct{ Name, Value string }

// story is what is known of one connection, endpoint or end.
type story struct {
	Name  string
	Facts []fact `json:"-"`
	Is    any    // the snapshot of it
	Lines []ep.StoryLine
	Moved []moved `json:"-"`
}

type moved struct {
	Way string
	ep.Moved
}

// page makes the page that the query asks for.
func (h *Handler) page(s *seen, q query) (*page, error) {
	p := &page{
		Adapter: h.adapters[q.adapter].label, Provider: s.Provider, Device: s.Device, At: s.At, Process: s.Process, Troubles: s.Troubles, Show: q.show,
		Ends: s.Ends, Counters: s.Counters, Memory: s.Memory, Polls: s.Polls, Owners: s.Owners, Sums: s.Sums,
		Filter: q.filter, Sort: q.sort, JSON: q.with("format", "json"), Back: q.with("of", ""), Number: q.adapter, query: q,
	}
	first := h.elsewhere(p, q.adapter)
	if s.First || first {
		p.FirstLook = firstLook
	}
	for i, a := range h.adapters {
		p.Adapters = append(p.Adapters, link{a.label, query{adapter: i, show: "connections", page: 1}.with(), i == q.adapter})
	}
	var shown *list
	for _, l := range lists(s) {
		to := query{adapter: q.adapter, show: l.name, page: 1}.with()
		p.Lists = append(p.Lists, link{fmt.Sprintf("%s %s", l.name, number(l.n)), to, l.name == q.show})
		if l.name == q.show && shown == nil { // a report may have the name of another list
			shown = &l
		}
	}
	p.Facts = factsOf(s)
	for i := range s.Listeners {
		p.listens = append(p.listens, s.Listeners[i].Addr)
	}
	if q.of != "" {
		p.Story = findStory(s, q.of)
		if p.Story == nil {
			return nil, errNotHere
		}
		if t := h.traces.of(q); t != nil {
			p.Trace = t.seen()
		}
		if e := p.Story.endpoint(); e != nil && h.traces.dir != "" {
			p.StartTrace, p.StopTrace, p.NoTrace = q.with("trace", "start"), q.with("trace", "stop"), h.traces.refusal(s, e)
		}
		return p, nil
	}
	if shown == nil {
		return nil, errNotHere
	}
	if q.show == "latencies" {
		p.Measuring = h.measuring(h.adapters[q.adapter])
	}
	p.Table = shown.table(q)
	return p, nil
}

// list is a list of objects that the page has.
type list struct {
	name  string
	n     int
	table func(q query) *table
}

func listOf[T any](name string, all []T, fields []field[T], story bool) list {
	return list{name, len(all), func(q query) *table { return tabulate(all, fields, q, story) }}
}

func lists(s *seen) []list {
	all := []list{
		listOf("connections", s.Conns, connFields(s.At), true),
		listOf("endpoints", s.Endpoints, ownedFields(s), true),
		listOf("dispatchers", s.Dispatchers, dispatcherFields, false),
		listOf("listeners", s.Listeners, listenerFields, false),
		listOf("shared receives", s.SRQs, srqFields, false),
		listOf("pools", s.Pools, poolFields, false),
		listOf("memory", s.Owners, ownerFields, false),
		listOf("last ends", s.LastEnds, endFields(s.At), true),
		listOf("latencies", s.Times, timedFields, false),
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Reports)) {
		all = append(all, listOf(kind, s.Reports[kind], rowFields(s.Reports[kind]), false))
	}
	return all
}

// factsOf are the adapter's numbers in short, all since it was opened.
func factsOf(s *seen) []fact {
	var list []fact
	for i := range s.Sums {
		list = append(list, s.Sums[i].fact(s.Over))
	}
	list = append(list, wrong(s)...)
	if p := s.Polls; p != nil {
		list = append(list,
			fact{"what polls", p.Way}, fact{"polls by consumers", number(p.Consumers)}, fact{"wake-ups asked of the device", number(p.Arms)},
			fact{"time spent on polls that found nothing", lasting(p.Spun).text}, fact{"times that consumers stopped polling", number(p.HandBacks)})
	}
	for _, e := range s.Ends {
		list = append(list, fact{fmt.Sprintf("ends: %s, %s %d", e.Event, e.Layer, e.Code), number(e.Count)})
	}
	return append(list, processFacts(&s.Process)...)
}

func total(list []ep.Moved) (octets uint64) {
	for _, m := range list {
		octets += m.Octets
	}
	return octets
}

func findStory(s *seen, name string) *story {
	for i := range s.Conns {
		if c := &s.Conns[i]; c.Name == name {
			t := storyOf(&c.Endpoint, s.At)
			t.Name, t.Is = name, c
			t.Facts = append([]fact{
				{"listener", c.Listener},
				{"depth", strconv.Itoa(c.Depth)},
				{"longest message", octets(uint64(c.Message))},
				{"unposted receives", strconv.Itoa(c.Missing)},
				{"buffers", poolText(&c.Buffers)},
			}, t.Facts...)
			return t
		}
	}
	for i := range s.Endpoints {
		if e := &s.Endpoints[i]; e.Name == name {
			return storyOf(e, s.At)
		}
	}
	for i := len(s.LastEnds) - 1; i >= 0; i-- {
		if e := &s.LastEnds[i]; endName(e) == name {
			return &story{Name: name, Is: e, Lines: e.Story, Facts: []fact{
				{"ended", ago(s.At.Sub(e.At)) + " ago: " + e.Event}, {"local", e.Local}, {"remote", e.Remote}, {"cause", causeText(e.Cause)},
			}}
		}
	}
	return nil
}

func storyOf(e *ep.EndpointSnapshot, at time.Time) *story {
	t := &story{Name: e.Name, Is: e, Lines: e.Story, Facts: []fact{
		{"endpoint", e.Name},
		{"state", e.State},
		{"local", e.Local},
		{"remote", e.Remote},
		{"made", ago(at.Sub(e.Made)) + " ago"},
		{"connected", since(at, e.Connected)},
		{"silent", silent(e.Silence)},
		{"requests", queueText(&e.Requests)},
		{"receives", queueText(&e.Receives)},
		dispatchersOf(e),
		{"shared receive queue", e.SRQ},
	}}
	t.Facts = append(append(t.Facts, ownedFacts(e.Owner)...), fact{"cause of the end", causeText(e.Cause)})
	for _, m := range e.Requests.Moved {
		t.Moved = append(t.Moved, moved{"requests", m})
	}
	for _, m := range e.Receives.Moved {
		t.Moved = append(t.Moved, moved{"receives", m})
	}
	return t
}

// poolText says how many buffers of a connection each owner has; nothing if it has no buffers.
func poolText(p *mem.PoolSnapshot) string {
	if p.Buffers == 0 {
		return ""
	}
	text := fmt.Sprintf("%d held by the program of %d%s; %d sending, %d posted as receives", p.Held, p.Buffers, heldText(p.HeldAge), p.Sending, p.Posted)
	if p.Waiting > 0 {
		text += "; " + wait(p.Waiting, "call") + " for one"
	}
	if len(p.Holders) > 0 {
		text += "; most were taken by " + p.Holders[0].Call
	}
	return text
}

// ownedFacts are what the owner of an endpoint says, such as a stream.
func ownedFacts(owner any) (list []fact) {
	if owner == nil {
		return nil
	}
	for _, f := range rowFields([]row{owner}) {
		list = append(list, fact{f.name, f.of(&owner).text})
	}
	return list
}

// dispatchersOf says where an endpoint's events go, once if all have one dispatcher.
func dispatchersOf(e *ep.EndpointSnapshot) fact {
	if e.Recv == e.Request && e.Recv == e.Conn {
		return fact{"dispatcher", e.Recv}
	}
	return fact{"dispatchers of receives, requests, connection", e.Recv + ", " + e.Request + ", " + e.Conn}
}

func since(at, then time.Time) string {
	if then.IsZero() {
		return "not yet"
	}
	return ago(at.Sub(then)) + " ago"
}

func silent(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return "the peer has not answered the device for " + ago(d)
}

func queueText(q *ep.QueueSnapshot) string {
	text := fmt.Sprintf("%d outstanding of %d, %s posted so far, %s failed, %s flushed", q.Outstanding, q.Depth, number(q.Posted), number(q.Failed), number(q.Flushed))
	if q.QuietAge > 0 {
		text += "; none has succeeded for " + ago(q.QuietAge)
	}
	if q.OldestAge > 0 {
		text += fmt.Sprintf("; the oldest for %s, cookie %#x", ago(q.OldestAge), q.OldestCookie)
	}
	return text
}
