package main

import (
	"fmt"

	"godat/bench/host"
	"godat/bench/stats"
)

// endingTargets measures what ends: regions beside idle connections, and streams that echo,
// half-close and close at once. It does so with one processor.
func endingTargets(c contest) (list []target) {
	if c.procs > 1 {
		return nil
	}
	check(host.LimitFiles(crowdFiles))
	idle, broken := c.most()*2/5, 0
	what := fmt.Sprintf("Register and Free beside %d idle connections / beside one", idle)
	list = append(list, target{"T17", what, regionsBeside(c, idle), false, 2})
	for _, n := range []int{c.most() / 20, c.most() / 5, c.most() / 2} {
		plain := min(n, c.most()/5)
		var ratios []float64
		for range min(c.repeats, 6) {
			ours, theirs := streamStorm(overLocalhost, n), plainStorm(plain)
			broken += ours.broken
			ratios = append(ratios, ours.took.Seconds()/float64(n)/(theirs.took.Seconds()/float64(plain)))
		}
		what := fmt.Sprintf("%d streams that echo, half-close and close / %d net.Conns, each", n, plain)
		list = append(list, target{"T17", what, stats.Of(ratios), false, 5})
	}
	return append(list, target{"T17", "streams of these that broke", exactly(float64(broken)), false, 0})
}

// regionsBeside estimates the time of a region beside n idle connections divided by that beside
// one.
func regionsBeside(c contest, n int) stats.Estimate {
	few, many := newStormSide(overLocalhost), newStormSide(overLocalhost)
	few.grow(1)
	many.grow(n)
	a, b := must(few.accepting.NewPZ()), must(many.accepting.NewPZ())
	var ratios []float64
	for range c.repeats {
		alone := regionTime(a)
		ratios = append(ratios, float64(regionTime(b))/float64(alone))
	}
	check(a.Close())
	check(b.Close())
	check(few.close())
	check(many.close())
	return stats.Of(ratios)
}
