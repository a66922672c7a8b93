package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"godat/bench/ends"
	"godat/bench/host"
	dat "godat/runtime"
)

// idleCommand is the command line of the measurement of idle connections.
type idleCommand struct {
	Connections int           `help:"How many." default:"10000"`
	IA          string        `help:"The interface adapter of both processes." name:"ia" default:"iwarp:127.0.0.1"`
	Addr        string        `help:"Where the other process listens." default:"127.0.0.1"`
	For         time.Duration `help:"How long they are idle." default:"10s"`
	Streams     bool          `help:"Byte streams in place of endpoints. With --ia=loop, both ends are in one process."`
}

// connections are one process's ends of many connections to another process, on each of which
// a message has gone each way.
type connections interface {
	// serve takes n connections. It calls ready when others may connect.
	serve(n int, ready func(port string))
	// visit makes n connections.
	visit(addr, port string, n int)
	// rest measures for so long what they take while they do nothing.
	rest(d time.Duration) idle
	// close ends them.
	close() error
}

// open makes what the command line asks for.
func (o *idleCommand) open() connections {
	check(host.LimitFiles(idleFiles))
	if o.Streams {
		return newStreamCrowd(o.IA)
	}
	return newCrowd(o.IA, o.Connections)
}

// idleFiles is how many descriptors a process may have.
const idleFiles = 20000

// most is how many connections can be measured: over a network each takes a descriptor.
func (o *idleCommand) most() int {
	if inProcess(o.IA) {
		return 1_000_000
	}
	return idleFiles - 1000
}

// Run connects two processes, or one to itself. It prints whether the machine could answer, and a table.
func (o *idleCommand) Run(run *command, out io.Writer) error {
	loop := inProcess(o.IA)
	switch most := o.most(); {
	case o.Connections < 1 || o.Connections > most:
		return misusedf("%d connections: from 1 to %d", o.Connections, most)
	case o.For <= 0:
		return misusedf("idle for %v: more than that", o.For)
	case loop && !o.Streams:
		return misusedf("loop reaches no other process: name another --ia, or measure --streams")
	}
	ia, err := dat.Open(context.Background(), o.IA) // a name that there is none of is told here
	if err != nil {
		return err
	}
	check(ia.Close())
	if loop {
		o.Addr = o.IA
	}
	making := time.Duration(o.Connections) * 20 * time.Millisecond // at most
	p := must(ends.Open(context.Background(), []string{must(os.Executable()), "idle-end"}, loop, making, idleOrder{doServe, *o, ""}, func(port string) any {
		return idleOrder{doDial, *o, port}
	}))
	defer p.Kill()
	disturbed := run.watch()
	var connecting, accepting idle
	check(p.AskBoth(idleOrder{doRest, *o, ""}, o.For, &connecting, &accepting))
	told := tell(out, disturbed(connecting.Measuring+accepting.Measuring))
	if loop {
		o.print(out, connecting.Made, connecting.row("both ends"))
	} else {
		o.print(out, connecting.Made, connecting.row("connecting"), accepting.row("accepting"))
	}
	return errors.Join(told, p.Close(idleOrder{Do: doClose}))
}

// idleOrder is what a process is to do.
type idleOrder struct {
	Do   string // one of the words below
	Idle idleCommand
	Port string // to dial
}

const (
	doServe = "serve" // and report the port as its Addr
	doDial  = "dial"
	doRest  = "rest"
	doClose = "close"
)

// idleEndCommand is a process with connections.
type idleEndCommand struct{}

// Run obeys.
func (*idleEndCommand) Run(out io.Writer) error {
	var e idleEnd
	return ends.Serve(os.Stdin, out, func() { os.Exit(1) }, func(o idleOrder) (any, bool, error) {
		report, err := e.obey(o)
		return report, o.Do == doClose, err
	})
}

// idleEnd has the connections of a process.
type idleEnd struct {
	connections
	served chan error // has how serving them ended; nil of a process that only dials
	made   time.Duration
}

func (e *idleEnd) obey(o idleOrder) (report any, err error) {
	defer recovered(&err)
	if e.connections == nil {
		e.connections = o.Idle.open()
	}
	switch o.Do {
	case doServe:
		port := make(chan string, 1)
		e.served = make(chan error, 1)
		go e.take(o.Idle.Connections, port)
		select {
		case at := <-port:
			return struct{ Addr string }{at}, nil
		case err = <-e.served:
		}
	case doDial:
		began := time.Now()
		e.visit(o.Idle.Addr, o.Port, o.Idle.Connections)
		e.made = time.Since(began)
	case doRest:
		if e.served != nil {
			check(<-e.served)
		}
		i := e.rest(o.Idle.For)
		i.Made = e.made
		return i, nil
	case doClose:
		err = e.close()
	}
	return nil, err
}

// take takes n connections.
func (e *idleEnd) take(n int, port chan<- string) {
	var err error
	defer func() { e.served <- err }()
	defer recovered(&err)
	e.serve(n, func(p string) { port <- p })
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
	Made        time.Duration // how long it took to make them, of those that dialed
}

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

// unable tells why the machine could not answer.
func unable(out io.Writer, why string) error {
	fmt.Fprintf(out, "This machine could not answer: %s.\n", why)
	return fmt.Errorf("%w: %s", errUnable, why)
}

// tell writes as the first line whether the machine could answer, and is an error if it could not.
func tell(out io.Writer, disturbed bool) error {
	if disturbed {
		return unable(out, "other programs used over a quarter of the processors")
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
