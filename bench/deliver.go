package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"godat/bench/host"
	"godat/bench/lane"
	"godat/bench/load"
	"godat/bench/mode"
	"godat/bench/report"
	"godat/bench/trial"
)

// loadFlags say what is measured, and how it is shown.
type loadFlags struct {
	Provider string      `help:"The interface adapter: loop, iwarp, or any name that is opened." default:"loop"`
	Mode     []mode.Mode `help:"Ways of delivery: poll, wait, channel, batch, per-request, callback, iterator." default:"poll,wait,channel,batch,per-request,callback,iterator"`
	Size     []int       `help:"Bytes of a message." default:"64"`
	Depth    []int       `help:"Messages outstanding at most; 0 means 1 in closed loop and 64 otherwise." default:"0"`
	Rate     []load.Rate `help:"Loads: closed, max, or messages a second in open loop, as in 10k." default:"closed,10k,100k,max"`
	output
}

// output says how results are shown.
type output struct {
	Format string `help:"table, json, benchstat or perftest." enum:"table,json,benchstat,perftest" default:"table"`
	HTML   string `help:"Write a page with charts to this file, too." name:"html" placeholder:"report.html"`
}

// deliveryCommand measures the ways of delivery, and the anchors.
type deliveryCommand struct {
	loadFlags
	Anchors bool `help:"Measure a raw channel and ring, net.Conn and net.Pipe, too." default:"true" negatable:""`
}

// Run measures.
func (d *deliveryCommand) Run(c *command, out io.Writer) error {
	if err := d.check(); err != nil {
		return err
	}
	plan := trial.Plan{Repeats: or(c.Repeats, 7), Duration: or(c.Duration, 180*time.Millisecond)}
	for _, size := range d.Size {
		for _, depth := range d.Depth {
			for _, rate := range d.Rate {
				plan.Entries = append(plan.Entries, d.entries(size, outstanding(depth, rate), rate)...)
			}
		}
	}
	return d.show(out, "What does a channel cost?", plan)
}

func (f *loadFlags) check() error {
	for _, size := range f.Size {
		if size < 1 || size > 1<<30 {
			return fmt.Errorf("a message of %d bytes: from 1 to 1 GiB", size)
		}
	}
	for _, depth := range f.Depth {
		if depth < 0 || depth > 1<<16 {
			return fmt.Errorf("%d messages outstanding: from 0 to 65536", depth)
		}
	}
	return nil
}

// outstanding is the depth under a rate. One message at a time shows what a message
// costs; more would wait for each other in closed loop. Other loads need room for what
// a consumer that was held up has not taken yet.
func outstanding(depth int, rate load.Rate) int {
	switch {
	case depth > 0:
		return depth
	case rate == load.Closed:
		return 1
	}
	return 64
}

// entries are all lanes under one load.
func (d *deliveryCommand) entries(size, depth int, rate load.Rate) (list []trial.Entry) {
	add := func(row report.Row, open func() (lane.Lane, error)) {
		row.Size, row.Depth, row.Rate = size, depth, rate
		list = append(list, trial.Entry{Row: row, Key: fmt.Sprint(row.Name, size, depth), Open: open})
	}
	for _, m := range d.Mode {
		add(report.Row{Name: m.Name, Writes: m.Writes, Provider: d.Provider}, func() (lane.Lane, error) {
			return lane.NewEndpoints(lane.Config{Provider: d.Provider, Mode: m, Size: size, Depth: depth})
		})
	}
	if d.Anchors {
		for _, a := range lane.Anchors() {
			add(report.Row{Name: a.Name, Writes: a.Writes, Anchor: true}, func() (lane.Lane, error) { return a.Open(size, depth) })
		}
	}
	return list
}

// show runs a plan and writes its report.
func (o *output) show(out io.Writer, title string, plan trial.Plan) error {
	bar := newBar(len(plan.Entries) * (plan.Repeats + 1))
	plan.Step = func() { _ = bar.Add(1) }
	rows, err := plan.Run()
	_ = bar.Finish()
	if err != nil {
		return err
	}
	r := report.Report{
		Title: title, Host: host.Describe(), Command: commandLine(), Date: time.Now(),
		Repeats: plan.Repeats, Duration: plan.Duration, Own: load.OwnCost(), Rows: rows,
	}
	return o.write(out, &r)
}

// write writes a report as the flags say.
func (o *output) write(out io.Writer, r *report.Report) error {
	if o.HTML != "" {
		if err := writeFile(o.HTML, r.WriteHTML); err != nil {
			return err
		}
	}
	return r.Write(out, o.Format)
}

// writeFile makes a file of what write writes.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// showCommand shows a saved run.
type showCommand struct {
	File string `arg:"" help:"What --format json has written." type:"existingfile"`
	output
}

// Run shows the run.
func (s *showCommand) Run(out io.Writer) error {
	text, err := os.ReadFile(s.File)
	if err != nil {
		return err
	}
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("%s: %w", s.File, err)
	}
	return s.write(out, &r)
}

// commandLine is what repeats the run.
func commandLine() string {
	return strings.TrimSpace("go run ./bench " + strings.Join(os.Args[1:], " "))
}

// newBar shows progress to a person at a terminal.
func newBar(steps int) *progressbar.ProgressBar {
	return progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription("measuring"),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionSetWidth(30),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetVisibility(term.IsTerminal(int(os.Stderr.Fd()))))
}
