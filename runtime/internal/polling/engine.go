package polling

import (
	"errors"
	"slices"
	"sync"

	"godat/evd"
	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
)

// Completer takes polled completions. The completions of one queue come in order, from
// one goroutine at a time. Complete must not block.
type Completer interface {
	Complete(wcs []hw.WC)
}

// Engine lends the completion queues of a polled device and empties them. Each queue
// belongs to one dispatcher. Queue pairs share a queue as long as it has room: each
// attaches with its depth, so the queue can't overrun and is never resized. A queue of
// a dispatcher that notifies only when solicited wakes the poller for solicited
// completions only.
//
// The methods may be called from any goroutine. Start comes first.
type Engine struct {
	// Immutable after Start. Exactly one of poller and driver is set.
	dev    hw.Polled
	poller *poller
	driver *driver
	depth  int // of a queue, unless an Attach needs more
	limit  int // of a queue's depth
	to     Completer
	report func(hw.AsyncEvent)

	mu         sync.Mutex
	bindings   map[hw.CQ]*cqBinding
	owned      map[*evd.Dispatcher][]*cqBinding // by dispatcher; under nil, those that belong to none
	deliverers map[*evd.Dispatcher]*deliverer   // those that are not stopping
	made       uint32                           // number of tags ever made
	tags       []uint32                         // free tags; the first has been free for longest
	wakers     []*waker                         // wakers without a deliverer
	running    sync.WaitGroup                   // deliverers, those that are stopping included
	closed     bool
}

// New makes an engine for a device whose completion queues can have a depth of
// maxDepth. report takes errors of the device and its queues. It must not block.
func New(dev hw.Polled, maxDepth int, cfg Config, report func(hw.AsyncEvent)) *Engine {
	depth := cfg.CQDepth
	if depth <= 0 {
		depth = defaultCQDepth
	}
	e := &Engine{
		dev: dev, depth: min(depth, maxDepth), limit: maxDepth,
		report:     report,
		bindings:   make(map[hw.CQ]*cqBinding),
		owned:      make(map[*evd.Dispatcher][]*cqBinding),
		deliverers: make(map[*evd.Dispatcher]*deliverer),
	}
	if len(cfg.CPUs) > 0 {
		e.poller = newPoller(dev, cfg, report)
	} else {
		e.driver = newDriver(dev, cfg, report)
	}
	return e
}

// Start starts the poller's thread or the back-stop. to takes the completions. An error
// says that the thread can't run on the processors of Config.CPUs; then the caller must
// close the engine.
func (e *Engine) Start(to Completer) error {
	e.to = to
	if e.driver != nil {
		e.driver.start(to)
		return nil
	}
	return e.poller.start()
}

// Attach lends a completion queue of d with room for that many entries. A nil d means a
// queue that belongs to no dispatcher. Package ep calls it.
func (e *Engine) Attach(d *evd.Dispatcher, entries int) (hw.CQ, error) {
	const op = "polling.Attach"
	if entries < 1 || entries > e.limit {
		return nil, hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEVD,
			"%d completions at a time, and the device's queues hold %d", entries, e.limit)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the interface adapter is closed")
	}
	solicitedOnly := d != nil && wiring(d).Feeds().Config() == delivery.NotifySolicited
	for _, b := range e.owned[d] {
		if b.solicitedOnly == solicitedOnly && b.depth-b.used >= entries {
			b.used += entries
			return b.cq, nil
		}
	}
	b := &cqBinding{dispatcher: d, depth: max(entries, e.depth), solicitedOnly: solicitedOnly, used: entries}
	if err := e.open(b); err != nil {
		return nil, err
	}
	if d != nil && e.isAsked(b) {
		c := wiring(d).Consumer()
		c.SetPollDevice(func(hint delivery.PollHint) { e.pollDevice(c, hint) })
	}
	return b.cq, nil
}

// isAsked reports whether the queue's dispatcher must ask for polls, because a consumer
// that finds the dispatcher empty may not rely on the poller.
func (e *Engine) isAsked(b *cqBinding) bool {
	return b.solicitedOnly || e.driver != nil
}

// pollDevice polls the device, or has it polled. Dispatchers call it.
func (e *Engine) pollDevice(c *delivery.Consumer, hint delivery.PollHint) {
	switch {
	case e.driver != nil:
		e.driver.pollDevice(c, hint)
	case hint != delivery.PollAgain: // the pinned poller polls already
		e.poller.wake()
	}
}

// Detach gives back entries of a queue; with the last entries it closes the queue. The
// queue pair that used them must be closed already. Detach does not wait for the
// deliverer, which may be its caller. Package ep calls it.
func (e *Engine) Detach(cq hw.CQ, entries int) {
	e.mu.Lock()
	b := e.bindings[cq]
	if b == nil || b.used < entries {
		e.mu.Unlock()
		panic("polling: a completion queue was detached more often than attached")
	}
	b.used -= entries
	if b.used > 0 {
		e.mu.Unlock()
		return
	}
	e.drop(b)
	e.mu.Unlock()
	if err := cq.Close(); err != nil {
		e.report(hw.AsyncEvent{Kind: hw.AsyncProviderError, CQ: cq, Err: err})
	}
}

