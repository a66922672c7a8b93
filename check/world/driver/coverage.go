package driver

import (
	"fmt"
	"slices"
	"strings"

	"godat/check/world/model"
)

// coverage counts what the programs have reached.
type coverage struct {
	lengths []int
	calls   map[string]int     // calls that succeeded
	refused map[string]int     // calls and the code they failed with
	cells   map[string]int     // calls on an endpoint, and its state
	events  map[[2]int]int     // by number and status
	codes   map[model.Code]int // by code, of any call
}

func newCoverage() *coverage {
	return &coverage{
		calls: map[string]int{}, refused: map[string]int{}, cells: map[string]int{},
		events: map[[2]int]int{}, codes: map[model.Code]int{},
	}
}

func (v *coverage) call(op string, state int, r model.Result) {
	if r.Code == 0 {
		v.calls[op]++
	} else {
		v.refused[fmt.Sprint(op, " ", r.Code)]++
	}
	v.codes[r.Code]++
	if state != model.NoState {
		v.cells[op+" "+model.StateNames[state]]++
	}
	for _, e := range r.Events {
		v.events[[2]int{e.Number, e.Status}]++
	}
}

// onEndpoints are the commands that are calls on an endpoint.
var onEndpoints = []string{
	"status", "ep_query", "ep_free", "reset", "modify", "connect", "common_connect", "dup_connect", "recv_query", "counters", "set_watermark", "disconnect",
	"recv", "batch", "send", "send_inv", "read_rmr", "write", "read", "write_imm", "fetch_add", "cmp_swap", "bind",
}

// median is the median of the programs' lengths.
func (v *coverage) median() int {
	slices.Sort(v.lengths)
	return v.lengths[len(v.lengths)/2]
}

// shares returns which share of the calls succeeded at least once, and which share
// of the cells of call and state was reached.
func (v *coverage) shares() (calls, cells float64) {
	return float64(len(v.calls)) / float64(len(model.Commands())),
		float64(len(v.cells)) / float64(len(onEndpoints)*(len(model.StateNames)-1))
}

func (v *coverage) String() string {
	var b strings.Builder
	calls, cells := v.shares()
	commands := 0
	for _, n := range v.lengths {
		commands += n
	}
	fmt.Fprintf(&b, "%d programs of %d commands in the median, %d in all\n", len(v.lengths), v.median(), commands)
	fmt.Fprintf(&b, "%d of %d calls succeeded (%.0f %%), %d call and code pairs were refused\n",
		len(v.calls), len(model.Commands()), 100*calls, len(v.refused))
	fmt.Fprintf(&b, "%d of %d cells of call and endpoint state (%.0f %%)\n",
		len(v.cells), len(onEndpoints)*(len(model.StateNames)-1), 100*cells)
	fmt.Fprintf(&b, "%d kinds of events, number and status; %d codes", len(v.events), len(v.codes))
	for _, op := range onEndpoints {
		for s, name := range model.StateNames {
			if s != model.NoState && v.cells[op+" "+name] == 0 {
				fmt.Fprintf(&b, "\nnever: %s in %s", op, name)
			}
		}
	}
	for _, op := range model.Commands() {
		if v.calls[op] == 0 {
			fmt.Fprintf(&b, "\nnever succeeded: %s", op)
		}
	}
	return b.String()
}
