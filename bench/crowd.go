package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"godat/bench/host"
	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// ends are one process's ends of many connections to another process, on each of which
// a message has gone each way.
type ends interface {
	// serve takes n connections. It calls ready when others may connect.
	serve(n int, ready func(port uint64))
	// visit makes n connections.
	visit(addr string, port uint64, n int)
	// rest measures for so long what they take while they do nothing.
	rest(d time.Duration) idle
	// close ends them.
	close() error
}

// A crowd is bare endpoints, with a receive posted.
type crowd struct {
	ia     *dat.IA
	pz     *mem.PZ
	lmr    *mem.LMR
	events *evd.Dispatcher
	eps    []*ep.Endpoint
	before usage
}

const (
	messageSize = 64
	arriving    = 64      // connections being made at a time
	crowdFiles  = 20000   // descriptors that a process may have
	answered    = 1 << 32 // the cookie of a receive
)

func newCrowd(name string, n int) *crowd {
	c := &crowd{ia: must(dat.Open(context.Background(), name))}
	c.pz = must(c.ia.NewPZ())
	c.lmr = must(c.pz.Alloc(4096, hw.AllPrivileges))
	c.events = must(c.ia.NewDispatcher(evd.Config{QLen: 8*n + 1024}))
	c.before = measure()
	return c
}

// end makes one end, with a receive posted.
func (c *crowd) end() *ep.Endpoint {
	attr := &ep.Attr{MaxRecvDTOs: 2, MaxRequestDTOs: 2, MaxRecvIOV: 1, MaxRequestIOV: 1}
	e := must(c.ia.NewEndpoint(ep.Config{PZ: c.pz, Recv: c.events, Request: c.events, Conn: c.events, Attr: attr}))
	c.eps = append(c.eps, e)
	c.postRecv(e)
	return e
}

func (c *crowd) postRecv(e *ep.Endpoint) {
	check(e.PostRecv(answered, 0, c.lmr.Segment(messageSize, messageSize)))
}

func (c *crowd) send(e *ep.Endpoint) {
	check(e.PostSend(0, hw.Suppress, c.lmr.Segment(0, messageSize)))
}

// serve takes n connections and answers their messages.
func (c *crowd) serve(n int, ready func(port uint64)) {
	psp := must(c.ia.NewPSP(ep.PSPConfig{Dispatcher: c.events}))
	ready(psp.Qual())
	for done := 0; done < n; {
		ev := c.next()
		switch {
		case ev.Number == event.ConnectionRequest:
			check(ep.RequestOf(ev).Accept(c.end(), nil))
		case ev.Number == event.DTOCompletion:
			c.postRecv(ep.Of(ev))
			c.send(ep.Of(ev))
			done++
		}
	}
	check(psp.Close())
}

// visit makes n connections, a few at a time, and has an answer from each.
func (c *crowd) visit(addr string, port uint64, n int) {
	asked := 0
	ask := func() {
		if asked < n {
			asked++
			check(c.end().Connect(ep.ConnectConfig{Addr: addr, Qual: port}))
		}
	}
	for range arriving {
		ask()
	}
	for done := 0; done < n; {
		ev := c.next()
		switch {
		case ev.Number == event.Established:
			c.send(ep.Of(ev))
		case ev.Number == event.DTOCompletion:
			c.postRecv(ep.Of(ev))
			done++
			ask()
		}
	}
}

// next waits for the next event, which must tell of a success.
func (c *crowd) next() event.Event {
	ev, _, err := c.events.Wait(context.Background(), 1)
	check(err)
	check(ev.Err())
	return ev
}

// usage is the memory, goroutines and open files of a process.
type usage struct {
	Heap, Stacks, Resident, Goroutines, Files int64
}

func measure() usage {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, _ := os.ReadDir("/proc/self/fd")
	return usage{
		Heap: int64(m.HeapAlloc), Stacks: int64(m.StackInuse), Resident: resident(),
		Goroutines: int64(runtime.NumGoroutine()), Files: int64(len(files)),
	}
}

// resident is the memory in bytes that the system has given the process; 0 if unknown.
func resident() int64 {
	var size, pages int64
	b, _ := os.ReadFile("/proc/self/statm")
	_, _ = fmt.Sscan(string(b), &size, &pages)
	return pages * int64(os.Getpagesize())
}

// idle is what the connections have added to the process, and the processor time that
// it uses while they do nothing.
type idle struct {
	Connections int
	Added       usage
	Files       int64
	Processor   time.Duration
	Over        time.Duration
	Measuring   time.Duration // of the processor, with what measuring took
}

func (c *crowd) rest(d time.Duration) idle { return rest(d, len(c.eps), c.before) }

func (c *crowd) close() error { return c.ia.Close() }

// rest measures over d what so many ends take, compared with the usage before them.
func rest(d time.Duration, ends int, before usage) idle {
	first, _ := host.ProcessorTime()
	now := measure()
	start := time.Now()
	began, _ := host.ProcessorTime()
	time.Sleep(d)
	used, _ := host.ProcessorTime()
	measuring := used - first
	used -= began
	b := before
	return idle{
		Connections: ends, Files: now.Files, Processor: used, Over: time.Since(start), Measuring: measuring,
		Added: usage{
			Heap: now.Heap - b.Heap, Stacks: now.Stacks - b.Stacks, Resident: now.Resident - b.Resident,
			Goroutines: now.Goroutines - b.Goroutines, Files: now.Files - b.Files,
		},
	}
}

