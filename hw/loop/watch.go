package loop

import (
	"sync"
	"sync/atomic"
	"time"

	"godat/internal/labels"
	"godat/internal/yield"
)

// The watch looks once per eighth of the shortest wait, within these bounds.
const (
	minTick = time.Millisecond
	maxTick = 100 * time.Millisecond
)

// leastLate is from which lateness on a look does not count. This process was paused, or has more
// to do than it can, so whoever posts the receives ran as little as the watch.
const leastLate = 500 * time.Millisecond

// never is no position in a queue.
const never = ^uint64(0)

// watch fails sends that have waited too long for a receive. The data path only puts a
// pipe on the watch's list, when a send stalls and the pipe is not there yet; it never
// reads the clock. The watch does, and runs only while the list is not empty; its goroutine
// begins with the first pipe. A send waits for its NotReady at least, and two ticks longer at most;
// the time before a look that comes late does not count.
type watch struct {
	wake, quit chan struct{}
	wg         sync.WaitGroup

	mu   sync.Mutex // a leaf: a pipe's holder takes it; its holder takes no other lock
	list *pipe
	last time.Duration // when the last round was
	tick time.Duration // from then to the next round, 0 if the list was empty
	runs bool          // the goroutine has begun
}

// watched is what a watch records of a pipe.
type watched struct {
	listed atomic.Bool // the pipe is on the watch's list

	// Guarded by the watch's lock; while the watch expires the pipe, its alone.
	next      *pipe
	seenAt    uint64        // position of the send that waited when the watch last looked
	seenSince time.Duration // when the watch first saw that send wait, later by the time that does not count
}

// stop ends the watch.
func (w *watch) stop() {
	close(w.quit)
	w.wg.Wait()
}

// add puts a pipe, whose stalled bit is set, on the list. If the pipe is on the list
// already, look sees the bit later; if look has taken it off, add puts it on again.
func (w *watch) add(p *pipe) {
	if p.watched.listed.Load() {
		return
	}
	w.mu.Lock()
	if !w.runs {
		w.runs = true
		w.wg.Add(1)
		go w.run()
	}
	hurry := w.list == nil || p.tick() < w.tick
	if !p.watched.listed.Load() {
		p.watched.listed.Store(true)
		p.watched.seenAt = never
		p.watched.next, w.list = w.list, p
	}
	w.mu.Unlock()
	if hurry {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// tick is how often the watch must look at a pipe.
func (p *pipe) tick() time.Duration {
	return max(minTick, min(maxTick, p.from.qp.Cfg.NotReady/8))
}

var watchLabel = labels.Of("loop: sends without receives")

// run is the watch's goroutine.
func (w *watch) run() {
	watchLabel.Set()
	defer w.wg.Done()
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.wake:
		case <-timer.C:
		case <-w.quit:
			return
		}
		if tick := w.look(time.Since(start)); tick > 0 {
			timer.Reset(tick)
		}
	}
}

// look goes through the list once and returns the time until the next look, 0 to wait
// until add wakes the watch.
func (w *watch) look(now time.Duration) time.Duration {
	var late *pipe // the pipes whose time is up
	w.mu.Lock()
	list, uncounted := w.list, time.Duration(0)
	if passed := now - w.last; w.tick > 0 && passed-w.tick > leastLate {
		uncounted = passed
	}
	w.list, w.last, w.tick = nil, now, 0
	for list != nil {
		p := list
		list = p.watched.next
		if !p.staysListed() {
			continue
		}
		at := p.stalledAt.Load()
		if p.watched.seenAt != at {
			p.watched.seenAt, p.watched.seenSince = at, now
		} else {
			p.watched.seenSince += uncounted
		}
		if now-p.watched.seenSince >= p.from.qp.Cfg.NotReady {
			p.expiredAt.Store(at)
			p.watched.next, late = late, p
			continue
		}
		p.watched.next, w.list = w.list, p
		if t := p.tick(); w.tick == 0 || t < w.tick {
			w.tick = t
		}
	}
	tick := w.tick
	w.mu.Unlock()
	w.expire(late)
	return tick
}

// staysListed decides whether a pipe stays on the list. A pipe whose send no longer waits
// leaves it, unless another send stalls at this moment: see add.
func (p *pipe) staysListed() bool {
	if p.attention.Load()&(stalled|broken) == stalled {
		return true
	}
	yield.Point()
	p.watched.listed.Store(false)
	yield.Point()
	if p.attention.Load()&(stalled|broken) == stalled {
		p.watched.listed.Store(true)
		return true
	}
	return false
}

// expire fails the sends of these pipes, which are off the list but marked as on it.
// A pipe that meanwhile stalled on another send enters the list again when it is
// kicked.
func (w *watch) expire(late *pipe) {
	for late != nil {
		p := late
		late = p.watched.next
		p.watched.listed.Store(false)
		p.attention.Or(expired)
		p.kick()
	}
}
