package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"godat/bench/host"
	"godat/bench/lane"
	"godat/bench/load"
	"godat/bench/mode"
	"godat/bench/page"
	"godat/bench/report"
	"godat/bench/trial"
)

// adapterFlags say which adapter is opened, and how.
type adapterFlags struct {
	Provider string            `help:"The interface adapter: loop, iwarp or iwarp:ADDRESS, ibv or ibv:DEVICE, or any name that is opened (default loop; of serve and dial iwarp)."`
	Param    map[string]string `help:"A parameter of the provider, such as crc=false of iwarp. May be given several times." placeholder:"KEY=VALUE"`
}

// config is a lane's, on the adapter; usual is the provider unless the flags say another.
func (f adapterFlags) config(usual string) lane.Config {
	return lane.Config{Provider: or(f.Provider, usual), Params: f.Param}
}

// loadFlags say what is measured, and how it is shown.
type loadFlags struct {
	adapterFlags
	Mode  []mode.Mode `help:"Ways of delivery: poll, wait, channel, batch, per-request, callback, iterator." default:"poll,wait,channel,batch,per-request,callback,iterator"`
	Size  []int       `help:"Bytes of a message (default 64; of bandwidth 4 KiB, 64 KiB and 1 MiB)." placeholder:"BYTES"`
	Depth []int       `help:"Messages outstanding at most, in equal parts by all producers (default 1 in closed loop and 64 otherwise)."`
	Rate  []load.Rate `help:"Loads: closed, max, or messages a second in open loop, as in 10k (default closed,10k,100k,1M,max; of bandwidth max; of others closed)."`
	output
}

// output says how results are shown.
type output struct {
	Format string `help:"table, markdown, json or benchstat." enum:"table,markdown,json,benchstat" default:"table"`

	Histograms string `help:"Write the latencies of each repeat to this file, too, as HdrHistogram's log." placeholder:"report.hlog"`
}

// opener makes a lane of the library's.
type opener func(lane.Config) (lane.Lane, error)

// study is what one command measures.
type study struct {
	kind      report.Kind
	provider  string // unless the flags say another
	open      opener
	anchors   []lane.Anchor
	conns     []int // of the library's lanes
	producers []int
	sizes     []int // unless the flags say others
	rates     []load.Rate
}

// run measures all that the flags and the study say.
func (f *loadFlags) run(c *command, out io.Writer, s study) error {
	if len(f.Size) > 0 {
		s.sizes = f.Size
	}
	if len(f.Rate) > 0 {
		s.rates = f.Rate
	}
	if err := f.check(s); err != nil {
		return err
	}
	var entries []trial.Entry
	for _, size := range s.sizes {
		for _, rate := range s.rates {
			for _, depth := range f.depths(rate) {
				for _, conns := range s.conns {
					for _, producers := range s.producers {
						cfg := f.config(s.provider)
						cfg.Size, cfg.Depth, cfg.Conns, cfg.Producers = size, depth, conns, producers
						entries = append(entries, f.entries(s, cfg, rate)...)
					}
				}
			}
		}
	}
	return f.measure(c, out, s.kind, entries)
}

func (f *loadFlags) check(s study) error {
	for _, size := range s.sizes {
		if size < 1 || size > 1<<30 {
			return misusedf("a message of %d bytes: from 1 to 1 GiB", size)
		}
	}
	for _, depth := range f.Depth {
		if depth < 1 || depth > 1<<16 {
			return misusedf("%d messages outstanding: from 1 to 65536", depth)
		}
	}
	for _, producers := range s.producers {
		if producers < 1 || producers > lane.MaxProducers {
			return misusedf("%d producers: from 1 to %d", producers, lane.MaxProducers)
		}
	}
	return errors.Join(twice("mode", f.Mode), twice("size", s.sizes), twice("depth", f.Depth), twice("rate", s.rates),
		twice("connections", s.conns), twice("producers", s.producers))
}

// depths are the flags', or one for the rate. One message at a time shows what a message
// costs; more would wait for each other in closed loop. Other loads need room for what
// a consumer that was held up has not taken yet.
func (f *loadFlags) depths(rate load.Rate) []int {
	switch {
	case len(f.Depth) > 0:
		return f.Depth
	case rate == load.Closed:
		return []int{1}
	}
	return []int{64}
}

// entries are all lanes under one load.
func (f *loadFlags) entries(s study, cfg lane.Config, rate load.Rate) (list []trial.Entry) {
	add := func(row report.Row, open func() (lane.Lane, error)) {
		row.Size, row.Depth, row.Conns, row.Producers, row.Rate = cfg.Size, cfg.Depth, cfg.Conns, cfg.Producers, rate
		list = append(list, trial.Entry{Row: row, Key: fmt.Sprint(row.Name, " ", row.Size, row.Depth, row.Conns, row.Producers), Open: open})
	}
	for _, m := range f.Mode {
		cfg := cfg.In(m) // of this row alone: its lane is opened later
		add(report.Row{Name: m.Name, Provider: cfg.Provider}, func() (lane.Lane, error) { return s.open(cfg) })
	}
	for _, a := range s.anchors {
		add(report.Row{Name: a.Name, Anchor: true}, func() (lane.Lane, error) { return trial.OrRefusal(a.Open(cfg)) })
	}
	return list
}

// measure makes entries take turns, and writes their report.
func (o *output) measure(c *command, out io.Writer, kind report.Kind, entries []trial.Entry) error {
	plan := trial.Plan{Entries: entries}
	plan.Repeats, plan.Duration = c.turn()
	if !atTerminal() {
		fmt.Fprintf(os.Stderr, "measuring for about %v\n", plan.Takes())
	}
	bar := newBar(len(plan.Entries) * (plan.Repeats + 1))
	plan.Step = func() { _ = bar.Add(1) }
	rows, err := plan.Run()
	_ = bar.Finish()
	if err != nil {
		return err
	}
	return o.report(c, out, kind, rows)
}

// turn is how often all take turns, and how long one is.
func (c *command) turn() (repeats int, duration time.Duration) {
	return or(c.Repeats, 9), or(c.Duration, 120*time.Millisecond)
}

// report writes a report of rows as the flags say. It is an error if the machine could not answer.
func (o *output) report(c *command, out io.Writer, kind report.Kind, rows []report.Row) error {
	r := &report.Report{Kind: kind, Host: host.Describe(), Command: c.line, Date: time.Now(), Rows: rows}
	r.Repeats, r.Duration = c.turn()
	err := r.Write(out, o.Format) // first: what was measured is not lost with a file
	if err := errors.Join(err, writeFile(o.Histograms, r.WriteHistograms)); err != nil {
		return err
	}
	if why := r.Unable(); why != "" {
		return fmt.Errorf("%w: %s", errUnable, why)
	}
	return nil
}

// writeFile is page.Write, unless the file has no name.
func writeFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	return page.Write(name, write)
}

func atTerminal() bool { return term.IsTerminal(int(os.Stderr.Fd())) }

// newBar shows progress to a person at a terminal.
func newBar(steps int) *progressbar.ProgressBar {
	return progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription("measuring"),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetVisibility(atTerminal()))
}
