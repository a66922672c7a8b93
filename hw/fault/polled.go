package fault

import (
	"slices"

	"godat/hw"
)

// completionQueue wraps a completion queue. Completions wait in it until the owner
// polls.
type completionQueue struct {
	hw.CQ
	dev *device
	cfg hw.CQConfig
	out []hw.WC // guarded by dev.mu
}

// add appends completions. It wakes the poller, unless that is inside Poll and finds
// them before it returns.
func (c *completionQueue) add(wcs []hw.WC) {
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
func (c *completionQueue) Close() error {
	if err := c.CQ.Close(); err != nil {
		return err
	}
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	c.dev.cqs = slices.DeleteFunc(c.dev.cqs, func(o *completionQueue) bool { return o == c })
	return nil
}

// polled implements [hw.Polled] and [hw.Sleeper] for a wrapped device. Arm, Wait and Wake are the inner
// device's.
type polled struct {
	hw.Polled
	d *device
}

// NewCQ implements [hw.Polled].
func (p polled) NewCQ(cfg hw.CQConfig) (hw.CQ, error) {
	inner, err := p.Polled.NewCQ(cfg)
	if err != nil {
		return nil, err
	}
	c := &completionQueue{CQ: inner, dev: p.d, cfg: cfg}
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	p.d.cqs = append(p.d.cqs, c)
	return c, nil
}

// Sleep implements [hw.Sleeper]. It is Wait if the inner device is none.
func (p polled) Sleep() error {
	if s, ok := p.Polled.(hw.Sleeper); ok {
		return s.Sleep()
	}
	return p.Wait()
}

// Poll implements [hw.Polled]. It polls the inner device until there is a completion for
// the caller, or the inner device has none. The wrapper may hold or drop the completions
// of one inner poll, and a Poll that returns 0 lets the poller go to sleep while the
// inner device has more.
func (p polled) Poll(wcs []hw.WC) int {
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
		n := p.Polled.Poll(wcs)
		for _, wc := range wcs[:n] {
			d.route(wc)
		}
		d.mu.Lock()
		last = n == 0
	}
}

// route hands a polled completion to its queue pair.
func (d *device) route(wc hw.WC) {
	index := int(wc.ID >> idIndexShift & idIndexMask)
	dir := direction(wc.ID >> idKindShift & 1)
	switch wc.ID >> idKindShift {
	case idEnd:
		dir = direction(uint32(wc.ID))
	case idSRQ:
		index, dir = int(wc.QP), receiving
	}
	s := &d.queuePairs()[index].queues[dir]
	s.take(wc)
	s.progress()
}

// takeOut moves waiting completions to the caller, from each queue in turn, with d.mu
// held.
func (d *device) takeOut(wcs []hw.WC) (n int) {
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
