package hwtest

import "godat/hw"

// faultCQ wraps a completion queue. Completions on their way to the owner wait
// in it for a poll.
type faultCQ struct {
	hw.CQ
	dev *faultDevice
	cfg hw.CQConfig
	out []hw.WC // guarded by dev.mu
}

// add takes completions, and wakes the poller unless it is the one who brings
// them.
func (c *faultCQ) add(wcs []hw.WC) {
	d := c.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, wc := range wcs {
		wc.CQ = c.cfg.Tag
		c.out = append(c.out, wc)
	}
	if !d.polling {
		d.polled.Wake()
	}
}

// Close implements [hw.CQ].
func (c *faultCQ) Close() error {
	if err := c.CQ.Close(); err != nil {
		return err
	}
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	for i, o := range c.dev.cqs {
		if o == c {
			c.dev.cqs = append(c.dev.cqs[:i], c.dev.cqs[i+1:]...)
			break
		}
	}
	return nil
}

// faultPolled is the polled half of a wrapped device.
type faultPolled struct{ d *faultDevice }

// NewCQ implements [hw.Polled].
func (p faultPolled) NewCQ(cfg hw.CQConfig) (hw.CQ, error) {
	inner, err := p.d.polled.NewCQ(cfg)
	if err != nil {
		return nil, err
	}
	c := &faultCQ{CQ: inner, dev: p.d, cfg: cfg}
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	p.d.cqs = append(p.d.cqs, c)
	return c, nil
}

// Poll implements [hw.Polled]. It polls the inner device until something is
// there for the caller: what the inner poll brought may be held or dropped, and
// a poller that is told of nothing goes to sleep.
func (p faultPolled) Poll(wcs []hw.WC) int {
	d := p.d
	if len(wcs) == 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.polling = true
	for last := false; ; {
		if n := d.takeOut(wcs); n > 0 || last {
			d.polling = false
			return n
		}
		d.mu.Unlock()
		n := d.polled.Poll(wcs)
		for _, wc := range wcs[:n] {
			d.route(wc)
		}
		d.mu.Lock()
		last = n == 0
	}
}

// route hands a polled completion to its queue pair.
func (d *faultDevice) route(wc hw.WC) {
	index := int(wc.ID >> faultIndexShift & faultIndexMask)
	dir := direction(wc.ID >> faultKindShift & 1)
	switch wc.ID >> faultKindShift {
	case faultIDEnd:
		dir = direction(uint32(wc.ID))
	case faultIDSRQ:
		index, dir = int(wc.QP), recvQueue
	}
	s := &d.queuePairs()[index].queues[dir]
	s.take(wc)
	s.progress()
}

// takeOut moves waiting completions to the caller, each queue in turn, with
// d.mu held.
func (d *faultDevice) takeOut(wcs []hw.WC) (n int) {
	k := len(d.cqs)
	for i := range k {
		c := d.cqs[(d.turn+i)%k]
		m := copy(wcs[n:], c.out)
		c.out = append(c.out[:0], c.out[m:]...)
		n += m
	}
	if k > 0 {
		d.turn = (d.turn + 1) % k
	}
	return n
}

// Arm implements [hw.Polled].
func (p faultPolled) Arm() error { return p.d.polled.Arm() }

// Wait implements [hw.Polled].
func (p faultPolled) Wait() error { return p.d.polled.Wait() }

// Wake implements [hw.Polled].
func (p faultPolled) Wake() { p.d.polled.Wake() }
