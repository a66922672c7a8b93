package ep

import (
	"cmp"
	"slices"

	"godat/hw"
)

// PointCounts sum what closed service points of a name counted.
type PointCounts struct {
	Name                                     string // as in String, or of the listener that had the point; "others" of those beyond the first 64 names
	Accepted, Rejected, HandedOff, Overflows uint64 // as in PointSnapshot
	GaveWay, Silent, Descriptors             uint64 // as in hw.ListenerCounts
}

const (
	mostPointNames = 64
	otherPoints    = "others"
)

// endedPoints sum what closed points counted, by name; the mutex of the adapter's list of points guards them.
type endedPoints map[string]*PointCounts

// of has the sums of a name.
func (e *endedPoints) of(name string) *PointCounts {
	if *e == nil {
		*e = make(endedPoints)
	}
	if (*e)[name] == nil && len(*e) >= mostPointNames {
		name = otherPoints
	}
	if (*e)[name] == nil {
		(*e)[name] = &PointCounts{Name: name}
	}
	return (*e)[name]
}

func (c *PointCounts) add(p *pointCounts) {
	c.Accepted += p.accepted
	c.Rejected += p.rejected
	c.HandedOff += p.handedOff
	c.Overflows += p.overflows
}

// leave takes a closed point from the adapter's list and adds its counts to those of the closed ones, in one
// step: each point is in the list or in the sums. Requests that were there are answered yet; answered adds those.
func (p *point) leave() {
	var device hw.ListenerCounts
	if l, ok := p.listener.(hw.CountingListener); ok {
		device = l.Counts()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.adapter
	a.points.mu.Lock()
	defer a.points.mu.Unlock()
	delete(a.points.all, p)
	p.past = a.ended.of(cmp.Or(p.label, p.String()))
	p.past.add(&p.counted)
	p.past.GaveWay += device.GaveWay
	p.past.Silent += device.Silent
	p.past.Descriptors += device.Descriptors
}

// counts counts an answer in n, which is one of p.counted. The caller holds mu.
func (p *point) counts(n *uint64) {
	if p.past == nil {
		*n++
		return
	}
	before := p.counted
	*n++
	now := p.counted
	p.adapter.points.mu.Lock()
	defer p.adapter.points.mu.Unlock()
	p.past.add(&pointCounts{
		now.accepted - before.accepted, now.rejected - before.rejected, now.handedOff - before.handedOff, now.overflows - before.overflows,
	})
}

// countedPoints returns the points that are not closed, in no order, and the sums of the others, by name.
func (a *pointRegistry) countedPoints() (points []*point, ended []PointCounts) {
	a.points.mu.Lock()
	defer a.points.mu.Unlock()
	for _, c := range a.ended {
		ended = append(ended, *c)
	}
	slices.SortFunc(ended, func(x, y PointCounts) int { return cmp.Compare(x.Name, y.Name) })
	return a.points.values(), ended
}
