package rpc

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	dat "godat/runtime"
)

// refusalRow counts the attempts of [Dial] that a server has refused since the adapter was opened, with what it
// said the last time. A snapshot of the adapter has one for each server that did, as the report "rpc refusals": of the
// first 256 addresses and one, "others", of the rest. A client that dials anew says itself why it has no connection.
type refusalRow struct {
	Server  string // its address
	Refused uint64
	Lately  uint64 // within the last minute
	Last    string // why
	LastAge time.Duration
}

// Trouble says how many attempts were refused within the last minute, and why.
func (s refusalRow) Trouble(time.Duration) string {
	if s.Lately == 0 {
		return ""
	}
	return fmt.Sprintf("%s: it refused %s within the last minute, the last %s ago; look at its page", s.Last, counted(s.Lately, "attempt"), lasting(s.LastAge))
}

// Connections is the server's address: attempts that have failed there are the same trouble.
func (s refusalRow) Connections() (address string, explained bool) {
	return s.Server, s.Lately > 0
}

// refusedDials are the refusals of an adapter. The zero value has none.
type refusedDials struct {
	report sync.Once

	mu sync.Mutex
	of map[string]*refusedBy
}

// refusedBy is a server that has refused attempts.
type refusedBy struct {
	refusalRow
	lately lately
	at     time.Time
}

// note counts an attempt that a server has refused.
func (r *refusedDials) note(ia *dat.IA, address, why string) {
	r.report.Do(func() { _, _ = ia.Report("rpc refusals", r.rows) }) // fails when the adapter is closed
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[string]*refusedBy)
	}
	if r.of[address] == nil && len(r.of) >= mostAddresses {
		address = others
	}
	by := r.of[address]
	if by == nil {
		by = &refusedBy{refusalRow: refusalRow{Server: address}}
		r.of[address] = by
	}
	by.Refused++
	by.Last, by.at = why, time.Now()
	by.lately.count(kindRefused, "")
}

// rows is the report "rpc refusals".
func (r *refusedDials) rows() (rows []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, address := range slices.Sorted(maps.Keys(r.of)) {
		by := r.of[address]
		row := by.refusalRow
		row.Lately, row.LastAge = by.lately.snapshot(0).Refused, time.Since(by.at)
		rows = append(rows, row)
	}
	return rows
}

// noteRefusal counts an attempt of Dial's that the server has refused in words.
func (c *Client) noteRefusal(err error) {
	rejected, ok := errors.AsType[*turnedAway](err)
	if !ok || c.unlist != nil {
		return
	}
	if t, err := totalsFor(c.ia); err == nil {
		t.refused.note(c.ia, c.address, saidBy(rejected))
	}
}

// saidBy says why a server refuses a connection.
func saidBy(rejected *turnedAway) string {
	if said, ok := errors.AsType[*Error](rejected.means); ok && said.Code == CodeFull {
		return "the server has no place for another connection (its Config.Conns, or its host has no more memory or queue pairs)"
	}
	return reasonOf(rejected)
}
