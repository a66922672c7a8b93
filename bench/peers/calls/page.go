package calls

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	pages "godat/bench/page"
	"godat/bench/stats"
)

// page is what a study has measured.
type page struct {
	machine string
	study   *study
	tables  []table
	besides []beside
}

// show shows nanoseconds with three digits.
func show(ns float64) string {
	if ns < 0 {
		return "–"
	}
	digits := time.Duration(1)
	for 1000*digits <= time.Duration(ns) {
		digits *= 10
	}
	return time.Duration(ns).Round(digits).String()
}

func duration(values []float64) string { return stats.Of(values).Shown(show) }

// tail shows a 99th percentile, if a turn has calls enough to have one.
func tail(p99, calls []float64) string {
	if stats.Of(calls).Median < 300 {
		return "–"
	}
	return duration(p99)
}

func ratio(e stats.Estimate) string {
	return e.Shown(func(v float64) string { return fmt.Sprintf("%.2f", v) })
}

// quotient estimates a figure divided by another.
func quotient(a, b []float64) stats.Estimate { return stats.Of(stats.Ratios(a, b)) }

// of finds a row that has figures.
func (t *table) of(name string) *contender {
	for _, c := range t.contenders {
		if c.Name == name && c.refused == nil {
			return c
		}
	}
	return nil
}

// text is the table of a kind of call.
func (t *table) text(s *study) string {
	var w strings.Builder
	fmt.Fprintf(&w, "### A %v, %d callers\n\n| | processor time | rpc over iwarp : this | calls/s | rpc over iwarp : this | p50 | p99 |\n| --- | ---:| ---:| ---:| ---:| ---:| ---:|\n", t.kind, s.Callers)
	ours := t.of(overIWARP)
	for _, c := range t.contenders {
		if c.refused != nil {
			fmt.Fprintf(&w, "| %s | refused: %v |\n", c.Name, c.refused)
			continue
		}
		processor, rates := "–", "–"
		if ours != nil && ours != c {
			processor, rates = ratio(quotient(ours.processor, c.processor)), ratio(quotient(ours.rate, c.rate))
		}
		rate := stats.Of(c.rate)
		fmt.Fprintf(&w, "| %s | %s | %s | %.0f (%.0f–%.0f) | %s | %s | %s |\n", c.Name, duration(c.processor), processor,
			rate.Median, rate.Low, rate.High, rates, duration(c.p50), tail(c.p99, c.calls))
	}
	return w.String()
}

// rivals are the rows with which the summary compares, those that are tuned first.
var rivals = []string{tunedGRPC, onNet, plainHTTP, "gRPC, as it comes", "net/rpc"}

// ratios are those of the processor time and of the rate of calls over iwarp to another row's; ok is false
// where one of the two was not measured.
func (t *table) ratios(name string) (processor, rate stats.Estimate, ok bool) {
	a, b := t.of(overIWARP), t.of(name)
	if a == nil || b == nil {
		return processor, rate, false
	}
	return quotient(a.processor, b.processor), quotient(a.rate, b.rate), true
}

// grid writes a table with a row for each kind of call, and a column for each rival.
func (p *page) grid(names []string, cell func(processor, rate stats.Estimate) string) string {
	var w strings.Builder
	w.WriteString("| |")
	for _, name := range names {
		fmt.Fprintf(&w, " %s |", name)
	}
	w.WriteString("\n| --- |" + strings.Repeat(" ---:|", len(names)) + "\n")
	for i := range p.tables {
		fmt.Fprintf(&w, "| %v |", p.tables[i].kind)
		for _, name := range names {
			text := "–"
			if processor, rate, ok := p.tables[i].ratios(name); ok {
				text = cell(processor, rate)
			}
			fmt.Fprintf(&w, " %s |", text)
		}
		w.WriteString("\n")
	}
	return w.String()
}

