package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"godat/bench/ends"
	"godat/bench/host"
	dat "godat/runtime"
)

// order is what an end is to do.
type order struct {
	Do    string // one of the words below
	Place Place
	Row   string
	Host  string // where the target listens
	Addr  string // of the target
	Depth int    // of the client
	Load  Load
	For   time.Duration
}

// What an end does.
const (
	doServe = "serve" // and report the address
	doDial  = "dial"
	doMark  = "mark" // collect garbage, and count from here
	doTurn  = "turn" // run a load, and report
	doCount = "count"
	doClose = "close"
)

// answer is what an end has done since its mark.
type answer struct {
	Addr     string
	Turned   turned
	Used     time.Duration // processor time of the process; negative if it is not known
	Switches int64         // of its threads; negative if they are not known
	Server   loops         // of the target's adapter, if the process has it
	Client   loops         // of the host's
}

// end is one process of a row, or both ends of a row that has one process.
type end struct {
	rows   []Row
	row    Row
	place  Place
	opener opener

	near, far *dat.IA // of the client, and of the server; nil of what is not here
	server    server
	client    client

	marked answer
}

// Serve obeys the orders of a study, which started this process, until one says that it is over.
// gone ends the process.
func Serve(in io.Reader, out io.Writer, gone func()) error {
	return serve(in, out, gone, append(rows(), kernelRow))
}

func serve(in io.Reader, out io.Writer, gone func(), list []Row) error {
	e := end{rows: list}
	return ends.Serve(in, out, gone, func(o order) (any, bool, error) {
		a, err := e.obey(context.Background(), o)
		return a, o.Do == doClose, err
	})
}

func (e *end) obey(ctx context.Context, o order) (a answer, err error) {
	switch o.Do {
	case doServe:
		if err := e.is(o); err != nil {
			return a, err
		}
		a.Addr, err = e.serve(ctx, o)
	case doDial:
		if err := e.is(o); err != nil {
			return a, err
		}
		err = e.dial(ctx, o)
	case doMark:
		runtime.GC() // no turn pays for another's garbage
		e.marked, err = e.count()
	case doTurn:
		a.Turned, err = e.turn(o)
		if err == nil {
			a, err = e.since(a)
		}
	case doCount:
		a, err = e.since(a)
	case doClose:
		err = e.close()
	default:
		err = fmt.Errorf("what is %q?", o.Do)
	}
	return a, err
}

// is makes the process an end of a row.
func (e *end) is(o order) error {
	i := slices.IndexFunc(e.rows, func(r Row) bool { return r.Name == o.Row })
	if i < 0 {
		return fmt.Errorf("no row %q", o.Row)
	}
	e.row, e.place = e.rows[i], o.Place
	runtime.GOMAXPROCS(o.Place.Processors) // devices ask for the number when they are opened
	return nil
}

func (e *end) serve(ctx context.Context, o order) (addr string, err error) {
	if e.row.Name == pacing {
		return "", nil
	}
	if e.row.Kernel {
		k, err := serveKernel(o.Host)
		if err != nil {
			return "", err
		}
		e.server = k
		return k.addr, nil
	}
	if e.row.Intake == "" {
		s, err := newStore()
		if err != nil {
			return "", err
		}
		n, err := listenNet(s.Memory())
		if err != nil {
			return "", errors.Join(err, s.Close())
		}
		e.server = n
		return n.ln.Addr().String(), nil
	}
	if e.far, err = e.opener.open(ctx, e.place, e.row, "target"); err != nil {
		return "", err
	}
	s, err := listen(ctx, e.far, e.place, e.row, o.Host)
	if err != nil {
		return "", err
	}
	e.server = s
	return s.target.Addr(), nil
}

func (e *end) dial(ctx context.Context, o order) (err error) {
	if e.row.Name == pacing {
		e.client = paced{}
		return nil
	}
	if e.row.Intake == "" {
		e.client, err = dialNet(o.Addr, o.Depth)
		return err
	}
	if e.near, err = e.opener.open(ctx, e.place, e.row, "host"); err != nil {
		return err
	}
	e.client, err = connect(ctx, e.near, e.row, o.Addr, o.Depth)
	return err
}

// turn runs a load.
func (e *end) turn(o order) (t turned, err error) {
	if o.Load.Idle {
		began := time.Now()
		return turned{Took: o.For}, e.client.idle(began.Add(o.For))
	}
	b := newBook(o.Load, o.For, mostDepth, blocks)
	pacing, err := e.client.run(b)
	if err != nil {
		return t, err
	}
	return b.turned(pacing)
}

// count is what the process has used and its adapters have counted.
func (e *end) count() (a answer, err error) {
	a.Used, a.Switches = -1, -1
	if used, known := host.ProcessorTime(); known {
		a.Used = used
	}
	if n, known := host.Switches(); known {
		a.Switches = n
	}
	if e.near != nil {
		if a.Client, err = look(e.near); err != nil {
			return a, err
		}
	}
	if e.far != nil {
		a.Server, err = look(e.far)
	}
	if n, counts := e.server.(interface{ served() int64 }); counts {
		a.Server.Served = n.served()
	}
	return a, err
}

// since adds to a what has been used and counted since the mark.
func (e *end) since(a answer) (answer, error) {
	now, err := e.count()
	a.Used, a.Switches = now.Used, now.Switches
	if now.Used >= 0 {
		a.Used -= e.marked.Used
	}
	if now.Switches >= 0 {
		a.Switches -= e.marked.Switches
	}
	a.Server, a.Client = now.Server.since(e.marked.Server), now.Client.since(e.marked.Client)
	return a, err
}

func (e *end) close() (err error) {
	if e.client != nil {
		err = e.client.close()
	}
	if e.server != nil {
		err = errors.Join(err, e.server.close())
	}
	for _, ia := range []*dat.IA{e.near, e.far} {
		if ia != nil {
			err = errors.Join(err, ia.Close())
		}
	}
	return err
}
