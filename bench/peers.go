package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"godat/bench/lane"
	"godat/bench/load"
	"godat/bench/mode"
	"godat/bench/remote"
	"godat/bench/report"
	"godat/bench/trial"
)

// peersCommand measures what others take for the same work.
type peersCommand struct {
	Provider []string    `help:"The interface adapters of the library's rows." default:"loop,iwarp:127.0.0.1"`
	Mode     []mode.Mode `help:"Ways of delivery of the library's rows." default:"poll,channel"`
	Size     []int       `help:"Bytes of a message." default:"64"`
	Depth    int         `help:"Messages outstanding at most, one way. Round trips are made one at a time." default:"64"`
	Module   string      `help:"Where the Go module with gRPC and QUIC is." default:"bench/peers" placeholder:"DIR"`
	Only     string      `help:"Measure only the rows whose name contains this." placeholder:"TEXT"`
	output
}

// Run lets the library's lanes, anchors and the lanes of the module take turns: first all that
// make round trips, then all that send one way.
func (p *peersCommand) Run(c *command, out io.Writer) error {
	if p.Depth < 1 || p.Depth > 1<<12 {
		return misusedf("%d messages outstanding: from 1 to 4096", p.Depth)
	}
	for _, size := range p.Size {
		if size < 1 || size > 1<<20 {
			return misusedf("a message of %d bytes: from 1 to 1 MiB", size)
		}
	}
	if err := errors.Join(twice("size", p.Size), twice("provider", p.Provider), twice("mode", modeNames(p.Mode))); err != nil {
		return err
	}
	other, why := startModule(p.Module)
	var entries []trial.Entry
	for _, size := range p.Size {
		for _, roundTrip := range []bool{true, false} {
			set := peerSet{size: size, depth: 1, roundTrip: roundTrip, only: p.Only}
			if !roundTrip {
				set.depth = p.Depth
			}
			set.ours(p.Provider, p.Mode)
			set.anchors()
			set.module(other, why)
			entries = append(entries, set.entries...)
		}
	}
	if len(entries) == 0 {
		return errors.Join(misusedf("no row's name contains %q", p.Only), closeModule(other))
	}
	return errors.Join(p.measure(c, out, report.Peers, entries), closeModule(other))
}

// peerSet collects the rows of one kind of work.
type peerSet struct {
	size, depth int
	roundTrip   bool
	only        string
	entries     []trial.Entry
}

// add adds a row, if its name is wanted.
func (s *peerSet) add(e trial.Entry) {
	if !strings.Contains(e.Row.Name, s.only) {
		return
	}
	e.Row.Size, e.Row.Depth, e.Row.Conns, e.Row.Rate = s.size, s.depth, 1, load.Max
	if s.roundTrip {
		e.Row.Rate = load.Closed
	}
	e.Key = fmt.Sprint(e.Row.Name, s.size, s.depth, s.roundTrip)
	s.entries = append(s.entries, e)
}

// ours adds the library's lanes.
func (s *peerSet) ours(providers []string, modes []mode.Mode) {
	for _, provider := range providers {
		for _, m := range modes {
			cfg := lane.Config{Provider: provider, Mode: m, Size: s.size, Depth: s.depth}
			row := report.Row{Name: m.Name + " over " + provider, Provider: provider, Does: oursDo + carries(provider)}
			s.add(trial.Entry{Row: row, Open: func() (lane.Lane, error) {
				if s.roundTrip {
					return orRefusal(lane.NewEcho(cfg))
				}
				return orRefusal(lane.NewEndpoints(cfg))
			}})
		}
	}
}

// anchors adds what Go programs write without any library.
func (s *peerSet) anchors() {
	list := lane.Anchors()
	if s.roundTrip {
		list = lane.RoundTrips()
	}
	cfg := lane.Config{Size: s.size, Depth: s.depth}
	for _, a := range list {
		row := report.Row{Name: a.Name, Anchor: true, Does: anchorsDo[a.Name]}
		s.add(trial.Entry{Row: row, Open: func() (lane.Lane, error) { return orRefusal(a.Open(cfg)) }})
	}
}

// module adds the lanes of the module, or if it does not run a row that says why.
func (s *peerSet) module(p *remote.Process, why error) {
	if p == nil {
		row := report.Row{Name: "gRPC and QUIC", Anchor: true}
		s.add(trial.Entry{Row: row, Start: func() (trial.Runner, error) { return nil, load.Refusal(why.Error()) }})
		return
	}
	for i, l := range p.Lanes() {
		if l.RoundTrip == s.roundTrip {
			row := report.Row{Name: l.Name, Anchor: true, Does: l.Does}
			s.add(trial.Entry{Row: row, Start: func() (trial.Runner, error) { return p.Runner(i, s.size, s.depth), nil }})
		}
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

// buildLimit bounds how long the module's build may take, with its downloads.
const buildLimit = 3 * time.Minute

// startModule builds the program of the module and starts it. p is nil if there is an
// error.
func startModule(dir string) (p *remote.Process, err error) {
	binary, remove, err := buildModule(dir)
	if err != nil {
		return nil, err
	}
	defer remove() // a program that runs needs its file no longer
	return remote.Start(context.Background(), binary)
}

// buildModule builds the program of the module, in a folder that remove removes.
func buildModule(dir string) (binary string, remove func(), err error) {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return "", nil, misusedf("no Go module in %s: run the program in the repository, or name its bench/peers by --module", dir)
	}
	temp, err := os.MkdirTemp("", "peers")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(temp) }
	if binary, err = filepath.Abs(filepath.Join(temp, "peers.exe")); err != nil {
		remove()
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildLimit)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	build.Dir = dir
	if said, err := build.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("the module in %s can't be built: %w: %s", dir, err, strings.TrimSpace(string(said)))
	}
	return binary, remove, nil
}

func closeModule(p *remote.Process) error {
	if p == nil {
		return nil
	}
	if err := p.Close(); err != nil {
		return fmt.Errorf("the program of gRPC and QUIC: %w", err)
	}
	return nil
}
