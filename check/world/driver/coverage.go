package driver

import (
	"fmt"
	"slices"

	"godat/check/world/model"
)

// coverage counts what the programs have reached.
type coverage struct {
	lengths []int
	// Calls that succeeded, calls and the code they failed with, calls on an endpoint and its state, events by number and
	// status, and codes of any call.
	calls, refused, cells, events, codes map[string]int
}

func newCoverage() *coverage {
	return &coverage{calls: map[string]int{}, refused: map[string]int{}, cells: map[string]int{}, events: map[string]int{}, codes: map[string]int{}}
}

func (v *coverage) call(op string, state int, r model.Result) {
	if r.Code == 0 {
		v.calls[op]++
	} else {
		v.refused[fmt.Sprint(op, " ", r.Code)]++
	}
	v.codes[r.Code.String()]++
	if state != model.NoState {
		v.cells[op+" "+model.StateNames[state]]++
	}
	for _, e := range r.Events {
		v.events[fmt.Sprint(e.Number, " ", e.Status)]++
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

// all are the calls, and the cells of call and state, that there are.
func all() (calls, cells []string) {
	for _, op := range onEndpoints {
		for s, name := range model.StateNames {
			if s != model.NoState {
				cells = append(cells, op+" "+name)
			}
		}
	}
	return model.Commands(), cells
}

// shares returns which share of the calls succeeded at least once, and which share
// of the cells of call and state was reached.
func (v *coverage) shares() (called, reached float64) {
	calls, cells := all()
	return float64(len(v.calls)) / float64(len(calls)), float64(len(v.cells)) / float64(len(cells))
}

func (v *coverage) String() string {
	calls, cells := all()
	for of, what := range map[*[]string]map[string]int{&calls: v.calls, &cells: v.cells} {
		*of = slices.DeleteFunc(*of, func(one string) bool { return what[one] > 0 })
	}
	return fmt.Sprintf("%d programs of %d commands in the median; %d pairs of a call and a code were refused; %d kinds of events, number and status; %d codes\nnever succeeded: %q\nnever in this state: %q",
		len(v.lengths), v.median(), len(v.refused), len(v.events), len(v.codes), calls, cells)
}
