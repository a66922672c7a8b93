package main

import (
	"fmt"
	"io"
	"time"

	"godat/bench/host"
)

// quiet counts turns of a measurement, and those during which other programs used the processors. nil
// counts none.
type quiet struct {
	watch            func() host.Disturbed
	turns, disturbed int
}

// turn runs a turn, during which all that this program uses of the processors is the measurement's.
func (q *quiet) turn(run func()) {
	if q == nil {
		run()
		return
	}
	disturbed := q.watch()
	before, known := host.ProcessorTime()
	run()
	after, _ := host.ProcessorTime()
	ours := after - before
	if !known {
		ours = -1
	}
	q.count(disturbed, ours)
}

// count counts a turn that has ended, of which ours is the processor time that was measured.
func (q *quiet) count(disturbed host.Disturbed, ours time.Duration) {
	q.turns++
	if disturbed(ours) {
		q.disturbed++
	}
}

// why says why the machine could not answer; it is empty if it could. repeats is how many there were of
// each figure; of a figure that has no interval it is 0.
func (q *quiet) why(repeats int) string {
	switch {
	case q.turns == 0:
		return "nothing was measured"
	case 2*q.disturbed > q.turns:
		return fmt.Sprintf("other programs used over a quarter of the processors during %d of %d turns", q.disturbed, q.turns)
	case repeats > 0 && repeats < fewest:
		return fmt.Sprintf("an interval takes %d repeats, and it has %d", fewest, repeats)
	}
	return ""
}

// tell writes as the first line whether the machine could answer, and is an error if it could not.
func (q *quiet) tell(out io.Writer, repeats int) error {
	if why := q.why(repeats); why != "" {
		fmt.Fprintf(out, "This machine could not answer: %s.\n", why)
		return fmt.Errorf("%w: %s", errUnable, why)
	}
	fmt.Fprintf(out, "This machine could answer: %d of %d turns were undisturbed.\n", q.turns-q.disturbed, q.turns)
	return nil
}

// fewest is the least number of repeats that have an interval.
const fewest = 6
