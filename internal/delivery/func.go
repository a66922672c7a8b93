package delivery

import (
	"sync/atomic"

	"godat/hw"
	"godat/hw/event"
)

// Func is the way of a dispatcher whose events a function gets at once: see evd.Config.Func.
// The events take no places, so every post is admitted and nothing is counted.
var Func = &Way{Name: "func", Placeless: true, Helps: true, Begin: func(q *Queue, cfg *Config) {
	q.places.limit.Store(0)
	q.placeless = true
	q.SinkTo(&function{q: q, call: cfg.Func})
}}

// function is delivery by a call of a function.
type function struct {
	q    *Queue
	call func(event.Event)
	over atomic.Bool // the last event was delivered
}

// FuncRoute has call hear of the completions of the operations whose cookie, masked, is value, and of
// each success of a suppressed request among them, which makes no event elsewhere. The
// route is for good, has no channel, and its events take no places. The dispatcher's maker calls it
// before the first post.
func (d *Dispatcher) FuncRoute(mask, value uint64, call Completed) {
	r := &Route{mask: mask, value: value}
	r.queue.d, r.queue.placeless = d, true
	r.queue.SinkTo(call)
	r.queue.filter = func(source any, _ event.Number, status hw.Status, cookie uint64, _ any) bool { // of suppressed requests
		call(source, status, cookie)
		return false
	}
	d.routes.add(r, &d.main)
}

// Completed is a function that hears what has completed, and how. Its parameters are in registers,
// where an event is built and copied, which costs more than the function.
type Completed func(source any, status hw.Status, cookie uint64)

// Put calls the function.
func (f Completed) Put(evs []event.Event) {
	for i := range evs {
		f(evs[i].Source, evs[i].Status, evs[i].Cookie)
	}
}

// Success calls the function.
func (f Completed) Success(source any, cookie uint64, _ hw.Op, _ uint32) {
	f(source, hw.StatusSuccess, cookie)
}

// Flush does nothing: what came is delivered.
func (Completed) Flush(bool) {}

// Free does nothing: there are no places.
func (Completed) Free(int) {}

// Counts has nothing to count.
func (Completed) Counts() (came uint64, listed int) { return 0, 0 }

// Put calls the function.
func (f *function) Put(evs []event.Event) {
	for i := range evs {
		f.call(evs[i])
	}
}

// Success calls the function.
func (f *function) Success(source any, cookie uint64, op hw.Op, length uint32) {
	f.call(event.Event{Number: event.DTOCompletion, Op: op, Length: length, Cookie: cookie, Source: source})
}

// Flush delivers the listed events, and the last one once the dispatcher is closed.
func (f *function) Flush(all bool) {
	if !all {
		return
	}
	var ev event.Event
	for f.q.d.async.count.Load() != 0 && f.q.d.async.pop(&ev) {
		f.call(ev)
	}
	if f.q.closed() && f.over.CompareAndSwap(false, true) && f.q.d.last != nil {
		f.call(*f.q.d.last)
	}
}

// Free does nothing: there are no places.
func (*function) Free(int) {}

// Counts has nothing to count.
func (*function) Counts() (came uint64, listed int) { return 0, 0 }
