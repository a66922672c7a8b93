package model

import "fmt"

// cno is a consumer notification object.
type cno struct {
	name  string
	users int
	open  bool
	sure  bool   // it is triggered; otherwise, if there are hints, it may be
	since int    // the step of the call that triggered it
	hints []*evd // the dispatchers one of which the next wait names; nil for one that has left
}

func (w *World) cno(name string) *cno { return object(w.cnos, 'n', name) }

func (w *World) newCNO(c Command, r Result) error {
	w.cnos = append(w.cnos, nil)
	ok, err := new(verdict).judge(r.Code)
	if ok {
		w.cnos[len(w.cnos)-1] = &cno{name: c.On, open: true}
	}
	return err
}

func (w *World) freeCNO(c Command, r Result) error {
	n := w.cno(c.On)
	var v verdict
	v.when(n == nil, invalidHandle)
	v.when(n != nil && n.open && n.users > 0, invalidState|subCNOInUse)
	ok, err := v.judge(r.Code)
	if ok {
		n.open = false
	}
	return err
}

// waitCNO judges a wait that looks once: without a trigger it ends with
// QUEUE_EMPTY.
func (w *World) waitCNO(c Command, r Result) error {
	n := w.cno(c.On)
	var v verdict
	v.when(n == nil || !n.open, invalidHandle)
	if n != nil {
		v.when(len(n.hints) == 0, queueEmpty)
		v.perhaps(!n.sure, queueEmpty)
	}
	ok, err := v.judge(r.Code)
	if n == nil || err != nil {
		return err
	}
	hints := n.hints
	n.sure, n.hints = false, nil
	if !ok {
		return nil
	}
	for _, d := range hints {
		if d == w.at1(r.Values["hint"]) {
			return nil
		}
	}
	return fmt.Errorf("the hint is e%d, which it should not be", r.Values["hint"])
}

// at1 returns a dispatcher by its number; nil for -1.
func (w *World) at1(i int) *evd {
	if i < 0 || i >= len(w.evds) {
		return nil
	}
	return w.evds[i]
}

// trigger records that an arrival at d triggers d's CNO or, unless sure, may do so.
// If one call causes arrivals at several dispatchers, any of them may be the first.
func (w *World) trigger(d *evd, sure bool) {
	n := d.cno
	if n == nil || d.disabled || n.sure && n.since != w.step {
		return
	}
	n.hints = append(n.hints, d)
	if sure && !n.sure && d.waiter == nil { // an event goes to a waiter before it triggers
		n.sure, n.since = true, w.step
	}
}

// part removes d from its CNO.
func (d *evd) part() {
	n := d.cno
	if n == nil {
		return
	}
	d.cno = nil
	n.users--
	for i := range n.hints {
		if n.hints[i] == d {
			n.hints[i] = nil
		}
	}
	if n.users == 0 {
		n.sure, n.hints = false, nil
	}
}

// modifyCNO judges a change of a dispatcher's CNO; the new one is triggered if
// events are queued.
func (w *World) modifyCNO(c Command, r Result) error {
	d, n := w.evd(c.On), w.cno(c.Text("cno"))
	v := d.usable()
	v.when(n != nil && !n.open && (d == nil || d.cno != n), invalidHandle)
	ok, err := v.judge(r.Code)
	if !ok || d.cno == n {
		return err
	}
	d.part()
	if d.cno = n; n != nil {
		n.users++
		if len(d.queue) > 0 {
			w.trigger(d, true)
		}
	}
	return nil
}

func (w *World) enable(c Command, r Result) error {
	d := w.evd(c.On)
	v := d.usable()
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	was := d.disabled
	d.disabled = c.Op == "evd_disable"
	if was && !d.disabled && len(d.queue) > 0 {
		w.trigger(d, true)
	}
	return nil
}

func (w *World) unwaitable(c Command, r Result) error {
	d := w.evd(c.On)
	v := d.usable()
	ok, err := v.judge(r.Code)
	if ok {
		d.unwaitable = c.Op == "evd_set_unwaitable"
		if d.unwaitable && d.waiter != nil {
			d.waiter.due, d.waiter.ends = true, invalidState|subUnwaitable
		}
	}
	return err
}

// classOf returns the class of a feed. All feeds of one dispatcher must be of one
// class.
func classOf(flags int) int { return flags & (unsignalled | solicited) }

// feedable reports whether p's feeds go together with each other and with those of
// their dispatchers.
func (p *endpoint) feedable() bool {
	classes := make(map[*evd]int)
	for _, f := range p.feeds() {
		have, some := classes[f.to]
		if !some && f.to.feeds > 0 {
			have, some = f.to.class, true
		}
		if some && have != f.class {
			return false
		}
		classes[f.to] = f.class
	}
	return true
}
