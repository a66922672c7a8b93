package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"godat/bench/host"
	"godat/bench/page"
	"godat/bench/report"
)

// measurement measures one part of the page of results.
type measurement struct {
	c        *command
	progress io.Writer
	text     bytes.Buffer
	measured []*report.Report // of the lines that have a report; nil for one that failed
	failed   error
}

// measure runs the lines of a part, and returns its text.
func (m *measurement) measure(p part) string {
	began := time.Now()
	for _, line := range p.lines {
		start := time.Now()
		shown := "go run ./bench " + line
		fmt.Fprintf(m.progress, "%s: %s …", p.name, shown)
		err := m.run(line, shown)
		fmt.Fprintf(m.progress, " %v\n", time.Since(start).Round(time.Second))
		switch {
		case err == nil:
			continue
		case !errors.Is(err, errUnable): // which what was measured says itself
			fmt.Fprintf(&m.text, "`%s` failed: %v\n\n", shown, err)
		}
		fmt.Fprintf(m.progress, "%s: %v\n", shown, err)
		m.failed = errors.Join(m.failed, fmt.Errorf("%s: %w", shown, err))
	}
	head := "## " + p.title + "\n\n"
	if p.note != "" {
		head += p.note + "\n\n"
	}
	head += fmt.Sprintf("Measured in %v, on %s.\n\n", time.Since(began).Round(time.Second), host.Describe())
	return head + m.text.String()
}

// run runs a line, and writes its report, or what it prints.
func (m *measurement) run(line, shown string) error {
	words := strings.Fields(line)
	if words[0] == "idle" {
		var said bytes.Buffer
		err := m.c.again(append(m.c.turns(), words...), &said)
		m.quote(shown, said.String())
		return err
	}
	r, err := m.c.again.measured(append(m.c.turns(), words...))
	if err != nil {
		m.measured = append(m.measured, nil)
		return err
	}
	m.measured = append(m.measured, r)
	r.Command = shown
	var text bytes.Buffer
	r.WriteMarkdown(&text)
	m.include(text.String())
	if why := r.Unable(); why != "" {
		return fmt.Errorf("%w: %s", errUnable, why)
	}
	return nil
}

// writeHistograms writes the latencies of the reports that are about latencies to a file,
// unless there are none.
func (m *measurement) writeHistograms(name string) error {
	var reports []*report.Report
	for _, r := range m.measured {
		if r != nil && r.Kind != report.Bandwidth && r.Kind != report.Scale {
			reports = append(reports, r)
		}
	}
	if reports == nil {
		return nil
	}
	return writeFile(name, func(w io.Writer) error {
		for _, r := range reports {
			if err := r.WriteHistograms(w); err != nil {
				return err
			}
		}
		return nil
	})
}

// quote writes what a command has printed as it is.
func (m *measurement) quote(shown, said string) {
	fmt.Fprintf(&m.text, "`%s`\n\n", shown)
	if said = strings.TrimSpace(said); said != "" {
		fmt.Fprintf(&m.text, "```\n%s\n```\n\n", said)
	}
}

// include writes Markdown whose headings begin at the second level, which is the part's.
func (m *measurement) include(text string) {
	for line := range strings.Lines(strings.TrimSpace(text) + "\n\n") {
		if strings.HasPrefix(line, "##") {
			line = "#" + line
		}
		m.text.WriteString(line)
	}
}

// writeFigures writes the figures of the first two reports into README, if the machine could
// answer both.
func (m *measurement) writeFigures(readme string) error {
	if len(m.measured) < 2 || m.measured[0] == nil || m.measured[1] == nil {
		return errors.New("no figures for README: delivery or latency failed")
	}
	delivery, latency := m.measured[0], m.measured[1]
	for _, r := range []*report.Report{delivery, latency} {
		if why := r.Unable(); why != "" {
			return fmt.Errorf("README keeps its figures: %s: %w: %s", r.Kind, errUnable, why)
		}
	}
	told, left := report.Told(delivery, latency)
	omitted := ""
	if left != nil {
		omitted = "Left out, because this run does not say which of the two is more: " + strings.Join(left, "; ") + ".\n\n"
	}
	return figures.Replace(readme, fmt.Sprintf("%s\n\n%sA channel is `<-d.C()`. Polled is a loop around `d.Dequeue(buf)`, which keeps a processor busy. What a raw channel takes, too, is Go's wake-up of the consumer. Choose a channel where "+
		"messages come now and then; poll where the time matters more than a processor, or where one consumer must take more than a channel carries. The figures are medians over %d repeats. A difference or ratio is "+
		"the median of those of the same repeat, so it need not be that of the two medians; in brackets is its 95 %% interval. Two figures with a dash, or with counts of repeats, are where repeats lie that don't agree. "+
		"On `loop`, inside one process; net.Conn goes through the kernel's TCP. Measured on %s by `go run ./bench`, which answers for your machine. [bench/RESULTS.md](bench/RESULTS.md) has all tables, also over iwarp.\n",
		told.RenderMarkdown(), omitted, delivery.Repeats, delivery.Host))
}

// The lines between which README has its figures.
const (
	figuresBegin = "<!-- go run ./bench results writes the lines from here -->\n"
	figuresEnd   = "<!-- to here -->\n"
)

var figures = page.Marks{Begin: figuresBegin, End: figuresEnd}
