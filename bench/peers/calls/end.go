package calls

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"godat/bench/ends"
	"godat/bench/host"
)

// The two processes of a row do what the program that started them orders, as JSON: one report for
// each order.

// order is what an end is to do.
type order struct {
	Do   string // one of the words below
	Row  string
	Addr string        // of the server
	Most int           // bytes of a payload
	Plan []group       // whose callers call
	For  time.Duration // how long the first group calls
}

// What an end does.
const (
	doServe = "serve" // and report the address
	doDial  = "dial"  // and make memory for the callers of the plan
	doMark  = "mark"  // collect garbage, and count from here
	doTurn  = "turn"  // let the callers of the plan call, and report
	doCount = "count" // report
	doClose = "close"
)

// report is what an end has done since its mark.
type report struct {
	Addr      string
	Tally     tally
	Processor time.Duration // of this process; negative if it is not known
	Groups    []called      // of a turn, in the order of its plan
}

// called is what the callers of a group have done.
type called struct {
	Calls         int64
	P50, P99, Max int64 // nanoseconds
	Wall          time.Duration
}

// end is one process of a row, or both ends of a row that has one process.
type end struct {
	rows   []Row
	row    Row
	work   *work
	server server
	client *callers
	marked struct {
		served    tally
		processor time.Duration
	}
}

// Serve obeys orders until one says that it is over. If the orders end before, the program that gave
// them has gone, and Serve calls gone, which ends the process: a call may wait for the other process
// for ever.
func Serve(in io.Reader, out io.Writer, gone func()) error { return serve(in, out, gone, rows()) }

func serve(in io.Reader, out io.Writer, gone func(), list []Row) error {
	e := end{rows: list}
	return ends.Serve(in, out, gone, func(o order) (any, bool, error) {
		r, err := e.obey(o)
		return r, o.Do == doClose, err
	})
}

func (e *end) obey(o order) (r report, err error) {
	switch o.Do {
	case doServe, doDial:
		i := slices.IndexFunc(e.rows, func(r Row) bool { return r.Name == o.Row })
		if i < 0 {
			return r, fmt.Errorf("no row %q", o.Row)
		}
		e.row = e.rows[i]
		if o.Do == doDial {
			e.client, err = dial(e.row, o.Addr, o.Plan)
			return r, err
		}
		e.work = newWork(o.Most)
		if e.server, err = e.row.serve(e.work); err == nil {
			r.Addr = e.server.addr()
		}
		return r, err
	case doMark:
		e.mark()
		return r, nil
	case doTurn:
		if r.Groups, err = e.client.turn(o.Plan, o.For); err != nil {
			return r, err
		}
		return e.count(r, e.client.tally()), nil
	case doCount:
		return e.count(r, e.work.tally().since(e.marked.served)), nil
	case doClose:
		return r, e.close()
	}
	return r, fmt.Errorf("what is %q?", o.Do)
}

func (e *end) mark() {
	runtime.GC() // no turn pays for another's garbage
	if e.work != nil {
		e.marked.served = e.work.tally()
	}
	e.marked.processor, _ = host.ProcessorTime()
}

func (e *end) count(r report, t tally) report {
	r.Tally, r.Processor = t, -1
	if used, known := host.ProcessorTime(); known {
		r.Processor = used - e.marked.processor
	}
	return r
}

func (e *end) close() (err error) {
	if e.client != nil {
		err = e.client.client.close()
	}
	if e.server != nil {
		err = errors.Join(err, e.server.close())
	}
	return err
}
