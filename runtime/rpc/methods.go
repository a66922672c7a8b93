package rpc

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"godat/evd"
)

const (
	// mostMethods is how many methods of an address have counts of their own. A client may name any number.
	mostMethods = 64
	others      = "others" // all that have none
)

// MethodSnapshot counts the calls of a method by all clients of an address, or the requests of all servers
// that had it, since the adapter was opened: also of those that are closed, so the counts only grow. A
// snapshot of the adapter has one for each as the report "rpc methods": of the methods that Config.Methods
// names, or else of the first 64 that the program has called, or has answered with more than CodeUnknown, and
// one, "others", of the rest.
type MethodSnapshot struct {
	Name    string // of the row: the method, the end and the address
	Method  string // as Config.Methods has it, or its number, or "others"
	Address string // the server's
	End     string // "client" or "server"
	Answered
	CallEnds
	Refused uint64 // of servers: with CodeDraining or CodeBusy
	// Latency is how long the calls took: of a client from the call to the answer, of a server from the
	// arrival of the request to its Reply or Fail. It has those that were made while requests were
	// measured (see [godat/runtime.IA.MeasureLatency]); nil if there are none.
	Latency *evd.HistogramSnapshot
}

// wrongNames says what is wrong with Config.Methods: which name would count several methods as one; empty if none.
func wrongNames(names map[uint16]string) string {
	of := make(map[string]uint16)
	for _, method := range slices.Sorted(maps.Keys(names)) {
		name := shownName(names[method])
		before, taken := of[name]
		switch {
		case name == "":
			return fmt.Sprintf("%d %q, which is no name", method, name)
		case name == others:
			return fmt.Sprintf("%d %q, which is the name of those that have none", method, name)
		case taken:
			return fmt.Sprintf("both %d and %d %q", before, method, name)
		}
		of[name] = method
	}
	return ""
}

// shownName is a name as rows have it.
func shownName(name string) string { return strings.ToValidUTF8(name, "?") }

// methodCounts are what a client or a server counts of a method. The data path adds without a lock.
type methodCounts struct {
	method uint16
	name   string
	answered
	ends    endCounts
	refused atomic.Uint64
	latency *evd.Histogram // has no memory before the first time
	takes   estimate       // how long a server's handler has a request, under Server.mu
}

// methods have the counts by method. Its methods may be called from any goroutine.
type methods struct {
	names  map[uint16]string // Config.Methods; nil: any method is learned
	table  atomic.Pointer[[]*methodCounts]
	others methodCounts

	mu sync.Mutex // held while the table grows
}

// init is called first, with Config.Methods.
func (m *methods) init(names map[uint16]string) {
	m.names, m.others.name, m.others.latency = names, others, evd.NewHistogram()
}

// of has the counts of a method, or those of others.
func (m *methods) of(method uint16) *methodCounts {
	if c := m.find(method); c != nil {
		return c
	}
	return &m.others
}

// find has the counts of a method that is known; nil if it is not. The table is short and sorted, so this
// needs no map.
func (m *methods) find(method uint16) *methodCounts {
	table := m.table.Load()
	if table == nil {
		return nil
	}
	i, known := slices.BinarySearchFunc(*table, method, compareMethod)
	if !known {
		return nil
	}
	return (*table)[i]
}

func compareMethod(c *methodCounts, method uint16) int { return cmp.Compare(c.method, method) }

// known is of, of a method that the program itself has named: its first call gives it counts of its own, if
// there are names, and places, for it.
func (m *methods) known(method uint16) *methodCounts {
	if c := m.find(method); c != nil {
		return c
	}
	return m.learn(method)
}

func (m *methods) learn(method uint16) *methodCounts {
	name, named := m.names[method]
	if m.names != nil && !named {
		return &m.others
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var table []*methodCounts
	if old := m.table.Load(); old != nil {
		table = *old
	}
	i, known := slices.BinarySearchFunc(table, method, compareMethod)
	switch {
	case known: // meanwhile
		return table[i]
	case len(table) >= mostMethods:
		return &m.others
	case !named:
		name = strconv.Itoa(int(method))
	}
	table = slices.Insert(slices.Clone(table), i, &methodCounts{method: method, name: shownName(name), latency: evd.NewHistogram()})
	m.table.Store(&table)
	return table[i]
}

// methodSum sums the counts of a method over clients or servers.
type methodSum struct {
	MethodSnapshot
	latency *evd.Histogram
}

// methodSums has the sums of an address, by the method's name.
type methodSums map[string]*methodSum

func (s methodSums) add(o *methodSum) {
	name := o.Method
	if s[name] == nil && len(s) >= mostMethods {
		name = others
	}
	if s[name] == nil {
		s[name] = &methodSum{MethodSnapshot{Method: name}, evd.NewHistogram()}
	}
	to := s[name]
	to.Answered.add(o.Answered)
	to.CallEnds.add(o.CallEnds)
	to.Refused += o.Refused
	to.latency.Add(o.latency)
}

// addTo adds what was counted.
func (m *methods) addTo(sums methodSums) {
	all := []*methodCounts{&m.others}
	if table := m.table.Load(); table != nil {
		all = append(slices.Clone(*table), all...)
	}
	for _, c := range all {
		now := MethodSnapshot{Method: c.name, Answered: c.answered.snapshot(), CallEnds: c.ends.snapshot(), Refused: c.refused.Load()}
		if now != (MethodSnapshot{Method: c.name}) {
			sums.add(&methodSum{now, c.latency})
		}
	}
}

// took notes how long a call took, while requests are measured.
func (c *methodCounts) took(d time.Duration) { c.latency.Record(d) }

// rows are the sums with their names, for an end and an address.
func (s methodSums) rows(end, address string) (list []MethodSnapshot) {
	of := end + " " + address
	if end == "client" {
		of = "client of " + address
	}
	for _, sum := range s {
		row := sum.MethodSnapshot
		row.Name, row.Address, row.End, row.Latency = "method "+row.Method+", "+of, address, end, sum.latency.Snapshot()
		if row.Method == others {
			row.Name = "other methods, " + of
		}
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b MethodSnapshot) int {
		return cmp.Or(cmp.Compare(len(a.Method), len(b.Method)), cmp.Compare(a.Method, b.Method))
	})
	return list
}