// open makes a completion queue and its way to the dispatcher. The poller and the
// deliverer know the binding before the device knows the queue, so that no completion
// is dropped. mu is held.
func (e *Engine) open(b *cqBinding) error {
	if e.poller != nil {
		if err := e.startDeliverer(b); err != nil {
			return hw.Errorf("polling.Attach", hw.InsufficientResources, hw.ResourceTEVD, "%w", err)
		}
	}
	e.publish(b)
	cq, err := e.dev.NewCQ(hw.CQConfig{Depth: b.depth, Tag: b.tag, SolicitedOnly: b.solicitedOnly})
	if err != nil {
		e.unpublish(b)
		return err
	}
	b.cq = cq
	e.bindings[cq] = b
	e.owned[b.dispatcher] = append(e.owned[b.dispatcher], b)
	e.dev.Wake() // a poller that sleeps has not armed this queue
	return nil
}

// drop forgets a binding. Its ring is empty for good: the last queue pair's two queues
// were flushed through it. mu is held.
func (e *Engine) drop(b *cqBinding) {
	delete(e.bindings, b.cq)
	rest := slices.DeleteFunc(e.owned[b.dispatcher], func(o *cqBinding) bool { return o == b })
	e.owned[b.dispatcher] = rest
	if len(rest) == 0 {
		delete(e.owned, b.dispatcher)
	}
	if b.dispatcher != nil && e.isAsked(b) && !slices.ContainsFunc(rest, e.isAsked) {
		wiring(b.dispatcher).Consumer().SetPollDevice(nil)
	}
	e.unpublish(b)
}

// publish gives the binding a tag. With a pinned poller, the poller and the deliverer
// learn of the binding. mu is held.
func (e *Engine) publish(b *cqBinding) {
	if len(e.tags) > 0 {
		b.tag, e.tags = e.tags[0], e.tags[1:]
	} else {
		b.tag = e.made
		e.made++
	}
	if b.deliverer != nil {
		e.poller.bind(b.tag, b)
		b.deliverer.add(b)
	}
}

// unpublish undoes publish, and stops a deliverer that has no other binding. mu is
// held.
func (e *Engine) unpublish(b *cqBinding) {
	e.tags = append(e.tags, b.tag)
	if b.deliverer == nil {
		return
	}
	e.poller.bind(b.tag, nil)
	if last := b.deliverer.remove(b); last {
		delete(e.deliverers, b.dispatcher)
		b.deliverer.stop()
	}
}

// startDeliverer makes the dispatcher's deliverer empty the binding's ring. With the
// first binding of a dispatcher it starts the deliverer. mu is held.
func (e *Engine) startDeliverer(b *cqBinding) error {
	d := e.deliverers[b.dispatcher]
	if d == nil {
		w, err := e.takeWaker()
		if err != nil {
			return err
		}
		d = newDeliverer(e.to, e.report, e.poller, w, e.delivererEnded)
		e.deliverers[b.dispatcher] = d
		e.running.Add(1)
		go d.run()
	}
	b.carryTo(d)
	return nil
}

// takeWaker takes a free waker or makes one. mu is held.
func (e *Engine) takeWaker() (*waker, error) {
	n := len(e.wakers)
	if n == 0 {
		return newWaker()
	}
	w := e.wakers[n-1]
	e.wakers = e.wakers[:n-1]
	return w, nil
}

// delivererEnded keeps the waker of a deliverer that has ended, for the next deliverer.
// Wakers are closed only after the poller has ended: the thread may still be about to
// wake the old deliverer, and must not write to a descriptor that has become another
// file. Such a late write wakes the next deliverer once for nothing.
func (e *Engine) delivererEnded(d *deliverer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wakers = append(e.wakers, d.waker)
	e.running.Done()
}

// Dispatcher returns the dispatcher that a queue belongs to; nil if there is none.
func (e *Engine) Dispatcher(cq hw.CQ) *evd.Dispatcher {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := e.bindings[cq]; b != nil {
		return b.dispatcher
	}
	return nil
}

// Queues returns how many completion queues are open.
func (e *Engine) Queues() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.bindings)
}

// Asleep reports whether the poller's thread or the back-stop waits for the device, or
// is about to.
func (e *Engine) Asleep() bool {
	if e.driver != nil {
		return e.driver.asleep.Load()
	}
	return e.poller.asleep.Load()
}

// Counts returns what the engine has counted.
func (e *Engine) Counts() hw.PollCounts {
	if e.driver != nil {
		return e.driver.counts.now()
	}
	return e.poller.counts.now()
}

// Way says who polls: a thread, a goroutine, or consumers with the goroutine as their back-stop.
func (e *Engine) Way() string {
	switch {
	case e.driver == nil:
		return "thread"
	case e.driver.away.Load():
		return "consumers"
	}
	return "goroutine"
}

// Close ends the deliverers, and then the poller or the driver. All queue pairs must be
// closed already; completions of a queue that is still attached are lost. A second
// Close does nothing.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	var errs []error
	for cq, b := range e.bindings {
		e.drop(b)
		errs = append(errs, cq.Close())
	}
	e.mu.Unlock()
	e.running.Wait()
	if e.driver != nil {
		e.driver.stop()
	} else {
		e.poller.stop()
	}
	for _, w := range e.wakers {
		errs = append(errs, w.close())
	}
	e.wakers = nil
	return errors.Join(errs...)
}

// wiring returns the part of a dispatcher that only the library's packages use.
func wiring(d *evd.Dispatcher) *delivery.Dispatcher { return d.Wiring(door.Key{}) }
