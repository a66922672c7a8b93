package model

import "fmt"

// asyncError is an asynchronous error that has not been dequeued. Until then it is
// not reported again.
type asyncError struct{ source string }

const (
	asyncEPBroken = 0x08003
	watermark     = 2 // the reason of a soft high watermark of an endpoint or a low one of a shared queue
)

func (w *World) report(source string) {
	for _, a := range w.async {
		if a.source == source {
			return
		}
	}
	w.async = append(w.async, asyncError{source})
}

// dequeueAsync judges the dequeue of all asynchronous errors of the adapter.
func (w *World) dequeueAsync(_ Command, r Result) error {
	if _, err := new(verdict).judge(r.Code); err != nil {
		return err
	}
	for _, e := range r.Events {
		i := -1
		for j, a := range w.async {
			if e == (Event{Number: asyncEPBroken, Source: a.source, Op: watermark}) {
				i = j
			}
		}
		if i < 0 {
			return fmt.Errorf("event %v, should be of %v", e, w.async)
		}
		w.async = append(w.async[:i:i], w.async[i+1:]...)
	}
	if len(w.async) > 0 {
		return fmt.Errorf("no event of %v", w.async)
	}
	return nil
}

// setWatermark judges the bounds on the receives that an endpoint may have taken of
// its shared queue; -1 is no bound.
func (w *World) setWatermark(c Command, r Result) error {
	p := w.ep(c.On)
	v := p.usable()
	v.when(c.Int("soft") < -1 || c.Int("hard") < -1, invalidParameter)
	ok, err := v.judge(r.Code)
	if ok {
		p.watched, p.soft = true, c.Int("soft")
	}
	return err
}

// passed checks the watermarks after p has taken a receive of its shared queue. p
// completes each receive before it takes another.
func (w *World) passed(p *endpoint) {
	if q := p.srq; q.armed && len(q.recvs) < q.low {
		q.armed = false
		w.report(q.name)
	}
	if p.watched && p.soft == 0 {
		p.watched = false
		w.report(p.name)
	}
}

// setLow judges the arming of a shared queue's low watermark; 0 disarms it.
func (w *World) setLow(c Command, r Result) error {
	q, n := w.srq(c.On), c.Int("receives")
	var v verdict
	v.when(q == nil || !q.open, invalidHandle)
	v.when(q != nil && (n < 0 || n > q.depth), invalidParameter)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	q.low, q.armed = n, n > 0
	if q.armed && len(q.recvs) < n {
		q.armed = false
		w.report(q.name)
	}
	return nil
}

// resizeSRQ judges a resize of a shared queue, which keeps the posted receives.
func (w *World) resizeSRQ(c Command, r Result) error {
	q, n := w.srq(c.On), c.Int("recvs")
	var v verdict
	v.when(q == nil || !q.open, invalidHandle)
	v.when(n < 1 || n == tooMany, invalidParameter)
	v.when(q != nil && n < len(q.recvs), invalidState)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	if q.depth = r.Values["recvs"]; q.depth < n {
		return fmt.Errorf("recvs is %d, less than %d", q.depth, n)
	}
	return nil
}

// queryRecvs judges the count of the receives that an endpoint has. They are its
// own, since it completes each receive of a shared queue as it takes it.
func (w *World) queryRecvs(c Command, r Result) error {
	p := w.ep(c.On)
	v := p.usable()
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	return r.check("allocated", len(p.recvs), "spread", 1)
}

// countersEP judges a query of an endpoint's counters.
func (w *World) countersEP(c Command, r Result) error {
	p := w.ep(c.On)
	v := p.usable()
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	return r.check("connects", p.connects, "disconnects", p.disconnects, "requests", p.requests, "receives", p.receives)
}
