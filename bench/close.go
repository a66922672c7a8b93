package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"godat/bench/host"
	dat "godat/runtime"
	"godat/runtime/stream"
)

// closeCommand is the command line of the measurement of what ends: a region beside
// connections that are idle, and many byte streams at once.
type closeCommand struct {
	IA      string `help:"The interface adapter." name:"ia" default:"iwarp:127.0.0.1"`
	Beside  []int  `help:"How many idle streams there are beside a region that is registered and freed." default:"1,100,1000,4000"`
	Streams []int  `help:"How many streams echo, half-close and close at once." default:"500,2000,5000"`
}

const (
	regionTurns  = 300    // regions registered and freed at a time
	regionRounds = 15     // of which the median counts
	mostEcho     = 60_000 // bytes that a stream echoes, at most
	longestEcho  = 120 * time.Second
)

// Run prints whether the machine could answer, and both tables. A stream that broke is an error.
func (o *closeCommand) Run(c *command, out io.Writer) error {
	for _, n := range slices.Concat(o.Beside, o.Streams) {
		if most := (crowdFiles - 1000) / 2; n < 1 || n > most {
			return misusedf("%d streams: from 1 to %d, both ends of each in this process", n, most)
		}
	}
	check(host.LimitFiles(crowdFiles))
	repeats, q := or(c.Repeats, 3), &quiet{watch: c.watch}
	bar := newBar(len(o.Beside) + 2*repeats*len(o.Streams))
	step := func() { check(bar.Add(1)) }
	regions := o.regions(q, step)
	var storms table.Writer
	var broken error
	if len(o.Streams) > 0 {
		storms, broken = o.storms(q, repeats, step)
	}
	check(bar.Finish())
	unable := q.tell(out, 0)
	for _, t := range []table.Writer{regions, storms} {
		if t != nil {
			fmt.Fprintln(out, t.Render())
		}
	}
	return errors.Join(broken, unable)
}

// regions measures what a region costs beside idle streams.
func (o *closeCommand) regions(q *quiet, step func()) table.Writer {
	t := table.NewWriter()
	t.SetTitle("Register and Free of 4 KiB on " + o.IA)
	t.AppendHeader(table.Row{"idle streams", "time", "of the first row"})
	side := newStormSide(o.IA)
	defer func() { check(side.close()) }()
	pz := must(side.accepting.NewPZ())
	var first time.Duration
	for _, n := range o.Beside {
		side.grow(n)
		var took time.Duration
		q.turn(func() { took = regionTime(pz) })
		first = cmp.Or(first, took)
		t.AppendRow(table.Row{n, took, fmt.Sprintf("%.2f", float64(took)/float64(first))})
		step()
	}
	check(pz.Close())
	return t
}

