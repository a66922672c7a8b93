package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"godat/bench/host"
)

// Options are what a study measures.
type Options struct {
	Sizes    []int         // bytes of a put's request, and of a get's answer
	Callers  int           // goroutines that call, each one call after the other
	Repeats  int           // how often all take turns
	Duration time.Duration // of one turn
	Only     string        // what the names of the rows contain
	Large    int           // bytes of a large call beside a small one; 0 leaves that out
	Write    string        // the folder of the page; empty writes none
}

// study lets all rows take turns with each kind of call.
type study struct {
	Options
	out     io.Writer
	rows    []Row
	command []string              // that starts an end
	watch   func() host.Disturbed // watches the processors during a turn
}

const mostSize = 64 << 20

// ErrBusy says that other programs used the processors, so that the figures mean nothing.
var ErrBusy = errors.New("other programs used this machine's processors during most turns: the figures mean nothing")

// ErrUsage says that the arguments make no sense.
var ErrUsage = errors.New("the arguments")

// Study is the command that measures what its options, which are JSON, say: it starts the processes of each row by
// command, and prints what it has measured, or writes it to the page. It ends when its standard input does. The error
// is nil if it could measure.
func Study(ctx context.Context, options string, out io.Writer, command []string) error {
	s := study{out: out, rows: rows(), command: command, watch: host.WatchOthers}
	err := json.Unmarshal([]byte(options), &s.Options)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go tie(os.Stdin, cancel)
	return s.run(ctx)
}

// tie cancels when the input ends, with the program that gave it.
func tie(in io.Reader, cancel context.CancelCauseFunc) {
	_, err := io.Copy(io.Discard, in)
	cancel(errors.Join(errors.New("the program that started this one has ended"), err))
}

func (s *study) check() error {
	for _, size := range s.Sizes {
		if size < shortBytes || size > mostSize {
			return fmt.Errorf("%d bytes: from %d to %d", size, shortBytes, mostSize)
		}
	}
	switch {
	case s.Repeats < 1 || s.Duration <= 0:
		return errors.New("at least one repeat, and a duration")
	case s.Callers < 1 || s.Callers > 1000:
		return fmt.Errorf("%d callers: from 1 to 1000", s.Callers)
	case s.Large < 0 || s.Large > mostSize:
		return fmt.Errorf("%d bytes of a large call: at most %d", s.Large, mostSize)
	case len(s.contenders()) == 0:
		return fmt.Errorf("no row's name contains %q", s.Only)
	case s.Write != "" && s.Only != "":
		return errors.New("a page has all rows: write it without --only")
	case s.Write != "":
		return writable(s.Write)
	}
	return nil
}

func (s *study) run(ctx context.Context) error {
	p := page{machine: host.Describe().String(), study: s}
	for _, size := range s.Sizes {
		for _, get := range []bool{false, true} {
			t := table{kind: Kind{size, get}, contenders: s.contenders()}
			if err := s.compare(ctx, &t); err != nil {
				return err
			}
			fmt.Fprintf(s.out, "%s\n", t.text(p.study))
			p.tables = append(p.tables, t)
		}
	}
	for _, get := range []bool{true, false} {
		if s.Large == 0 {
			break
		}
		b := beside{kind: Kind{s.Large, get}}
		if err := s.besides(ctx, &b); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "%s\n", b.text())
		p.besides = append(p.besides, b)
	}
	fmt.Fprintf(s.out, "%s\nFor the project's README:\n\n%s\n\n%s", p.summary(), p.quoted(), p.machineText())
	if err := p.writeAll(s.Write); err != nil {
		return err
	}
	if err := p.refused(); err != nil {
		return err
	}
	return p.busy()
}

// contender is a row while it is measured.
type contender struct {
	Row
	watch                            func() host.Disturbed
	pair                             *pair
	refused                          error     // why there are no figures
	rate, processor, p50, p99, calls []float64 // by repeat
	disturbed                        int       // turns during which other programs used the processors
}

func (s *study) contenders() (list []*contender) {
	for _, row := range s.rows {
		if strings.Contains(row.Name, s.Only) {
			list = append(list, &contender{Row: row, watch: s.watch})
		}
	}
	return list
}

// table is what was measured of one kind of call.
type table struct {
	kind       Kind
	contenders []*contender
}

// compare lets all rows take turns with one kind of call.
func (s *study) compare(ctx context.Context, t *table) error {
	plan := []group{{Kind: t.kind, Callers: s.Callers}}
	defer closeAll(t.contenders)
	for _, c := range t.contenders {
		c.pair, c.refused = open(ctx, c.Row, s.command, plan)
	}
	for repeat := -1; repeat < s.Repeats; repeat++ { // the first turns warm up
		for i := range t.contenders {
			c := t.contenders[(i+repeat+1)%len(t.contenders)] // each row is once first
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if c.refused == nil {
				c.refused = c.turn(plan, s.Duration, repeat >= 0)
			}
		}
	}
	return context.Cause(ctx)
}

// closeAll ends the processes of rows. One that does not end in order refuses its row.
func closeAll(list []*contender) {
	for _, c := range list {
		switch {
		case c.pair == nil:
		case c.refused != nil:
			c.pair.Kill()
		default:
			c.refused = c.pair.close()
		}
	}
}

// turn measures a row once.
func (c *contender) turn(plan []group, duration time.Duration, counts bool) error {
	disturbed := c.watch()
	t, err := c.pair.turn(plan, duration)
	if err != nil || !counts {
		return err
	}
	if disturbed(t.processor) {
		c.disturbed++
	}
	g := t.groups[0]
	c.calls = append(c.calls, float64(g.Calls))
	c.rate = append(c.rate, float64(g.Calls)/g.Wall.Seconds())
	c.processor = append(c.processor, float64(t.processor)/float64(t.client.Calls))
	c.p50 = append(c.p50, float64(g.P50))
	c.p99 = append(c.p99, float64(g.P99))
	return nil
}
