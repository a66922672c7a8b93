package rpc

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"sync"
	"weak"

	dat "godat/runtime"
)

// mostAddresses is how many addresses an adapter has totals of, for clients and for servers. Further
// ones have one in common.
const mostAddresses = 256

// TotalSnapshot counts the calls of all clients of an address, or of all servers that had it, since the
// adapter was opened: also of those that are closed, so the counts only grow. A snapshot of the adapter
// has one for each, as the report "rpc totals": of the first 256 addresses and one, "others", of the rest.
type TotalSnapshot struct {
	Address string // the server's
	End     string // "client" or "server"
	Answered
	CallEnds
	Refused    uint64 // of servers: with CodeDraining or CodeBusy
	Reconnects uint64 // of clients
}

func (t *TotalSnapshot) add(o TotalSnapshot) {
	t.Answers += o.Answers
	t.Failures += o.Failures
	t.Late += o.Late
	t.Left += o.Left
	t.Lost += o.Lost
	t.Refused += o.Refused
	t.Reconnects += o.Reconnects
}

// totals are those of an adapter.
type totals struct {
	mu sync.Mutex
	of map[totalOf]*total

	refused refusedDials
}

type totalOf struct{ end, address string }

// total is of an address. Those that are closed have left what they counted in past.
type total struct {
	past    TotalSnapshot
	live    map[any]func() TotalSnapshot
	methods methodSums       // of those that are closed
	counts  map[any]*methods // of the others
}

// totalsOf finds the totals of an adapter, and holds neither: the adapter's reports hold its totals, which
// hold the clients and servers that are not closed, and these their adapter.
var (
	totalsMu sync.Mutex
	totalsOf = make(map[weak.Pointer[dat.IA]]weak.Pointer[totals])
)

// totalsFor are the totals of an adapter, which reports them from then on.
func totalsFor(ia *dat.IA) (*totals, error) {
	totalsMu.Lock()
	defer totalsMu.Unlock()
	key := weak.Make(ia)
	if t := totalsOf[key].Value(); t != nil {
		return t, nil
	}
	t := &totals{of: make(map[totalOf]*total)}
	for kind, rows := range map[string]func() []any{"rpc totals": t.rows, "rpc methods": t.methodRows} {
		if _, err := ia.Report(kind, rows); err != nil {
			return nil, err
		}
	}
	totalsOf[key] = weak.Make(t)
	runtime.AddCleanup(ia, func(key weak.Pointer[dat.IA]) {
		totalsMu.Lock()
		defer totalsMu.Unlock()
		delete(totalsOf, key)
	}, key)
	return t, nil
}

// join counts an end, a client or a server, until leave is called.
func (t *totals) join(of totalOf, who any, now func() TotalSnapshot, by *methods) (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[of] == nil && len(t.of) >= mostAddresses {
		of.address = "others"
	}
	if t.of[of] == nil {
		t.of[of] = &total{
			past: TotalSnapshot{Address: of.address, End: of.end}, live: make(map[any]func() TotalSnapshot),
			methods: make(methodSums), counts: make(map[any]*methods),
		}
	}
	all := t.of[of]
	all.live[who], all.counts[who] = now, by
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if all.live[who] != nil { // it may be closed again
			all.past.add(now())
			by.addTo(all.methods)
			delete(all.live, who)
			delete(all.counts, who)
		}
	}
}

// rows is the report "rpc totals".
func (t *totals) rows() (rows []any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []TotalSnapshot
	for _, all := range t.of {
		sum := all.past
		for _, now := range all.live {
			sum.add(now())
		}
		list = append(list, sum)
	}
	slices.SortFunc(list, func(a, b TotalSnapshot) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.End, b.End))
	})
	for _, sum := range list {
		rows = append(rows, sum)
	}
	return rows
}

// methodRows is the report "rpc methods".
func (t *totals) methodRows() (rows []any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range slices.SortedFunc(maps.Keys(t.of), func(a, b totalOf) int {
		return cmp.Or(cmp.Compare(a.address, b.address), cmp.Compare(a.end, b.end))
	}) {
		all, sums := t.of[of], make(methodSums)
		for _, past := range all.methods {
			sums.add(past)
		}
		for _, live := range all.counts {
			live.addTo(sums)
		}
		for _, row := range sums.rows(of.end, of.address) {
			rows = append(rows, row)
		}
	}
	return rows
}

// joinTotals lets the client count in its adapter's totals.
func (c *Client) joinTotals() error {
	t, err := totalsFor(c.ia)
	if err == nil {
		c.leaveTotals = t.join(totalOf{"client", c.address}, c, func() TotalSnapshot {
			c.mu.Lock()
			defer c.mu.Unlock()
			return TotalSnapshot{Answered: c.answered.snapshot(), CallEnds: c.ends.snapshot(), Reconnects: c.reconnects}
		}, &c.methods)
	}
	return err
}

// joinTotals lets the server count in its adapter's totals.
func (s *Server) joinTotals() error {
	t, err := totalsFor(s.ia)
	if err == nil {
		s.leaveTotals = t.join(totalOf{"server", s.Addr()}, s, func() TotalSnapshot {
			s.mu.Lock()
			defer s.mu.Unlock()
			return TotalSnapshot{Answered: s.answered.snapshot(), CallEnds: s.ends.snapshot(), Refused: s.refused}
		}, &s.methods)
	}
	return err
}
