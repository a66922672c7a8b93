package runtime

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"godat/hw"
)

// Describer is a value that is the Context of an endpoint, and says more of it in a snapshot
// of the adapter, as EndpointSnapshot.Owner. What it returns is for JSON. Snapshot calls it,
// from any goroutine, so it must not block, nor call the adapter.
type Describer interface{ DescribeEndpoint() any }

// Troubled is a row of a report, or what a Describer says, that knows when something is wrong with
// it. A page that shows snapshots puts what Trouble returns before everything else: one sentence,
// which follows the row's kind and name, as "disk b: is full", and is empty while nothing is wrong.
// What is to move, and has stood still for less than late, is not wrong yet.
type Troubled interface {
	Trouble(late time.Duration) string
}

// reports are what a program adds to the snapshots of an adapter.
type reports struct {
	mu  sync.Mutex
	all []*report
}

type report struct {
	kind string
	rows func() []any
}

// Report adds rows of a kind to the snapshots of the adapter, until stop is called: what a
// server, a disk or a queue says of itself. Each snapshot calls rows, from any goroutine, so
// rows must not block, nor call Snapshot. A row is for JSON; the rows of a kind are structs of
// one type, whose first field names the row. A row may be [Troubled]. If rows panics, the row says so. A call of rows may still be under way when stop
// returns. A nil rows is INVALID_PARAMETER, and a closed adapter INVALID_HANDLE/IA.
func (ia *IA) Report(kind string, rows func() []any) (stop func(), err error) {
	const op = "runtime.IA.Report"
	if err := ia.enter(op); err != nil {
		return nil, err
	}
	defer ia.gate.RUnlock()
	if rows == nil {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "no function")
	}
	r := &ia.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	added := &report{kind, rows}
	r.all = append(r.all, added)
	return func() { r.drop(added) }, nil
}

func (r *reports) drop(one *report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = slices.DeleteFunc(r.all, func(o *report) bool { return o == one })
}

// call calls all reports, in the order in which they were added.
func (r *reports) call() map[string][]any {
	r.mu.Lock()
	all := slices.Clone(r.all)
	r.mu.Unlock()
	rows := make(map[string][]any, len(all))
	for _, one := range all {
		switch said := contained(func() any { return one.rows() }).(type) {
		case []any:
			rows[one.kind] = append(rows[one.kind], said...)
		default: // it panicked
			rows[one.kind] = append(rows[one.kind], said)
		}
	}
	return rows
}

// contained calls a function of the program's. A panic is its result.
func contained(f func() any) (said any) {
	defer func() {
		if v := recover(); v != nil {
			said = fmt.Sprintf("the program's function panicked: %v", v)
		}
	}()
	return f()
}
