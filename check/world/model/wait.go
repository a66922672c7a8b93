package model

// waiter is a wait without a time limit. An arrival or another call ends it.
type waiter struct {
	threshold int
	due       bool // the wait must return
	vague     bool // silent events came, which the wait may or may not have seen before it slept
	ends      Code // the code that the wait returns; success with an event
}

// arrived records the arrival of an event for the wait, if there is one; the
// dispatcher then holds n events.
func (x *waiter) arrived(n int, silent bool) {
	switch {
	case x == nil:
	case silent:
		x.vague = true
	case n >= x.threshold:
		x.due = true
	}
}

// end ends the wait, if there is one, with a code.
func (x *waiter) end(with Code) {
	if x != nil {
		x.due, x.ends = true, with
	}
}

// refuseWait adds what every wait is refused for.
func (d *evd) refuseWait(c *call, threshold int) {
	c.refuse(threshold < 1 || threshold > d.qlen, invalidParameter)
	c.refuse(d.unwaitable, invalidState|subUnwaitable)
	c.refuse(!d.fits(0, nil) && threshold > 1, invalidState)
	c.refuse(d.waiter != nil, invalidState|subWaiter)
}

// wait judges a wait that looks once.
func (d *evd) wait(c *call) {
	n := c.Int("threshold")
	d.refuseWait(c, n)
	c.refuse(len(d.queue) < n, timeoutExpired)
	if c.succeeded() {
		d.takeAll(c)
	}
	if c.Code == success || c.Code == timeoutExpired {
		c.compare("nmore", len(d.queue))
	}
}

// block judges the beginning of a wait without a time limit.
func (d *evd) block(c *call) {
	x := &waiter{threshold: c.Int("threshold")}
	blocked := c.Values["blocked"] != 0
	if blocked && d.unwaitable && d.waiter == nil {
		d.waiter = x
		x.end(invalidState | subUnwaitable) // the driver saw the waiter before its wait was refused
		return
	}
	d.refuseWait(c, x.threshold)
	switch n := len(d.queue); {
	case !c.succeeded():
	case blocked:
		d.waiter = x
		x.due = n >= x.threshold
	case n < x.threshold:
		c.failf("returned with %d events queued", n)
	default:
		d.takeOne(c, x.threshold)
	}
}

// unblock cancels the wait on a dispatcher, if there is one.
func (w *World) unblock(c *call) {
	if d := w.evds.named(c.On); d != nil {
		d.waiter.end(interruptedCall)
	}
}

// Due reports whether the wait on a dispatcher must have returned, and whether that
// can't be told (vague), so that the caller should cancel the wait.
func (w *World) Due(index int) (due, vague bool) {
	if d := w.evds.at(index); d != nil && d.waiter != nil {
		due, vague = d.waiter.due, d.waiter.vague && !d.waiter.due
	}
	return due, vague
}

// Returned judges the result of a wait that has ended.
func (w *World) Returned(index int, r Result) error {
	d := w.evds.at(index)
	x, n, c := d.waiter, len(d.queue), &call{Result: r}
	d.waiter = nil
	if n > 0 {
		d.trigger(false) // a wait that ends makes the CNO look at the events that are left
	}
	switch {
	case r.Code == success && (x.ends == success || x.vague) && n >= x.threshold:
		d.takeOne(c, x.threshold)
	case r.Code != success && (x.due || x.vague) && (r.Code == x.ends || x.vague && r.Code == interruptedCall):
		c.compare("nmore", n)
	default:
		c.failf("a wait on e%d for %d events ended with %v", index, x.threshold, r.Code)
	}
	return c.err
}

// takeOne takes the event that a wait returned. More may have come since.
func (d *evd) takeOne(c *call, threshold int) {
	d.takeAll(c)
	if n := c.Values["nmore"]; n < threshold-1 || n > len(d.queue) {
		c.failf("nmore is %d, should be %d to %d", n, threshold-1, len(d.queue))
	}
}
