package storage

import (
	"fmt"
	"math"
	"strings"

	"godat/bench/load"
	"godat/bench/stats"
)

// The bounds of what an adapter does by itself, at each load: it may take so much more processor time
// than the better of a channel and polling, and so much longer in the median than a channel.
const (
	mostProcessor = 1.2
	mostP50       = 1.1
	mostIdle      = 0.5 // percent of a core
)

// better is the lesser of two rows' figures in each turn.
func better(a, b []float64) (list []float64) {
	for i := range min(len(a), len(b)) {
		list = append(list, math.Min(a[i], b[i]))
	}
	return list
}

// dominated says where the row of a program that sets nothing is beyond its bounds: at which loads of a
// place, and by how much.
func (s *Study) dominated(p Place) string {
	name := p.unset()
	var beyond []string
	all := 0
	for _, l := range loads(s.Rates, s.Depths) {
		own, one, other := s.at[key{p, name, l}], s.at[key{p, channel, l}], s.at[key{p, poll, l}]
		if own == nil || one == nil || other == nil || own.refused != nil || one.refused != nil || other.refused != nil || !own.known() {
			continue
		}
		all++
		if l.Idle {
			if idle := median(own.share()); idle > mostIdle {
				beyond = append(beyond, fmt.Sprintf("idle: %.2g %% of a core", idle))
			}
			continue
		}
		processor := stats.Of(quotients(own.processor(), better(one.processor(), other.processor())))
		p50 := stats.Of(quotients(own.p50(), one.p50()))
		if processor.Median > mostProcessor {
			beyond = append(beyond, fmt.Sprintf("%v: %.2f (%.2f–%.2f) times the processor time of the better", l, processor.Median, processor.Low, processor.High))
		}
		if p50.Median > mostP50 && l.Rate != load.Closed && !one.saturated() {
			beyond = append(beyond, fmt.Sprintf("%v: %.2f (%.2f–%.2f) times the median latency of a channel", l, p50.Median, p50.Low, p50.High))
		}
	}
	text := fmt.Sprintf("What a program gets that sets nothing (%s) is to take at most %v times the processor time of the better of a channel and polling, %v times the median latency of a channel, and %v %% of a core when idle. On %v, of %d loads, ",
		name, mostProcessor, mostP50, mostIdle, p, all)
	if beyond == nil {
		return text + "none is beyond.\n\n"
	}
	return text + "these are beyond:\n\n- " + strings.Join(beyond, "\n- ") + "\n\n"
}
