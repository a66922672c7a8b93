package storage

import (
	"fmt"
	"math"
	"strings"
	"time"

	"godat/bench/stats"
)

// micro shows nanoseconds in microseconds, with three digits.
func micro(ns float64) string {
	switch us := ns / 1e3; {
	case math.IsNaN(us) || us < 0:
		return "–"
	case us >= 100:
		return fmt.Sprintf("%.0f", us)
	case us >= 10:
		return fmt.Sprintf("%.1f", us)
	default:
		return fmt.Sprintf("%.2f", us)
	}
}

// shown shows a median with its interval.
func shown(values []float64, show func(float64) string) string {
	return stats.Of(values).Shown(show)
}

// thousands shows a rate.
func thousands(v float64) string { return fmt.Sprintf("%.1fk", v/1e3) }

// table is the text of a place's loads of one kind.
func (s *Study) table(p Place, guesses []guess, l Load) string {
	var w strings.Builder
	fmt.Fprintf(&w, "#### %v\n\n", l)
	w.WriteString("| row | IOPS | IOPS per core | p50, µs | p99 | p99.9 | p50 from its beginning | processor per IO, µs | of the target : the host | switches per IO | expected: p50, processor | lag p50, p99 | pacing, cores |\n")
	w.WriteString("| --- |" + strings.Repeat(" ---:|", 12) + "\n")
	for _, r := range s.rows {
		c := s.at[key{p, r.Name, l}]
		switch {
		case c == nil:
		case c.refused != nil:
			fmt.Fprintf(&w, "| %s | refused: %v |\n", r.Name, c.refused)
		default:
			w.WriteString(c.line(guesses))
		}
	}
	return w.String() + "\n"
}

// line is the cell's line in a table.
func (c *cell) line(guesses []guess) string {
	var w strings.Builder
	fmt.Fprintf(&w, "| %s | %s |", c.row, shown(c.iops(), thousands))
	processor, split, switches, perCore := "–", "–", "–", "–"
	if c.known() {
		used := c.processor()
		processor, split = shown(used, micro), c.split()
		perCore = shown(c.each(func(s *sample) float64 { return float64(s.Count) / max(1e-9, s.used().Seconds()) }), thousands)
		switches = fmt.Sprintf("%.2f", median(c.each(func(s *sample) float64 { return float64(s.Switches) / float64(max(1, s.Count)) })))
	}
	p50, p99, p999 := "behind", "–", "–"
	if !c.saturated() {
		p50, p99 = shown(c.p50(), micro), c.tail(99)
		p999 = c.tail(99.9)
		if n := c.behind(); n > 0 {
			p50 += fmt.Sprintf(", %d behind", n)
		}
	}
	fmt.Fprintf(&w, " %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", perCore, p50, p99, p999, micro(median(c.own())), processor, split, switches, c.expected(guesses),
		c.lag(), fmt.Sprintf("%.2f", median(c.each(func(s *sample) float64 { return s.Pacing.Seconds() / max(1e-9, s.Took.Seconds()) }))))
	return w.String()
}

// tail is a percentile of all turns together, if there are commands enough for it.
func (c *cell) tail(percent float64) string {
	if float64(c.latency.TotalCount())*(1-percent/100) < 10 {
		return "–"
	}
	return micro(float64(c.latency.ValueAtQuantile(percent)))
}

// split is how the processor time is divided between the ends.
func (c *cell) split() string {
	if c.place.OneProcess() {
		return "one process"
	}
	part := func(f func(*sample) time.Duration) float64 {
		return median(c.each(func(s *sample) float64 { return float64(f(s)) / float64(max(1, s.Count)) }))
	}
	return micro(part(func(s *sample) time.Duration { return s.Target })) + " : " + micro(part(func(s *sample) time.Duration { return s.Host }))
}

func (c *cell) lag() string {
	if !c.load.Rate.Open() {
		return "–"
	}
	return micro(median(c.each(func(s *sample) float64 { return float64(s.LagP50) }))) + ", " + micro(median(c.each(func(s *sample) float64 { return float64(s.LagP99) })))
}

// expected is the cell's guess, with what of it was missed.
func (c *cell) expected(guesses []guess) string {
	g, ok := guessOf(guesses, c.key)
	if !ok {
		return "none"
	}
	p50, processor := micro(g.p50()), micro(g.processor())
	if c.saturated() || !met(g.p50(), median(c.p50())) {
		p50 += " missed"
	}
	if c.known() && !met(g.processor(), median(c.processor())) {
		processor += " missed"
	}
	return p50 + ", " + processor
}

// idleTable is what rows take at a place while nothing is asked for.
func (s *Study) idleTable(p Place, guesses []guess) string {
	var w strings.Builder
	w.WriteString("#### idle, connected\n\n| row | processor, % of a core | switches/s | expected, % |\n| --- | ---:| ---:| ---:|\n")
	for _, r := range s.rows {
		c := s.at[key{p, r.Name, Load{Idle: true}}]
		switch {
		case c == nil:
			continue
		case c.refused != nil:
			fmt.Fprintf(&w, "| %s | refused: %v |\n", r.Name, c.refused)
			continue
		case !c.known():
			fmt.Fprintf(&w, "| %s | – | – | – |\n", r.Name)
			continue
		}
		used := c.share()
		expected := "none"
		if g, ok := guessOf(guesses, c.key); ok {
			expected = fmt.Sprintf("%.3g", g.idle())
			if !met(g.idle(), median(used)) {
				expected += " missed"
			}
		}
		fmt.Fprintf(&w, "| %s | %s | %.0f | %s |\n", r.Name, shown(used, func(v float64) string { return fmt.Sprintf("%.3g", v) }),
			median(c.each(func(s *sample) float64 { return float64(s.Switches) / s.Took.Seconds() })), expected)
	}
	return w.String() + "\n"
}