// summary is a table of ratios, and what follows from it.
func (p *page) summary() string {
	var w strings.Builder
	fmt.Fprintf(&w, "Processor time of a call over iwarp with registered memory, of both ends, divided by the other's. Behind it the rate, divided by the other's. %d callers. "+
		"Each figure is the median of the ratios of %d repeats; in brackets is its 95 %% interval.\n\n", p.study.Callers, p.study.Repeats)
	w.WriteString(p.grid(rivals, func(processor, rate stats.Estimate) string {
		return fmt.Sprintf("%s; %.2f", ratio(processor), rate.Median)
	}))
	w.WriteString(p.shared() + p.conclusion())
	return w.String()
}

// shared is a table of small calls that share a connection with large ones; it is empty if none were measured.
func (p *page) shared() string {
	var rows strings.Builder
	for _, b := range p.besides {
		for _, r := range b.rows {
			if r.refused == nil {
				fmt.Fprintf(&rows, "| %s, beside a %v | %s | %s | %s | %s |\n", r.Name, b.kind, show(stats.Of(r.alone.p50).Median), show(stats.Of(r.beside.p50).Median),
					ratio(quotient(r.beside.p50, r.alone.p50)), tail(r.beside.p99, r.beside.calls))
			}
		}
	}
	if rows.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("\n**Small calls that share a connection with large ones.** One caller puts %s again and again, while %d callers make large calls on the same connection. "+
		"The table has the median latency of the small calls, alone and beside the large ones, and its 99th percentile beside them.\n\n"+
		"| small calls of | alone | beside | beside : alone | 99th percentile, beside |\n| --- | ---:| ---:| ---:| ---:|\n%s", bytesText(smallSize), largeCallers, &rows)
}

// advice says how to read a ratio of processor time.
const advice = "If the interval includes 1, this run found no difference; if it lies above 1, the other takes less."

// conclusion says for which calls to take something else.
func (p *page) conclusion() string {
	var w strings.Builder
	w.WriteString("\n**When to take something else.** iwarp is software over TCP, so TCP is its floor. " + advice + " Every machine and every language has TCP: " +
		"beside what takes no more, take this package only for memory that a peer reads and writes, or for an adapter that does in hardware what iwarp does in software. A call over iwarp takes\n\n")
	for _, name := range rivals[:3] {
		more, equal, less := p.sides(name)
		fmt.Fprintf(&w, "- beside %s: more for %s; equal, as far as the interval tells, for %s; less for %s.\n", name, orNone(more), orNone(equal), orNone(less))
	}
	w.WriteString("\nThe plain server is the floor: it does for one program what a library can't do for all.\n")
	return w.String()
}

