package model

import "slices"

// cno is a consumer notification object.
type cno struct {
	handle
	w         *World
	triggered bool   // otherwise, if there are hints, it may be
	since     int    // the step of the call that triggered it
	hints     []*evd // the dispatchers one of which the next wait names; nil for one that has left
}

func (w *World) newCNO(c *call) { w.cnos.add(c, &cno{w: w, handle: handle{c.On, true}}) }

func (n *cno) free(c *call) { n.handle.free(c, n.used(), invalidState|subCNOInUse) }

// used reports whether the CNO has dispatchers.
func (n *cno) used() bool { return n.w.evds.count(func(d *evd) bool { return d.cno == n }) > 0 }

// wait judges a wait that looks once: without a trigger it ends with QUEUE_EMPTY.
func (n *cno) wait(c *call) {
	c.refuse(len(n.hints) == 0, queueEmpty)
	c.mayRefuse(!n.triggered, queueEmpty)
	if hint := c.Values["hint"]; c.succeeded() && !slices.Contains(n.hints, n.w.evds.at(hint)) {
		c.failf("the hint is e%d, which it should not be", hint)
	}
	n.reset()
}

func (n *cno) reset() { n.triggered, n.hints = false, nil }

// trigger records that an arrival at d triggers d's CNO or, unless certain, may do
// so. If one call causes arrivals at several dispatchers, any of them may be the
// first.
func (d *evd) trigger(certain bool) {
	n := d.cno
	if n == nil || d.disabled || n.triggered && n.since != d.w.step {
		return
	}
	n.hints = append(n.hints, d)
	if certain && !n.triggered && d.waiter == nil { // an event goes to a waiter before it triggers
		n.triggered, n.since = true, d.w.step
	}
}

// leaveCNO removes d from its CNO.
func (d *evd) leaveCNO() {
	n := d.cno
	if n == nil {
		return
	}
	d.cno = nil
	for i := range n.hints {
		if n.hints[i] == d {
			n.hints[i] = nil
		}
	}
	if !n.used() {
		n.reset()
	}
}

// modifyCNO judges a change of a dispatcher's CNO; the new one is triggered if
// events are queued.
func (d *evd) modifyCNO(c *call) {
	n := d.w.cnos.named(c.Text("cno"))
	c.refuse(n != nil && !n.open && d.cno != n, invalidHandle)
	if !c.succeeded() || d.cno == n {
		return
	}
	d.leaveCNO()
	if d.cno = n; len(d.queue) > 0 {
		d.trigger(true)
	}
}

// enable judges that the CNO of a dispatcher is enabled or disabled.
func (d *evd) enable(c *call) {
	if !c.succeeded() {
		return
	}
	was := d.disabled
	d.disabled = c.Op == "evd_disable"
	if was && !d.disabled && len(d.queue) > 0 {
		d.trigger(true)
	}
}

func (d *evd) setUnwaitable(c *call) {
	if !c.succeeded() {
		return
	}
	if d.unwaitable = c.Op == "evd_set_unwaitable"; d.unwaitable {
		d.waiter.end(invalidState | subUnwaitable)
	}
}

// shot is a one-shot: it receives the event of one operation in place of the
// dispatcher.
type shot struct {
	armed bool    // an operation names it
	event *queued // the event that has come and not been waited for; nil for none
}

func (s *shot) usable() bool { return true }

// idle reports whether an operation may name the one-shot.
func (s *shot) idle() bool { return !s.armed && s.event == nil }

func (w *World) newShot(c *call) {
	d := w.evds.named(c.Text("evd"))
	if d == nil {
		w.shots.all = append(w.shots.all, nil)
		return
	}
	d.shots = true
	w.shots.add(c, &shot{})
}

// wait judges a wait on a one-shot that looks once.
func (s *shot) wait(c *call) {
	c.refuse(s.event == nil && s.armed, timeoutExpired)
	c.refuse(s.idle(), invalidState)
	if !c.succeeded() {
		return
	}
	if !s.event.matches(c.Events[0]) {
		c.failf("event %v, should be %v", c.Events[0], s.event.want)
	}
	s.event = nil
}

// releaseShot releases a one-shot, with the event that it has or that is still to
// come.
func (w *World) releaseShot(c *call) {
	if i := Index('o', c.On); w.shots.at(i) != nil {
		w.shots.all[i] = nil
	}
}

// asyncError is an asynchronous error that has not been dequeued. Until then it is
// not reported again.
type asyncError struct{ source string }

const watermark = 2 // the reason of a soft high watermark of an endpoint or a low one of a shared queue

func (w *World) report(source string) {
	if e := (asyncError{source}); !slices.Contains(w.async, e) {
		w.async = append(w.async, e)
	}
}

// dequeueAsync judges the dequeue of all asynchronous errors of the adapter.
func (w *World) dequeueAsync(c *call) {
	for _, e := range c.Events {
		i := slices.IndexFunc(w.async, func(a asyncError) bool {
			return e == Event{Number: asyncEPBroken, Source: a.source, Op: watermark}
		})
		if i < 0 {
			c.failf("event %v, should be of %v", e, w.async)
			return
		}
		w.async = slices.Delete(w.async, i, i+1)
	}
	if len(w.async) > 0 {
		c.failf("no event of %v", w.async)
	}
}
