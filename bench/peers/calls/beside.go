package calls

import (
	"context"
	"fmt"
	"strings"
	"time"

	"godat/bench/stats"
)

// beside is what small calls take alone, and beside large ones on the same connection.
type beside struct {
	kind    Kind // of the large calls
	longest time.Duration
	rows    []*small
}

// small are the small calls of a row.
type small struct {
	contender
	alone, beside figures
	large         []float64 // bytes in a second of the large calls
}

// figures are those of each repeat's small calls.
type figures struct {
	p50, p99, worst, calls []float64
}

func (f *figures) add(g called) {
	f.p50, f.p99 = append(f.p50, float64(g.P50)), append(f.p99, float64(g.P99))
	f.worst, f.calls = append(f.worst, float64(g.Max)), append(f.calls, float64(g.Calls))
}

const (
	largeCallers = 8
	smallSize    = 64
	enough       = 1000            // small calls of a turn
	besideTime   = 3 * time.Second // at most, of a turn
	pause        = 200 * time.Microsecond
)

// besides lets rows take turns: with small calls alone, and beside large ones.
func (s *study) besides(ctx context.Context, b *beside) error {
	plan := []group{{Kind: Kind{Size: smallSize}, Callers: 1, Pause: pause, Enough: enough}, {Kind: b.kind, Callers: largeCallers}}
	b.longest = min(besideTime, 10*s.Duration)
	var list []*contender
	defer func() { closeAll(list) }()
	for _, row := range s.rows {
		if strings.Contains(row.Name, s.Only) && (row.Name == overIWARP || row.Name == tunedGRPC) {
			r := &small{contender: contender{Row: row, watch: s.watch}}
			r.pair, r.refused = open(ctx, row, s.command, plan)
			b.rows, list = append(b.rows, r), append(list, &r.contender)
		}
	}
	for repeat := -1; repeat < min(s.Repeats, 7); repeat++ { // the first turns warm up
		for _, r := range b.rows {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if r.refused == nil {
				r.refused = r.turns(plan, b.longest, repeat >= 0)
			}
		}
	}
	return context.Cause(ctx)
}

// turns measures small calls alone, and beside.
func (r *small) turns(plan []group, longest time.Duration, counts bool) error {
	for _, p := range [][]group{plan[:1], plan} {
		disturbed := r.watch()
		t, err := r.pair.turn(p, longest)
		if err != nil {
			return err
		}
		if !counts {
			continue
		}
		r.rate = append(r.rate, 0) // a turn
		if disturbed(t.processor) {
			r.disturbed++
		}
		if len(p) == 1 {
			r.alone.add(t.groups[0])
			continue
		}
		r.beside.add(t.groups[0])
		g := t.groups[1]
		r.large = append(r.large, float64(g.Calls)*float64(p[1].Kind.Size)/g.Wall.Seconds())
	}
	return nil
}

// text is the table.
func (b *beside) text() string {
	var w strings.Builder
	fmt.Fprintf(&w, "### A small call beside %d callers of a %v\n\n", largeCallers, b.kind)
	fmt.Fprintf(&w, "A put of %s after another, with a pause of %v, alone and beside the others on one connection, by turns: %d calls a turn, or those of %v.\n\n", bytesText(smallSize), pause, enough, b.longest)
	w.WriteString("| | alone: p50 | p99 | beside: p50 | p99 | longest | p50, beside : alone | small calls a turn, beside | large calls |\n| --- | ---:| ---:| ---:| ---:| ---:| ---:| ---:| ---:|\n")
	for _, r := range b.rows {
		if r.refused != nil {
			fmt.Fprintf(&w, "| %s | refused: %v |\n", r.Name, r.refused)
			continue
		}
		worst := 0.0
		for _, v := range r.beside.worst {
			worst = max(worst, v)
		}
		fmt.Fprintf(&w, "| %s | %s | %s | %s | %s | %s | %s | %.0f | %.2f GB/s |\n", r.Name, duration(r.alone.p50), tail(r.alone.p99, r.alone.calls),
			duration(r.beside.p50), tail(r.beside.p99, r.beside.calls), show(worst),
			ratio(quotient(r.beside.p50, r.alone.p50)), stats.Of(r.beside.calls).Median, stats.Of(r.large).Median/1e9)
	}
	return w.String()
}