func (i *idle) row(name string) table.Row {
	per := func(n int64) string { return fmt.Sprintf("%.2f", float64(n)/float64(max(i.Connections, 1))) }
	return table.Row{
		name, i.Connections, i.Files, per(i.Added.Heap), per(i.Added.Stacks), per(i.Added.Resident), per(i.Added.Goroutines),
		fmt.Sprintf("%.3f %%", 100*i.Processor.Seconds()/i.Over.Seconds()),
	}
}

// idleCommand is the command line of the measurement of idle connections.
type idleCommand struct {
	Connections int           `help:"How many." default:"10000"`
	IA          string        `help:"The interface adapter of both processes." name:"ia" default:"iwarp:127.0.0.1"`
	Addr        string        `help:"Where the other process listens." default:"127.0.0.1"`
	For         time.Duration `help:"How long they are idle." default:"10s"`
	Streams     bool          `help:"Byte streams in place of endpoints. With --ia=loop, both ends are in one process."`
	Peer        bool          `help:"Be the other process." hidden:""`
}

// Run starts the other process and connects to it. It prints whether the machine could answer, and a table.
func (o *idleCommand) Run(run *command, out io.Writer) error {
	if o.Peer {
		o.peer(os.Stdin, out)
		return nil
	}
	if most := o.most(); o.Connections < 1 || o.Connections > most {
		return misusedf("%d connections: from 1 to %d", o.Connections, most)
	}
	if o.For <= 0 {
		return misusedf("idle for %v: more than that", o.For)
	}
	check(host.LimitFiles(crowdFiles))
	if o.IA == "loop" {
		return o.within(out, run.watch)
	}
	cmd := exec.Command(must(os.Executable()), "idle", "--peer", "--connections", strconv.Itoa(o.Connections), "--ia", o.IA, "--for", o.For.String(), "--streams="+strconv.FormatBool(o.Streams))
	cmd.Stderr = os.Stderr
	in, peerOut := must(cmd.StdinPipe()), bufio.NewReader(must(cmd.StdoutPipe()))
	check(cmd.Start())
	first, err := peerOut.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the other process has not begun to listen: %w", cmd.Wait())
	}
	port := must(strconv.ParseUint(strings.TrimSpace(first), 10, 16))
	c := o.ends()
	began := time.Now()
	c.visit(o.Addr, port, o.Connections)
	took := time.Since(began)
	disturbed := run.watch()
	must(io.WriteString(in, "measure\n"))
	ours := c.rest(o.For)
	var theirs idle
	check(json.Unmarshal([]byte(firstWord(peerOut)), &theirs))
	unable := tell(out, disturbed(ours.Measuring+theirs.Measuring))
	o.print(out, took, ours.row("connecting"), theirs.row("accepting"))
	check(in.Close())
	check(cmd.Wait())
	return errors.Join(unable, c.close())
}

// most is how many connections can be measured: over a network each takes a descriptor.
func (o *idleCommand) most() int {
	if o.IA == "loop" {
		return 1_000_000
	}
	return crowdFiles - 1000
}

// ends are the ends that the command line asks for.
func (o *idleCommand) ends() ends {
	if o.Streams {
		return newStreamCrowd(o.IA)
	}
	return newCrowd(o.IA, o.Connections)
}

// within measures streams whose ends are both in this process.
func (o *idleCommand) within(out io.Writer, watch func() host.Disturbed) error {
	if !o.Streams {
		return errors.New("loop reaches no other process: name another --ia, or measure --streams")
	}
	c := newStreamCrowd(o.IA)
	began := time.Now()
	port, served := make(chan uint64, 1), make(chan struct{})
	go c.serveAll(o.Connections, port, served)
	c.visit("loop", <-port, o.Connections)
	<-served
	took := time.Since(began)
	disturbed := watch()
	both := c.rest(o.For)
	unable := tell(out, disturbed(both.Measuring))
	o.print(out, took, both.row("both ends"))
	return errors.Join(unable, c.close())
}

// tell writes as the first line whether the machine could answer, and is an error if it could not.
func tell(out io.Writer, disturbed bool) error {
	if disturbed {
		const why = "other programs used over a quarter of the processors"
		fmt.Fprintf(out, "This machine could not answer: %s.\n", why)
		return fmt.Errorf("%w: %s", errUnable, why)
	}
	fmt.Fprintln(out, "This machine could answer: other programs left it the processors.")
	return nil
}

// print prints a table of ends that were made in such a time.
func (o *idleCommand) print(out io.Writer, took time.Duration, rows ...table.Row) {
	t := newTable(out, fmt.Sprintf("made in %v, idle for %v", took.Round(time.Millisecond), o.For))
	t.AppendHeader(table.Row{"", "ends", "descriptors", "heap B/end", "stack B/end", "resident B/end", "goroutines/end", "processor"})
	t.AppendRows(rows)
	t.Render()
}

// newTable makes a table that is rendered to w.
func newTable(w io.Writer, title string) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.Style().Format.Header = text.FormatDefault
	t.SetTitle(title)
	return t
}

// peer is the other process: it prints its port, waits for a line, prints what it has
// measured, and ends when its input ends.
func (o *idleCommand) peer(in io.Reader, out io.Writer) {
	check(host.LimitFiles(crowdFiles))
	c := o.ends()
	c.serve(o.Connections, func(port uint64) { fmt.Fprintln(out, port) })
	lines := bufio.NewReader(in)
	_ = firstWord(lines)
	fmt.Fprintln(out, string(must(json.Marshal(c.rest(o.For)))))
	_, _ = io.Copy(io.Discard, lines)
	check(c.close())
}

// firstWord reads the next line, and returns it without its end.
func firstWord(r *bufio.Reader) string {
	line := must(r.ReadString('\n'))
	return line[:len(line)-1]
}
