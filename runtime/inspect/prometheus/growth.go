package prometheus

import (
	"strings"

	client "github.com/prometheus/client_golang/prometheus"
)

// growth sums counters of objects that come and go: a sum over those that are there would fall when
// one goes.
type growth struct {
	last, now map[place]uint64 // of each object at the scrape before, and at this one
	sum       map[series]uint64
}

// series is a series of a metric, with its labels behind the adapter.
type series struct {
	desc   *client.Desc
	labels string
}

// place is where an object counts.
type place struct {
	object string
	series
}

const labelEnd = "\x00"

// add notes what an object has counted since it was made.
func (g *growth) add(object string, d *client.Desc, n uint64, labels ...string) {
	in := series{d, strings.Join(labels, labelEnd)}
	at := place{object, in}
	if last := g.last[at]; last <= n {
		g.sum[in] += n - last
	} else {
		g.sum[in] += n // another object has the name
	}
	g.now[at] = n
}

// flush tells the sums, and forgets objects that have gone.
func (g *growth) flush(p *scrape) {
	g.last, g.now = g.now, make(map[place]uint64)
	for in, n := range g.sum {
		var labels []string
		if in.labels != "" {
			labels = strings.Split(in.labels, labelEnd)
		}
		p.counter(in.desc, n, labels...)
	}
}
