package delivery

import (
	"unsafe"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/ring"
)

// The events' way into a queue. Each event has a place there, which its operation has
// reserved.

// Put copies ev and delivers it in one reserved place.
func (q *Queue) Put(ev *event.Event) { q.PutAll(unsafe.Slice(ev, 1)) }

// PutAll delivers evs in order, each in a reserved place, at a fraction of the cost of single
// Puts. An event with the flag Silent does not by itself notify; an error or a connection
// event always does.
func (q *Queue) PutAll(evs []event.Event) {
	switch q.form {
	case toRing:
		q.consumer.ring.PutAll(evs)
		if assertions {
			q.checkRing()
		}
		q.consumer.notice.mark(allSilent(evs))
	case toChannel:
		q.channel.putAll(evs)
	case toSink:
		q.sink.Put(onStack(evs))
	}
}

// PutSuccess is Put of the DTO_COMPLETION event of a success that is not silent, and Flush. A
// producer that has something to do before the event is visible writes it by Success itself:
// into a cell of the Ring, if there is one, and then it publishes the cell and calls Note; or
// into the event that the Claim of its lane returns, and then it calls Send. lane is the
// completer's own, and so is source.
func (q *Queue) PutSuccess(lane *Lane, source any, cookie uint64, op hw.Op, length uint32) {
	if q.success != nil {
		q.success(source, cookie, op, length)
		return
	}
	if q.form == toChannel && q.channel.held.Load() == 0 && !q.HearsSuccesses() && (lane.Claim(q) != nil || lane.enter(q, source)) {
		ev := &lane.n.event
		ev.Op, ev.Length, ev.Cookie = op, length, cookie
		lane.Send()
		return
	}
	q.Put(&event.Event{Number: event.DTOCompletion, Op: op, Length: length, Cookie: cookie, Source: source})
	q.Flush()
}

// Ring returns the ring into which events go; nil for a queue without one.
func (q *Queue) Ring() *ring.Reserved[event.Event] {
	if q.form != toRing {
		return nil
	}
	return &q.consumer.ring.newest.Load().r
}

// Success writes the event of a success where the consumer reads it, field by field: a
// literal would be built elsewhere and copied.
func Success(ev *event.Event, source any, cookie uint64, op hw.Op, length uint32) {
	ev.Number = event.DTOCompletion
	ev.Status = hw.StatusSuccess
	ev.Op = op
	ev.Flags = 0
	ev.Length = length
	ev.Key = 0
	ev.Cookie = cookie
	ev.Source = source
	ev.Data = nil
}

// Note notes that an event that notifies was published in a ring, for Flush to see.
func (q *Queue) Note() {
	if assertions {
		q.checkRing()
	}
	q.consumer.notice.mark(false)
}

// Suppressed tells the filter of a suppressed request that has succeeded, if
// HearsSuccesses says that it is to hear of it. The request's place is still to be released.
func (q *Queue) Suppressed(source any, cookie uint64) {
	q.filter(source, event.DTOCompletion, hw.StatusSuccess, cookie, nil)
}

// accepts reports whether the filter accepts an event.
func (q *Queue) accepts(ev *event.Event) bool {
	return q.filter == nil ||
		q.failures && ev.Number == event.DTOCompletion && (ev.Status == hw.StatusSuccess || ev.Cookie>>63 == 0) ||
		q.filter(ev.Source, ev.Number, ev.Status, ev.Cookie, ev.Data)
}

// HearsSuccesses reports whether there is a filter that sees completions of success, also
// those of suppressed requests.
func (q *Queue) HearsSuccesses() bool { return q.filter != nil && !q.failures }

// isSilent reports whether an event is silent.
func isSilent(e *event.Event) bool { return e.Flags&event.Silent != 0 && maySilence(e) }

// maySilence reports whether the event may be silent: only a completion without an
// error may.
func maySilence(e *event.Event) bool {
	return e.Status == 0 && e.Number.Completion()
}

func allSilent(evs []event.Event) bool {
	for i := range evs {
		if !isSilent(&evs[i]) {
			return false
		}
	}
	return true
}
