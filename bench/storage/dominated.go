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

// excess is a load at which the row of a program that sets nothing is beyond a bound: by processor time, or
// by median latency.
type excess struct {
	load      Load
	processor bool
	ratio     stats.Estimate
}

// String says it for a list.
func (e excess) String() string {
	figure := "median latency of a channel"
	if e.processor {
		figure = "processor time of the better"
	}
	text := fmt.Sprintf("%v: %.2f (%.2f–%.2f) times the %s", e.load, e.ratio.Median, e.ratio.Low, e.ratio.High, figure)
	if e.sure() {
		return text + ", surely"
	}
	return text
}

// sure reports whether the whole interval is beyond the bound.
func (e excess) sure() bool {
	bound := mostP50
	if e.processor {
		bound = mostProcessor
	}
	return e.ratio.Sure && e.ratio.Low > bound
}

// own is how the row of a program that sets nothing compares in a place: the loads that were compared, and
// what is beyond its bounds.
type own struct {
	loads  []Load
	beyond []excess
	idle   float64 // percent of a core
	hidden int     // rates at which the pacer alone takes most of what a channel does
}

// own compares, for each load of a place.
func (s *Study) own(p Place) (o own) {
	for _, l := range loads(s.Rates, s.Depths) {
		all := s.measured(p, l, p.unset(), channel, poll)
		if all == nil || !all[0].known() {
			continue
		}
		mine, one, other := all[0], all[1], all[2]
		o.loads = append(o.loads, l)
		if l.Idle {
			o.idle = median(mine.share())
			continue
		}
		if paced := s.measured(p, l, pacing); l.Rate.Open() && paced != nil && median(paced[0].processor()) > median(one.processor())/2 {
			o.hidden++
		}
		processor := excess{l, true, stats.Of(stats.Ratios(mine.processor(), better(one.processor(), other.processor())))}
		p50 := excess{l, false, stats.Of(stats.Ratios(mine.p50(), one.p50()))}
		if processor.ratio.Median > mostProcessor {
			o.beyond = append(o.beyond, processor)
		}
		if p50.ratio.Median > mostP50 && !one.saturated() {
			o.beyond = append(o.beyond, p50)
		}
	}
	return o
}

// dominated says where the row of a program that sets nothing is beyond its bounds: at which loads of a
// place, and by how much.
func (s *Study) dominated(p Place) string {
	o := s.own(p)
	text := fmt.Sprintf("What a program gets that sets nothing (%s) is to take at most %v times the processor time of the better of a channel and polling, %v times the median latency of a channel, and %v %% of a core when idle. On %v, of %d loads, ",
		p.unset(), mostProcessor, mostP50, mostIdle, p, len(o.loads))
	var lines []string
	if o.idle > mostIdle {
		lines = append(lines, fmt.Sprintf("idle: %.2g %% of a core", o.idle))
	}
	for _, e := range o.beyond {
		lines = append(lines, e.String())
	}
	if lines == nil {
		return text + "none is beyond.\n\n"
	}
	return text + "these are beyond:\n\n- " + strings.Join(lines, "\n- ") + "\n\n"
}

// unset says how a program that sets nothing fares, in all places together.
func (p *Page) unset() string {
	rates, full, hidden := 0, 0, 0
	type count struct {
		rates, full         int
		sureRates, sureFull int
		most                float64 // at saturation
	}
	var processor, latency count
	for _, place := range p.study.Places {
		o := p.study.own(place)
		hidden += o.hidden
		for _, l := range o.loads {
			switch {
			case l.Idle:
			case l.Rate == load.Closed:
				full++
			default:
				rates++
			}
		}
		for _, e := range o.beyond {
			of := &latency
			if e.processor {
				of = &processor
			}
			sure := 0
			if e.sure() {
				sure = 1
			}
			if e.load.Rate == load.Closed {
				of.full, of.sureFull = of.full+1, of.sureFull+sure
				of.most = max(of.most, e.ratio.Median)
			} else {
				of.rates, of.sureRates = of.rates+1, of.sureRates+sure
			}
		}
	}
	saturated := func(n count) string {
		if n.full == 0 {
			return "none"
		}
		return fmt.Sprintf("%s; %.1f times at most", surely(n.full, n.sureFull), n.most)
	}
	masks := ""
	if hidden > 0 {
		masks = fmt.Sprintf("\nAt %d of the rates the load generator (*pacer*) alone takes over half of a channel's processor time, so a difference between polling and a channel would not show there.\n", hidden)
	}
	return fmt.Sprintf("Target and host as they come take events in batches, and the adapter decides when to poll. *Surely*: the whole 95 %% interval is above the row's factor.\n\n| target and host, as they come, take | at how many of %d rates | at how many of %d loads at saturation |\n| --- | --- | --- |\n| over %v times the processor time of polling or of a channel, whichever takes less | %s | %s |\n| over %v times a channel's median latency | %s | %s |\n%s",
		rates, full, mostProcessor, surely(processor.rates, processor.sureRates), saturated(processor),
		mostP50, surely(latency.rates, latency.sureRates), saturated(latency), masks)
}

// surely is a number of loads, and of how many of them the whole interval is beyond the bound.
func surely(n, sure int) string {
	switch {
	case n == 0:
		return "none"
	case sure == 0:
		return fmt.Sprintf("%d, surely at none", n)
	}
	return fmt.Sprintf("%d, surely at %d", n, sure)
}