// sides sorts kinds of calls by whether those over iwarp take more processor time than another row's,
// or less, or neither is told.
func (p *page) sides(name string) (more, equal, less []string) {
	for i := range p.tables {
		e, _, ok := p.tables[i].ratios(name)
		if !ok {
			continue
		}
		text := fmt.Sprintf("%v (%.2f)", p.tables[i].kind, e.Median)
		switch {
		case e.Low > 1:
			more = append(more, text)
		case e.High < 1:
			less = append(less, text)
		default:
			equal = append(equal, text)
		}
	}
	return more, equal, less
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// quoted is what the project's README.md says.
func (p *page) quoted() string {
	text := fmt.Sprintf("Processor time of a call over iwarp, as a multiple of what the software that heads the column takes for the same call (`go run ./bench rpc`: both ends, two processes, memory registered once, %d callers). A put of 64 KiB sends that much with its request, and a get receives it with its answer. "+
		"Each figure is the median of the ratios of %d repeats; in brackets is its 95 %% interval.\n\n", p.study.Callers, p.study.Repeats)
	text += p.grid([]string{tunedGRPC, plainHTTP}, func(processor, _ stats.Estimate) string { return ratio(processor) })
	text += "\n" + advice
	switch more, equal, less := p.sides(onNet); {
	case len(more) > 0 && len(equal)+len(less) == 0:
		text += " A plain server on package net takes less for each of these calls."
	case len(more) > 0:
		text += " A plain server on package net takes less for " + strings.Join(more, ", ") + "."
	}
	return text + " [bench/CALLS.md](bench/CALLS.md) says for which calls to take something else."
}

// each calls f for each row of each kind of call.
func (p *page) each(f func(k Kind, c *contender)) {
	for _, t := range p.tables {
		for _, c := range t.contenders {
			f(t.kind, c)
		}
	}
	for _, b := range p.besides {
		for _, r := range b.rows {
			f(b.kind, &r.contender)
		}
	}
}

// turns counts those that were measured, and those during which other programs used the processors.
func (p *page) turns() (all, disturbed int) {
	p.each(func(_ Kind, c *contender) { all, disturbed = all+len(c.rate), disturbed+c.disturbed })
	return all, disturbed
}

func (p *page) machineText() string {
	all, disturbed := p.turns()
	return fmt.Sprintf("%s\n%d repeats of %v, GOMAXPROCS=%d in each process. During %d of %d turns other programs used over a quarter of the processors.\n",
		p.machine, p.study.Repeats, p.study.Duration, runtime.GOMAXPROCS(0), disturbed, all)
}

// busy is an error if the machine was.
func (p *page) busy() error {
	if all, disturbed := p.turns(); 2*disturbed > all {
		return ErrBusy
	}
	return nil
}

// refused is an error if rows were refused.
func (p *page) refused() (err error) {
	p.each(func(k Kind, c *contender) {
		if c.refused != nil {
			err = errors.Join(err, fmt.Errorf("%s, %v: %w", c.Name, k, c.refused))
		}
	})
	return err
}

// String is the page.
func (p *page) String() string {
	var w strings.Builder
	w.WriteString("# Calls\n\n`go run ./bench rpc --write` writes this page, and the marked lines of the pages that quote it. Each row has a client and a server, in two processes on the loopback, and all rows take turns.\n" +
		"Processor time is that of both processes (getrusage), by call. A put has a request of that length and an answer of 8 bytes; a get has the answer. Each call has a deadline of " + limit.String() +
		", where the row has deadlines.\nAfter each turn a row proves what it ran: the calls, bytes and deadlines that both ends have counted are equal, and are those of its name. The answer to a put is that of its call, and the answer to a get has its length, and its bytes where they are looked at.\n\n")
	w.WriteString(p.machineText() + "\n## What it says\n\n" + p.summary() + "\n## Tables\n\nA median and its interval of 95 % over the repeats; the ratios are of the same repeat. A row has a p99 if a turn has 300 calls.\n\n")
	for i := range p.tables {
		w.WriteString(p.tables[i].text(p.study) + "\n")
	}
	for i := range p.besides {
		w.WriteString(p.besides[i].text() + "\n")
	}
	w.WriteString("## The rows\n\n")
	for _, row := range p.study.rows {
		fmt.Fprintf(&w, "- **%s**: %s.\n", row.Name, row.Options)
	}
	return w.String()
}

// The lines around what is written into other pages.
const (
	linesBegin = "<!-- go run ./bench rpc --write writes the lines from here -->\n"
	linesEnd   = "<!-- to here -->"
)

var marks = pages.Marks{Begin: linesBegin, End: linesEnd}

// quoting are the pages that quote a folder's page: its README.md, and the one above it.
func quoting(folder string) (below, above string) {
	return filepath.Join(folder, "README.md"), filepath.Join(folder, "..", "README.md")
}

// writable is an error if a page that quotes a folder's page could not be rewritten.
func writable(folder string) error {
	below, above := quoting(folder)
	return errors.Join(pages.Writable(folder), marks.Quotable(below), marks.Quotable(above))
}

// writeAll writes the page in a folder, the summary into its README.md, and the quoted part into the
// README.md above it. Figures that are not all measured, or that mean nothing, replace none.
func (p *page) writeAll(folder string) error {
	if folder == "" {
		return nil
	}
	if why := errors.Join(p.refused(), p.busy()); why != nil {
		return fmt.Errorf("the pages in %s stay as they are: %w", folder, why)
	}
	below, above := quoting(folder)
	return errors.Join(
		pages.WriteText(filepath.Join(folder, "CALLS.md"), p.String()),
		marks.Quote(below, p.summary()+"\n[CALLS.md](CALLS.md) has the machine, the latencies, and what each row sets.\n"),
		marks.Quote(above, p.quoted()+"\n"))
}
