package calls

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"godat/bench/host"
)

// study lets all rows take turns with each kind of call.
type study struct {
	sizes    numbers
	callers  int
	repeats  int
	duration time.Duration // of one turn
	only     string        // what the names of the rows contain
	large    int           // bytes of a large call beside a small one; 0 leaves that out
	write    string        // the folder of the page; empty writes none
	tied     bool          // the study ends when its standard input does
	out      io.Writer
	rows     []Row
	command  []string              // that starts an end
	watch    func() host.Disturbed // watches the processors during a turn
}

// numbers are lengths, as a flag has them: 64,4096.
type numbers []int

func (n *numbers) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*n)), " ", ","), "[]")
}

// Set implements flag.Value.
func (n *numbers) Set(text string) error {
	*n = nil
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.Atoi(part)
		if err != nil || v < shortBytes || v > mostSize {
			return fmt.Errorf("%q: from %d to %d bytes", part, shortBytes, mostSize)
		}
		if slices.Contains(*n, v) {
			return fmt.Errorf("%d bytes twice", v)
		}
		*n = append(*n, v)
	}
	return nil
}

const mostSize = 64 << 20

// ErrBusy says that other programs used the processors, so that the figures mean nothing.
var ErrBusy = errors.New("other programs used this machine's processors during most turns: the figures mean nothing")

// ErrUsage says that the arguments make no sense.
var ErrUsage = errors.New("the arguments")

// Study is the command that measures: it starts the processes of each row by command, and prints what it
// has measured, or writes it to the page. The error is nil if it could measure.
func Study(ctx context.Context, args []string, out io.Writer, command []string) error {
	s := study{out: out, rows: rows(), command: command, watch: host.WatchOthers}
	if err := s.parse(args); err != nil {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if s.tied {
		go tie(os.Stdin, cancel)
	}
	return s.run(ctx)
}

// tie cancels when the input ends, with the program that gave it.
func tie(in io.Reader, cancel context.CancelCauseFunc) {
	_, err := io.Copy(io.Discard, in)
	cancel(errors.Join(errors.New("the program that started this one has ended"), err))
}

func (s *study) parse(args []string) error {
	s.sizes = numbers{64, 64 << 10, 1 << 20}
	f := flag.NewFlagSet("rpc", flag.ContinueOnError)
	f.SetOutput(s.out)
	f.Var(&s.sizes, "size", "bytes of a put's request, and of a get's answer")
	f.IntVar(&s.callers, "callers", 16, "goroutines that call, each one call after the other")
	f.IntVar(&s.repeats, "repeats", 9, "how often all take turns")
	f.DurationVar(&s.duration, "duration", 300*time.Millisecond, "how long one turn is")
	f.StringVar(&s.only, "only", "", "measure only the rows whose name contains this")
	f.IntVar(&s.large, "large", mostSize, "bytes of the large calls beside a small one; 0 leaves that out")
	f.StringVar(&s.write, "write", "", "write the page CALLS.md in this folder, and the marked lines of its README.md")
	f.BoolVar(&s.tied, "tied", false, "end when the standard input ends")
	if err := f.Parse(args); err != nil {
		return err
	}
	switch {
	case f.NArg() > 0:
		return fmt.Errorf("what is %q?", f.Args())
	case s.repeats < 1 || s.duration <= 0:
		return errors.New("at least one repeat, and a duration")
	case s.callers < 1 || s.callers > 1000:
		return fmt.Errorf("%d callers: from 1 to 1000", s.callers)
	case s.large < 0 || s.large > mostSize:
		return fmt.Errorf("%d bytes of a large call: at most %d", s.large, mostSize)
	case len(s.contenders()) == 0:
		return fmt.Errorf("no row's name contains %q", s.only)
	case s.write != "" && s.only != "":
		return errors.New("a page has all rows: write it without -only")
	case s.write != "":
		return writable(s.write)
	}
	return nil
}

func (s *study) run(ctx context.Context) error {
	p := page{machine: host.Describe().String(), study: s}
	for _, size := range s.sizes {
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
		if s.large == 0 {
			break
		}
		b := beside{kind: Kind{s.large, get}}
		if err := s.besides(ctx, &b); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "%s\n", b.text())
		p.besides = append(p.besides, b)
	}
	fmt.Fprintf(s.out, "%s\nFor the project's README:\n\n%s\n\n%s", p.summary(), p.quoted(), p.machineText())
	if err := p.writeAll(s.write); err != nil {
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
		if strings.Contains(row.Name, s.only) {
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
	plan := []group{{Kind: t.kind, Callers: s.callers}}
	defer closeAll(t.contenders)
	for _, c := range t.contenders {
		c.pair, c.refused = open(ctx, c.Row, s.command, plan)
	}
	for repeat := -1; repeat < s.repeats; repeat++ { // the first turns warm up
		for i := range t.contenders {
			c := t.contenders[(i+repeat+1)%len(t.contenders)] // each row is once first
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if c.refused == nil {
				c.refused = c.turn(plan, s.duration, repeat >= 0)
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
