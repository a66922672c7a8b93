package runtime

import (
	"errors"
	"slices"
	"sync"

	"godat/ep"
	"godat/evd"
	"godat/hw"
)

// defaultCQDepth makes a ring of 1024 places, the 32 included that it has beyond
// the depth.
const defaultCQDepth = 992

// cqPool lends completion queues on a polled device. Each belongs to one
// dispatcher, and is shared by as many queue pairs as it has room for: they
// attach with their depths, so it can't overrun and is never resized. Those of a
// dispatcher that notifies when solicited only do not wake the poller for else.
type cqPool struct {
	// Immutable after newCQPool.
	dev    hw.Polled
	poller *poller
	depth  int // of a queue, unless more is asked for
	limit  int
	rounds int // of feeders
	to     completer
	report func(hw.AsyncEvent)

	mu      sync.Mutex
	feeders map[*evd.Dispatcher]*feeder // those that are not stopping; of no dispatcher too
	lanes   map[hw.CQ]*lane
	tags    []uint32 // free ones, which rested longest first
	wakers  []*waker // without a feeder
	running sync.WaitGroup
	closed  bool
}

var _ ep.CQPool = (*cqPool)(nil)

// newCQPool makes a pool. to takes the completions; it is called from feeders.
func newCQPool(dev hw.Polled, attr hw.Attr, cfg PollerConfig, p *poller, report func(hw.AsyncEvent)) *cqPool {
	depth := cfg.CQDepth
	if depth <= 0 {
		depth = defaultCQDepth
	}
	return &cqPool{
		dev: dev, poller: p, depth: min(depth, attr.MaxCQDepth), limit: attr.MaxCQDepth,
		rounds: cfg.FeederRounds, report: report,
		feeders: make(map[*evd.Dispatcher]*feeder), lanes: make(map[hw.CQ]*lane),
	}
}

// Attach implements [ep.CQPool].
func (p *cqPool) Attach(d *evd.Dispatcher, entries int) (hw.CQ, error) {
	const op = "runtime.CQPool.Attach"
	if entries < 1 || entries > p.limit {
		return nil, hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEVD,
			"%d completions at a time, and the device's queues hold %d", entries, p.limit)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, closedIA(op)
	}
	silent := d != nil && d.Solicited()
	f := p.feeders[d]
	if f != nil {
		for _, l := range *f.lanes.Load() {
			if l.silent == silent && l.depth-l.used >= entries {
				l.used += entries
				return l.cq, nil
			}
		}
	} else {
		var err error
		if f, err = p.startFeeder(d); err != nil {
			return nil, hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEVD, "%w", err)
		}
	}
	l, err := p.newLane(f, max(entries, p.depth), silent)
	if err != nil {
		p.stopIfIdle(d, f)
		return nil, err
	}
	l.used = entries
	if silent {
		d.SetStir(p.poller.stir)
	}
	return l.cq, nil
}

// Detach implements [ep.CQPool]. The queue pair is closed. It does not wait for
// the feeder, which may be the caller.
func (p *cqPool) Detach(cq hw.CQ, entries int) {
	p.mu.Lock()
	l := p.lanes[cq]
	if l == nil || l.used < entries {
		p.mu.Unlock()
		panic("runtime: a completion queue was detached more often than attached")
	}
	l.used -= entries
	if l.used > 0 {
		p.mu.Unlock()
		return
	}
	p.dropLane(l)
	p.mu.Unlock()
	if err := cq.Close(); err != nil {
		p.report(hw.AsyncEvent{Kind: hw.AsyncProviderError, CQ: cq, Err: err})
	}
}

// newLane makes a completion queue and the way from it to a feeder. The poller
// knows the lane before the device knows the queue, and the feeder before a queue
// pair does, so no completion finds nobody. mu is held.
func (p *cqPool) newLane(f *feeder, depth int, silent bool) (*lane, error) {
	lanes := slices.Clone(*p.poller.lanes.Load())
	tag := uint32(len(lanes))
	if len(p.tags) > 0 {
		tag, p.tags = p.tags[0], p.tags[1:]
	} else {
		lanes = append(lanes, nil)
	}
	l := newLane(tag, depth, f, silent)
	lanes[tag] = l
	p.poller.lanes.Store(&lanes)
	cq, err := p.dev.NewCQ(hw.CQConfig{Depth: depth, Tag: tag, SolicitedOnly: silent})
	if err != nil {
		p.unpublish(l)
		return nil, err
	}
	l.cq = cq
	p.lanes[cq] = l
	f.add(l)
	p.dev.Wake() // a poller that sleeps has not armed this one
	return l, nil
}

// dropLane forgets a lane that is empty for good: the ends of both queues of its
// last queue pair came through it. mu is held.
func (p *cqPool) dropLane(l *lane) {
	delete(p.lanes, l.cq)
	p.unpublish(l)
	l.feeder.remove(l)
	for d, f := range p.feeders {
		if f != l.feeder {
			continue
		}
		if l.silent && !slices.ContainsFunc(*f.lanes.Load(), func(o *lane) bool { return o.silent }) {
			d.SetStir(nil)
		}
		p.stopIfIdle(d, f)
	}
}

// unpublish takes a lane from the poller. mu is held.
func (p *cqPool) unpublish(l *lane) {
	lanes := slices.Clone(*p.poller.lanes.Load())
	lanes[l.tag] = nil
	p.poller.lanes.Store(&lanes)
	p.tags = append(p.tags, l.tag)
}

// startFeeder starts the goroutine of a dispatcher. mu is held.
func (p *cqPool) startFeeder(d *evd.Dispatcher) (*feeder, error) {
	var w *waker
	if n := len(p.wakers); n > 0 {
		w, p.wakers = p.wakers[n-1], p.wakers[:n-1]
	} else {
		var err error
		if w, err = newWaker(); err != nil {
			return nil, err
		}
	}
	f := newFeeder(p.to, p.rounds, p.report, p.poller, w, p.feederEnded)
	p.feeders[d] = f
	p.running.Add(1)
	go f.run()
	return f, nil
}

// stopIfIdle ends a feeder that has no lane. mu is held.
func (p *cqPool) stopIfIdle(d *evd.Dispatcher, f *feeder) {
	if len(*f.lanes.Load()) == 0 {
		delete(p.feeders, d)
		f.stop()
	}
}

// feederEnded takes a feeder's waker back. It is not closed before the poller
// has ended: the thread may still be about to wake the feeder that it belonged
// to, and must not write to what has become another file by then. Whoever has it
// next is woken once for nothing.
func (p *cqPool) feederEnded(f *feeder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wakers = append(p.wakers, f.waker)
	p.running.Done()
}

// dispatcher is the one that a queue's completions go to; nil if there is none.
func (p *cqPool) dispatcher(cq hw.CQ) *evd.Dispatcher {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.lanes[cq]; l != nil {
		for d, f := range p.feeders {
			if f == l.feeder {
				return d
			}
		}
	}
	return nil
}

// close ends the feeders, and then the poller and what they share. Queue pairs
// are closed; of a queue that is still attached, completions are lost.
func (p *cqPool) close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	var errs []error
	for cq, l := range p.lanes {
		p.dropLane(l)
		errs = append(errs, cq.Close())
	}
	p.mu.Unlock()
	p.running.Wait()
	p.poller.stop()
	for _, w := range p.wakers {
		errs = append(errs, w.close())
	}
	p.wakers = nil
	return errors.Join(errs...)
}
