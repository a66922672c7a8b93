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
	// Immutable after start. One of poller and driver is there.
	dev    hw.Polled
	poller *poller
	driver *driver
	depth  int // of a queue, unless more is asked for
	limit  int
	rounds int // of feeders
	to     completer
	report func(hw.AsyncEvent)

	mu      sync.Mutex
	lanes   map[hw.CQ]*lane
	owned   map[*evd.Dispatcher][]*lane // of no dispatcher too
	feeders map[*evd.Dispatcher]*feeder // those that are not stopping
	made    uint32                      // tags there ever were
	tags    []uint32                    // free ones, which rested longest first
	wakers  []*waker                    // without a feeder
	running sync.WaitGroup
	closed  bool
}

var _ ep.CQPool = (*cqPool)(nil)

// newCQPool makes a pool, with who empties its queues.
func newCQPool(dev hw.Polled, attr hw.Attr, cfg PollerConfig, report func(hw.AsyncEvent)) *cqPool {
	depth := cfg.CQDepth
	if depth <= 0 {
		depth = defaultCQDepth
	}
	p := &cqPool{
		dev: dev, depth: min(depth, attr.MaxCQDepth), limit: attr.MaxCQDepth,
		rounds: cfg.FeederRounds, report: report,
		lanes: make(map[hw.CQ]*lane), owned: make(map[*evd.Dispatcher][]*lane), feeders: make(map[*evd.Dispatcher]*feeder),
	}
	if cfg.ConsumerPolls {
		p.driver = newDriver(dev, cfg, report)
	} else {
		p.poller = newPoller(dev, cfg, report)
	}
	return p
}

// start starts who empties the queues. to takes the completions.
func (p *cqPool) start(to completer) error {
	p.to = to
	if p.driver != nil {
		return p.driver.start(to)
	}
	return p.poller.start()
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
	for _, l := range p.owned[d] {
		if l.silent == silent && l.depth-l.used >= entries {
			l.used += entries
			return l.cq, nil
		}
	}
	l := &lane{owner: d, depth: max(entries, p.depth), silent: silent, used: entries}
	if err := p.open(l); err != nil {
		return nil, err
	}
	if d != nil && p.stirs(l) {
		d.SetStir(p.stir)
	}
	return l.cq, nil
}

// stirs reports whether the queue's dispatcher must have the device looked at.
func (p *cqPool) stirs(l *lane) bool { return l.silent || p.driver != nil }

// stir has the device looked at.
func (p *cqPool) stir(how evd.Look) {
	if p.driver != nil {
		p.driver.stir(how)
	} else {
		p.poller.stir()
	}
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

// open makes a completion queue and the way from it to its dispatcher. The poller
// and the feeder know the lane before the device knows the queue, so no completion
// finds nobody. mu is held.
func (p *cqPool) open(l *lane) error {
	if p.poller != nil {
		if err := p.startFeeder(l); err != nil {
			return hw.Errorf("runtime.CQPool.Attach", hw.InsufficientResources, hw.ResourceTEVD, "%w", err)
		}
	}
	p.publish(l)
	cq, err := p.dev.NewCQ(hw.CQConfig{Depth: l.depth, Tag: l.tag, SolicitedOnly: l.silent})
	if err != nil {
		p.unpublish(l)
		return err
	}
	l.cq = cq
	p.lanes[cq] = l
	p.owned[l.owner] = append(p.owned[l.owner], l)
	p.dev.Wake() // a poller that sleeps has not armed this one
	return nil
}

// dropLane forgets a lane that is empty for good: the ends of both queues of its
// last queue pair came through it. mu is held.
func (p *cqPool) dropLane(l *lane) {
	delete(p.lanes, l.cq)
	rest := slices.DeleteFunc(p.owned[l.owner], func(o *lane) bool { return o == l })
	p.owned[l.owner] = rest
	if len(rest) == 0 {
		delete(p.owned, l.owner)
	}
	if l.owner != nil && p.stirs(l) && !slices.ContainsFunc(rest, p.stirs) {
		l.owner.SetStir(nil)
	}
	p.unpublish(l)
}

// publish gives the lane a tag, and a pinned poller and its feeder the lane. mu is
// held.
func (p *cqPool) publish(l *lane) {
	if len(p.tags) > 0 {
		l.tag, p.tags = p.tags[0], p.tags[1:]
	} else {
		l.tag = p.made
		p.made++
	}
	if l.feeder != nil {
		p.poller.know(l.tag, l)
		l.feeder.add(l)
	}
}

// unpublish takes publish back, and ends a feeder that has no other lane. mu is held.
func (p *cqPool) unpublish(l *lane) {
	p.tags = append(p.tags, l.tag)
	f := l.feeder
	if f == nil {
		return
	}
	p.poller.know(l.tag, nil)
	f.remove(l)
	if len(*f.lanes.Load()) == 0 {
		delete(p.feeders, l.owner)
		f.stop()
	}
}

// startFeeder has a lane emptied by the goroutine of its dispatcher, which it starts
// with the first. mu is held.
func (p *cqPool) startFeeder(l *lane) error {
	f := p.feeders[l.owner]
	if f == nil {
		w, err := p.takeWaker()
		if err != nil {
			return err
		}
		f = newFeeder(p.to, p.rounds, p.report, p.poller, w, p.feederEnded)
		p.feeders[l.owner] = f
		p.running.Add(1)
		go f.run()
	}
	l.carry(f)
	return nil
}

// takeWaker finds or makes a waker. mu is held.
func (p *cqPool) takeWaker() (*waker, error) {
	n := len(p.wakers)
	if n == 0 {
		return newWaker()
	}
	w := p.wakers[n-1]
	p.wakers = p.wakers[:n-1]
	return w, nil
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
		return l.owner
	}
	return nil
}

// close ends the feeders, and then the poller and what they share, or the driver.
// Queue pairs are closed; of a queue that is still attached, completions are lost.
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
	if p.driver != nil {
		p.driver.stop()
	} else {
		p.poller.stop()
	}
	for _, w := range p.wakers {
		errs = append(errs, w.close())
	}
	p.wakers = nil
	return errors.Join(errs...)
}
