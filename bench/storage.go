package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"

	"godat/bench/load"
	"godat/bench/storage"
	dat "godat/runtime"
)

// storageCommand measures what it costs a storage target and its host to sleep or to poll.
type storageCommand struct {
	Provider   []string    `help:"Where rows run: iwarp:ADDRESS or ibv:DEVICE with two processes, sim with one." default:"iwarp:127.0.0.1,sim"`
	Host       string      `help:"The address at which targets listen, of the provider's network." default:"127.0.0.1"`
	Processors []int       `help:"GOMAXPROCS of each process, one after the other." default:"1,2"`
	Depth      []int       `help:"Commands under way at most." default:"1,32"`
	Rate       []load.Rate `help:"Commands a second; idle and saturation are measured, too." default:"1k,10k,20k,30k,50k,100k"`
	Write      bool        `help:"Write STORAGE.md with its logs and plots, and the marked lines of the README.md above the folder."`
	Counts     bool        `help:"Count wake-ups and polls instead, on a machine whose times mean nothing. Over ibv Linux's own target takes part. --write writes STORAGE-guest.md."`
	Folder     string      `help:"Where to write them." default:"bench" placeholder:"DIR"`
}

// storageEndCommand is one end of a row, which the study starts.
type storageEndCommand struct{}

// Run obeys the study.
func (*storageEndCommand) Run(out io.Writer) error {
	return storage.Serve(os.Stdin, out, func() { os.Exit(1) })
}

// defaultFolder is where the page of this repository is.
const defaultFolder = "bench"

// check refuses what makes no sense.
func (s *storageCommand) check() error {
	for _, p := range s.Provider {
		if inProcess(p) {
			return misusedf("%s has no completions that wait to be polled, and reaches no other process: name iwarp, ibv:DEVICE or sim", p)
		}
	}
	for _, n := range s.Processors {
		if n < 1 || n > 1024 {
			return misusedf("%d processors: from 1 to 1024", n)
		}
	}
	for _, d := range s.Depth {
		if d < 1 || d > 128 {
			return misusedf("%d commands under way: from 1 to 128", d)
		}
	}
	for _, r := range s.Rate {
		if !r.Open() {
			return misusedf("rate %v: a number a second, as 10k; saturation is measured anyway", r)
		}
	}
	if !slices.IsSorted(s.Rate) || !slices.IsSorted(s.Depth) {
		return misusedf("rates and depths in ascending order: the lines cross between two that follow each other")
	}
	if err := errors.Join(twice("provider", s.Provider), twice("rate", s.Rate), twice("depth", s.Depth), twice("processors", s.Processors)); err != nil {
		return err
	}
	if s.Folder != defaultFolder && !s.Write {
		return misusedf("--folder without --write: nothing would be written in %s", s.Folder)
	}
	if s.Write {
		if err := storage.Writable(s.Folder); err != nil {
			return misused(err)
		}
	}
	return s.open()
}

// open opens each adapter once, and listens where targets will, so that a name or an address that there is
// none of is told before anything runs.
func (s *storageCommand) open() error {
	for _, p := range s.Provider {
		if (storage.Place{Provider: p}).OneProcess() {
			continue
		}
		ia, err := dat.Open(context.Background(), p)
		if err != nil {
			return err
		}
		_, refused := ia.Listen(context.Background(), net.JoinHostPort(s.Host, "0"), dat.ConnConfig{})
		if err := ia.Close(); err != nil {
			return err
		}
		if refused != nil {
			return misusedf("--host: no target could listen: %w", refused)
		}
	}
	return nil
}

// Run measures, prints the tables, and writes the page if it is asked to.
func (s *storageCommand) Run(c *command, out io.Writer) error {
	if err := s.check(); err != nil {
		return err
	}
	this, err := os.Executable()
	if err != nil {
		return err
	}
	study := &storage.Study{
		Host: s.Host, Rates: s.Rate, Depths: s.Depth, Repeats: or(c.Repeats, 9), Duration: or(c.Duration, 250*time.Millisecond),
		Command: []string{this, "storage-end"}, Line: c.line, Watch: c.watch, Counts: s.Counts,
	}
	for _, p := range s.Provider {
		for _, n := range s.Processors {
			study.Places = append(study.Places, storage.Place{Provider: p, Processors: n})
		}
	}
	if atTerminal() {
		var bar *progressbar.ProgressBar
		study.Step = func(done, all int) {
			if bar == nil {
				bar = newBar(all)
			}
			_ = bar.Set(done) // a bar that can't be drawn is none
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := study.Run(ctx); err != nil {
		return err
	}
	page, err := storage.NewPage(study)
	if err != nil {
		return err
	}
	fmt.Fprint(out, strings.TrimRight(page.Tables(), "\n")+"\n")
	if s.Write {
		err = page.Write(s.Folder)
	}
	if why := study.Busy(); why != "" {
		fmt.Fprintln(out)
		err = errors.Join(err, unable(out, why))
	}
	if refused := study.Refused(); refused != nil {
		err = errors.Join(fmt.Errorf("rows were refused: %s", strings.Join(refused, "; ")), err)
	}
	return err
}
