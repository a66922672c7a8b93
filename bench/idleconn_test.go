package main

import (
	"context"

	dat "godat/runtime"
)

// idleConnTargets measures the heap of Conns that do nothing, both ends of which are in this
// process. It does not depend on the number of processors.
func idleConnTargets(c contest) (list []target) {
	if c.procs > 1 {
		return nil
	}
	for _, over := range []string{"loop", overLocalhost} {
		list = append(list, target{"T16", "KB of heap of an idle Conn over " + over, exactly(idleConn(over, c.most()/20)), false, 16})
	}
	return list
}

// idleConn makes n connections with the usual depth, and returns the heap of an end in KB.
func idleConn(over string, n int) float64 {
	ctx := context.Background()
	ia := must(dat.Open(ctx, over))
	ln := must(ia.Listen(ctx, "", dat.ConnConfig{Conns: 2 * n}))
	before := measure()
	for range n {
		must(ln.Dial(ln.Addr(), nil))
		must(ln.Accept(dat.RequestOf(<-ln.Requests()), nil))
		for range 2 {
			check((<-ln.Events()).Err())
		}
	}
	added := measure().Heap - before.Heap
	check(ia.Close())
	return float64(added) / 1000 / float64(2*n)
}
