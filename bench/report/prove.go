package report

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"godat/bench/load"
)

// Prove compares what each row says of itself with what ran. A row that says something else,
// or whose lane told nothing, is an error: its figures would be another row's.
func (r *Report) Prove() error {
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Refused != "" && row.Ran == nil { // nothing has run
			continue
		}
		if err := row.prove(r.Kind); err != nil {
			return fmt.Errorf("the row %q of %s, %s, %d bytes, is not what ran: %w", row.Name, r.Kind, inWords(row.Rate), row.Size, err)
		}
	}
	return nil
}

// Unproven reports whether no row tells what ran, though some have figures of this program's: the
// program that wrote the report was older than the proof.
func (r *Report) Unproven() bool {
	figures := false
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Ran != nil || row.Offered != nil {
			return false
		}
		figures = figures || row.Refused == "" && !row.Elsewhere
	}
	return figures
}

func (r *Row) prove(kind Kind) error {
	checks := []func() error{r.proveRate, r.proveOffered}
	if !r.Elsewhere {
		if r.Ran == nil || r.Offered == nil {
			return errors.New("its lane tells nothing of what it ran")
		}
		checks = append(checks, func() error { return r.proveLoop(kind) }, r.proveMessages, r.proveAdapter)
	}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// proveLoop compares the row's name with the loop that ran, at both ends of round trips.
func (r *Row) proveLoop(kind Kind) error {
	loop := r.Ran.Loop
	switch {
	case kind == Connect && !r.Anchor: // whose rows are named by the adapter
		loop = r.Ran.Provider
	case kind == Peers && !r.Anchor:
		loop += " over " + r.Ran.Provider
	}
	if loop != r.Name {
		return fmt.Errorf("the loop that ran is %q", loop)
	}
	if (kind == Latency || r.Ran.Far != "") && r.Ran.Far != r.Ran.Loop {
		return fmt.Errorf("the loop at the other end is %q, and %q at this one", r.Ran.Far, r.Ran.Loop)
	}
	return nil
}

// proveMessages compares the size, and the connections that the messages took. Anchors
// that carry an event alone have no size.
func (r *Row) proveMessages() error {
	if r.Ran.Size != r.Size && (r.Ran.Size != 0 || !r.Anchor) {
		return fmt.Errorf("its messages had %d bytes", r.Ran.Size)
	}
	if conns := max(r.Conns, 1); r.Ran.Conns != conns {
		return fmt.Errorf("%d connections carried its %d messages, not %d: a longer --duration reaches more", r.Ran.Conns, r.Ran.Messages, conns)
	}
	return nil
}

// proveAdapter compares the adapter, and how it was opened.
func (r *Row) proveAdapter() error {
	if r.Ran.Provider != r.Provider {
		return fmt.Errorf("its adapter was %q, not %q", r.Ran.Provider, r.Provider)
	}
	if !maps.Equal(r.Ran.Params, r.Params) {
		return fmt.Errorf("its adapter was opened with the parameters %v, not %v", r.Ran.Params, r.Params)
	}
	if want := r.Params["crc"] != "false"; r.Ran.CRC != nil && *r.Ran.CRC != want {
		return fmt.Errorf("the ends agreed on CRCs: %v, and --param asks for %v: give it to both ends", *r.Ran.CRC, want)
	}
	return nil
}

// proveOffered compares who posted, and how many messages were outstanding.
func (r *Row) proveOffered() error {
	if r.Offered == nil {
		return nil
	}
	producers, least := max(r.Producers, 1), 1
	room := r.Depth / producers * producers // each has an equal part
	if r.Rate == load.Closed {
		producers, least = 0, r.Depth
	}
	if r.Offered.Producers != producers {
		return fmt.Errorf("%d goroutines beside the consumer posted, not %d", r.Offered.Producers, producers)
	}
	if n := r.Offered.Outstanding; n > r.Depth || n < least {
		return fmt.Errorf("%d messages were outstanding, not %d", n, r.Depth)
	}
	if n := r.Offered.Room; n != 0 && n != room {
		return fmt.Errorf("%d messages had room, not %d", n, room)
	}
	return nil
}

// proveRate compares the rate with what each repeat has taken. A row that took less than
// was offered is saturated, and says so.
func (r *Row) proveRate() error {
	if !r.Rate.Open() {
		return nil
	}
	for _, s := range r.Samples {
		most := 1.05*float64(r.Rate)*s.Took.Seconds() + 1
		if !s.Dropped && float64(s.Count) > most {
			return fmt.Errorf("%d messages were taken in %v", s.Count, s.Took.Round(time.Microsecond))
		}
	}
	return nil
}

// leastCores is what a consumer that polls uses at least: it never rests.
const leastCores = 0.9

// Idle says why a consumer that polls can't have polled all the time; it is empty if it may
// have, or is none.
func (r *Row) Idle() string {
	if r.Ran == nil || !r.Ran.Spins || !r.Rate.Open() || r.Saturated || r.Cores.Repeats == 0 || r.Cores.Median >= leastCores {
		return ""
	}
	return fmt.Sprintf("a consumer that polls uses a processor, and this one had %.2f of it: other programs had the rest, or it did not poll", r.Cores.Median)
}