// regionTime is the median time in which a region is registered and freed.
func regionTime(pz *dat.PZ) time.Duration {
	buf := make([]byte, 4096)
	var took []time.Duration
	for range regionRounds {
		began := time.Now()
		for range regionTurns {
			check(must(pz.Register(buf, dat.LocalRead)).Free())
		}
		took = append(took, time.Since(began)/regionTurns)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// storms measures streams beside plain connections that do the same.
func (o *closeCommand) storms(q *quiet, repeats int, step func()) (table.Writer, error) {
	t := table.NewWriter()
	t.SetTitle(fmt.Sprintf("connections that echo up to %d bytes, half-close and close, all at once: medians of %d", mostEcho, repeats))
	t.AppendHeader(table.Row{"connections", "streams", "net.Conn", "ratio for each", "longest Close", "resident", "resident of net.Conn", "broken"})
	broken := 0
	for _, n := range o.Streams {
		var ours, plain []storm
		for range repeats {
			q.turn(func() { plain = append(plain, plainStorm(n)) })
			step()
			q.turn(func() { ours = append(ours, streamStorm(o.IA, n)) })
			step()
		}
		s, p := middle(ours), middle(plain)
		broken += s.broken
		t.AppendRow(table.Row{
			n, s.took.Round(time.Millisecond), p.took.Round(time.Millisecond), fmt.Sprintf("%.1f", s.took.Seconds()/p.took.Seconds()),
			s.close.Round(time.Millisecond), size(s.resident), size(p.resident), s.broken,
		})
	}
	if broken > 0 {
		return t, fmt.Errorf("%d streams broke", broken)
	}
	return t, nil
}

func size(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// middle is the median of each of the figures, and the sum of what broke.
func middle(all []storm) (m storm) {
	m.took = median(all, func(s storm) time.Duration { return s.took })
	m.close = median(all, func(s storm) time.Duration { return s.close })
	m.resident = median(all, func(s storm) int64 { return s.resident })
	for _, s := range all {
		m.broken += s.broken
	}
	return m
}

func median[T cmp.Ordered](all []storm, of func(storm) T) T {
	var values []T
	for _, s := range all {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// storm is what a number of connections took that echo and close at once.
type storm struct {
	took     time.Duration // from the first byte until all are closed
	close    time.Duration // the longest Close
	resident int64         // bytes of memory at the most, beyond what there was before
	broken   int           // connections on which an echo or a Close failed
}

// halfCloser is a connection whose direction of writing is closed by itself.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// stormSide has two adapters and the connections between them, as a server and its clients.
type stormSide struct {
	accepting, dialing *dat.IA
	ln                 *stream.Listener
	accepted           []net.Conn
	dialed             []halfCloser
}

func newStormSide(name string) *stormSide {
	s := &stormSide{accepting: must(dat.Open(context.Background(), name)), dialing: must(dat.Open(context.Background(), name))}
	s.ln = must(stream.Listen(context.Background(), s.accepting, ":0", stream.Config{}))
	return s
}

// grow makes connections until there are n.
func (s *stormSide) grow(n int) {
	accepted := make(chan net.Conn, 1)
	for have := len(s.dialed); have < n; have++ {
		go s.accept(accepted)
		d := stream.Dialer{IA: s.dialing}
		s.dialed = append(s.dialed, must(d.Dial("", s.ln.Addr().String())).(*stream.Conn))
		s.accepted = append(s.accepted, <-accepted)
	}
}

// accept is a goroutine that accepts one connection, for which its dialer waits.
func (s *stormSide) accept(to chan<- net.Conn) { to <- must(s.ln.Accept()) }

func (s *stormSide) close() error {
	return errors.Join(s.ln.Close(), s.dialing.Close(), s.accepting.Close())
}

// streamStorm is the storm of n byte streams.
func streamStorm(name string, n int) storm {
	s := newStormSide(name)
	defer func() { check(s.close()) }()
	s.grow(n)
	return runStorm(s.dialed, s.accepted)
}

// plainStorm is the storm of n TCP connections.
func plainStorm(n int) storm {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	defer func() { check(ln.Close()) }()
	var dialed []halfCloser
	var accepted []net.Conn
	for range n {
		dialed = append(dialed, must(net.Dial("tcp", ln.Addr().String())).(*net.TCPConn))
		accepted = append(accepted, must(ln.Accept()))
	}
	return runStorm(dialed, accepted)
}

// runStorm has all connections echo and close.
func runStorm(dialed []halfCloser, accepted []net.Conn) (s storm) {
	debug.FreeOSMemory()
	before := resident()
	done := make(chan struct{})
	watched := make(chan int64, 1)
	go watchResident(done, watched)
	var mu sync.Mutex
	var wg sync.WaitGroup
	note := func(closed time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		s.close = max(s.close, closed)
		if err != nil {
			s.broken++
		}
	}
	began := time.Now()
	for i := range dialed {
		wg.Go(func() { note(serveEcho(accepted[i])) })
		wg.Go(func() { note(askEcho(dialed[i], 1+i*7919%mostEcho)) })
	}
	wg.Wait()
	s.took = time.Since(began)
	close(done)
	s.resident = <-watched - before
	return s
}

// watchResident is a goroutine that sends the most memory that the process had until done.
func watchResident(done <-chan struct{}, most chan<- int64) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	n := resident()
	for {
		select {
		case <-tick.C:
			n = max(n, resident())
		case <-done:
			most <- n
			return
		}
	}
}

// serveEcho sends back what comes until the end of the stream, and closes.
func serveEcho(c net.Conn) (closed time.Duration, err error) {
	check(c.SetDeadline(time.Now().Add(longestEcho)))
	_, err = io.Copy(c, c)
	if err == nil {
		err = c.(halfCloser).CloseWrite()
	}
	began := time.Now()
	err = errors.Join(err, c.Close())
	return time.Since(began), err
}

// askEcho writes n bytes, half-closes, reads them again, and closes.
func askEcho(c halfCloser, n int) (closed time.Duration, err error) {
	check(c.SetDeadline(time.Now().Add(longestEcho)))
	wrote := make(chan error, 1)
	go writeEcho(c, n, wrote)
	got, err := io.Copy(io.Discard, onlyReads{c})
	err = errors.Join(err, <-wrote)
	if err == nil && got != int64(n) {
		err = fmt.Errorf("%d bytes of %d came back", got, n)
	}
	began := time.Now()
	err = errors.Join(err, c.Close())
	return time.Since(began), err
}

// writeEcho is the goroutine that writes beside askEcho, in pieces as programs write them.
func writeEcho(c halfCloser, n int, done chan<- error) {
	out := make([]byte, n)
	for len(out) > 0 {
		m := min(len(out), 1+len(out)*7919%9000)
		if _, err := c.Write(out[:m]); err != nil {
			done <- err
			return
		}
		out = out[m:]
	}
	done <- c.CloseWrite()
}

// onlyReads hides a connection's WriteTo, so that a copy reads into a buffer.
type onlyReads struct{ io.Reader }
