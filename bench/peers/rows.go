package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"godat/bench/lane"
	"godat/bench/load"
	"godat/bench/mode"
	study "godat/bench/peers/calls"
	"godat/bench/report"
	"godat/bench/trial"
	_ "godat/hw/ibv" // a provider may be one of its devices
)

// flags say what is measured.
type flags struct {
	Providers []string    // of the library's rows
	Modes     []mode.Mode // of the same
	Sizes     []int
	Depth     int    // one way
	Only      string // what the names of rows contain
	Repeats   int
	Duration  time.Duration
}

// measure lets the library's lanes, anchors and transports take turns: first all that make round trips, then all
// that send one way. It writes their rows.
func measure(text string, out io.Writer) error {
	var f flags
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return fmt.Errorf("%w: %w", study.ErrUsage, err)
	}
	plan := trial.Plan{Entries: f.entries(), Repeats: f.Repeats, Duration: f.Duration}
	if len(plan.Entries) == 0 {
		return fmt.Errorf("%w: no row's name contains %q", study.ErrUsage, f.Only)
	}
	fmt.Fprintf(os.Stderr, "measuring for about %v\n", plan.Takes())
	rows, err := plan.Run()
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(rows)
}

func (f *flags) entries() (list []trial.Entry) {
	for _, size := range f.Sizes {
		for _, roundTrip := range []bool{true, false} {
			set := rows{only: f.Only, row: report.Row{Size: size, Depth: 1, Conns: 1, Rate: load.Closed}}
			if !roundTrip {
				set.row.Depth, set.row.Rate = f.Depth, load.Max
			}
			set.ours(f.Providers, f.Modes)
			set.anchors()
			for _, t := range transports() {
				if t.RoundTrip == roundTrip {
					set.add(report.Row{Name: t.Name, Anchor: true, Does: t.Does}, func() (lane.Lane, error) { return t.Open(size, set.row.Depth) })
				}
			}
			list = append(list, set.list...)
		}
	}
	return list
}

// rows are those of one kind of work.
type rows struct {
	only string
	row  report.Row // what all have in common
	list []trial.Entry
}

func (s *rows) roundTrip() bool { return s.row.Rate == load.Closed }

// add adds a row, if its name is wanted. A lane that can't be opened is refused.
func (s *rows) add(row report.Row, open func() (lane.Lane, error)) {
	if strings.Contains(row.Name, s.only) {
		row.Size, row.Depth, row.Conns, row.Rate = s.row.Size, s.row.Depth, s.row.Conns, s.row.Rate
		s.list = append(s.list, trial.Entry{
			Row: row, Key: fmt.Sprint(row.Name, row.Size, row.Depth, row.Rate), Open: func() (lane.Lane, error) { return trial.OrRefusal(open()) },
		})
	}
}

// ours adds the library's lanes.
func (s *rows) ours(providers []string, modes []mode.Mode) {
	for _, provider := range providers {
		for _, m := range modes {
			cfg := lane.Config{Provider: provider, Mode: m, Size: s.row.Size, Depth: s.row.Depth}
			s.add(report.Row{Name: m.Name + " over " + provider, Provider: provider, Does: oursDo + carries(provider)}, func() (lane.Lane, error) {
				if s.roundTrip() {
					return lane.NewEcho(cfg)
				}
				return lane.NewEndpoints(cfg)
			})
		}
	}
}

// anchors adds what Go programs write without any library.
func (s *rows) anchors() {
	list := lane.Anchors()
	if s.roundTrip() {
		list = lane.RoundTrips()
	}
	cfg := lane.Config{Size: s.row.Size, Depth: s.row.Depth}
	for _, a := range list {
		s.add(report.Row{Name: a.Name, Anchor: true, Does: anchorsDo[a.Name]}, func() (lane.Lane, error) { return a.Open(cfg) })
	}
}

// oursDo is what the library's rows have in common.
const oursDo = "godat: any goroutine may post; every post is checked for its state, room, memory and privileges, and has one completion; nothing is allocated. "

// carries says how a provider carries bytes.
func carries(provider string) string {
	switch name, _, _ := strings.Cut(provider, ":"); name {
	case "loop":
		return "Inside one process: one copy, no kernel"
	case "iwarp":
		return "iWARP with CRCs over loopback TCP, both ends in one process: system calls, and copies into and out of the kernel"
	}
	return "A verbs device moves the bytes; a crossing into C for each post and poll"
}

// anchorsDo says what each anchor does, and what it does not.
var anchorsDo = map[string]string{
	"raw channel":     "56 bytes through a buffered channel, whatever the size: any goroutine may send; no memory, no checks, no kernel",
	"raw ring":        "56 bytes through a ring, whatever the size: any goroutine may push, one pops, spins and yields; no memory, no checks, no kernel",
	"map of channels": "a channel made for each request, found in a map under a mutex, which is what programs write around a transport: 56 bytes, whatever the size; allocates; no kernel",
	"net.Conn":        "a byte stream over loopback TCP, which any goroutine may write: system calls, and copies into and out of the kernel; no checks but TCP's",
	"net.Pipe":        "inside the process: any goroutine may write, and each write waits for its reader; one copy, no kernel",
}
