package ep

import (
	"cmp"
	"slices"

	"godat/hw"
)

const (
	mostPointNames = 64
	otherPoints    = "others"
)

// endedPoints sum what closed points counted, by name; the mutex of the adapter's list of points guards them.
type endedPoints map[string]*PointSnapshot

// of has the sums of a name.
func (e *endedPoints) of(name string) *PointSnapshot {
	if *e == nil {
		*e = make(endedPoints)
	}
	if (*e)[name] == nil && len(*e) >= mostPointNames {
		name = otherPoints
	}
	if (*e)[name] == nil {
		(*e)[name] = &PointSnapshot{Name: name, Device: new(hw.ListenerCounts)}
	}
	return (*e)[name]
}

func (s *PointSnapshot) add(p *pointCounts) {
	s.Accepted += p.accepted
	s.Rejected += p.rejected
	s.HandedOff += p.handedOff
	s.Overflows += p.overflows
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
	p.past.Device.GaveWay += device.GaveWay
	p.past.Device.Silent += device.Silent
	p.past.Device.Descriptors += device.Descriptors
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
func (a *pointRegistry) countedPoints() (points []*point, ended []PointSnapshot) {
	a.points.mu.Lock()
	defer a.points.mu.Unlock()
	for _, c := range a.ended {
		one := *c
		one.Device = new(*c.Device)
		ended = append(ended, one)
	}
	slices.SortFunc(ended, func(x, y PointSnapshot) int { return cmp.Compare(x.Name, y.Name) })
	return a.points.values(), ended
}
