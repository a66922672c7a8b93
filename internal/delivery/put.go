package delivery

import (
	"godat/hw"
	"godat/hw/event"
	"godat/internal/ring"
)

// The events' way into a queue. Each event has a place there, which its operation has
// reserved.

// Put copies ev and delivers it in one reserved place. A silent event does not by
// itself notify; an error or a connection event always does.
func (q *Queue) Put(ev *event.Event, silent bool) {
	if silent {
		silent = maySilence(ev)
	}
	switch q.kind {
	case KindRing, KindCallback:
		q.consumer.ring.Put(ev)
		if assertions {
			q.checkRing()
		}
		q.consumer.notice.mark(silent)
	case KindChannel:
		c := &q.channel
		if !q.accepts(ev) {
			q.Release(1)
			return
		}
		if silent || c.held.Load() != 0 {
			c.putHeld(ev, silent)
			return
		}
		c.send(ev)
		q.sent()
	case KindBatch:
		q.batches.put(ev, silent)
	case kindOneShot:
		q.shot.put(ev)
	case kindOvercommitted:
		q.putOver(ev, silent)
	case kindSink:
		q.accepts(ev)
	}
}

// PutSuccess is Put of the DTO_COMPLETION event of a success that is not silent. A
// producer that has something to do before the event is visible calls Claim, Success,
// Publish and Note by itself, if Claim returns a cell; or Send, if the Claim of its lane
// returns an event. lane is the completer's own, and so is source. PutSuccess reports
// whether the event is where the consumer sees it without a Flush.
func (q *Queue) PutSuccess(lane *Lane, source any, cookie uint64, op hw.Op, length uint32) (seen bool) {
	if q.kind == kindSink {
		q.filter(source, event.DTOCompletion, hw.StatusSuccess, cookie, nil)
		return true
	}
	if q.kind == KindChannel && q.channel.held.Load() == 0 {
		q.sendSuccess(lane, source, cookie, op, length)
		return true
	}
	cell, at := q.Claim()
	if cell == nil {
		ev := event.Event{Number: event.DTOCompletion, Op: op, Length: length, Cookie: cookie, Source: source}
		q.Put(&ev, false)
		return false
	}
	Success(&cell.Value, source, cookie, op, length)
	cell.Publish(at)
	q.Note()
	return false
}

// sendSuccess is PutSuccess of a channel. It finds the completer a lane, if the channel
// has no filter that hears of successes.
func (q *Queue) sendSuccess(lane *Lane, source any, cookie uint64, op hw.Op, length uint32) {
	switch hears := q.HearsSuccesses(); {
	case hears && !q.filter(source, event.DTOCompletion, hw.StatusSuccess, cookie, nil):
		q.Release(1)
	case !hears && (lane.Claim(q) != nil || lane.enter(q, source)):
		ev := &lane.n.event
		ev.Op, ev.Length, ev.Cookie = op, length, cookie
		lane.Send()
	default:
		q.channel.send(&event.Event{Number: event.DTOCompletion, Op: op, Length: length, Cookie: cookie, Source: source})
		q.sent()
	}
}

// Claim returns the cell of the next event and its position; nil for a queue without a
// ring.
func (q *Queue) Claim() (cell *ring.Cell[event.Event], at uint64) {
	if q.kind != KindRing {
		return nil, 0
	}
	return q.consumer.ring.newest.Load().r.Claim()
}

// HasRing reports whether events go into a ring.
func (q *Queue) HasRing() bool { return q.kind == KindRing }

// ClaimRing is Claim of a queue that has a ring.
func (q *Queue) ClaimRing() (cell *ring.Cell[event.Event], at uint64) {
	return q.consumer.ring.newest.Load().r.Claim()
}

// ClaimAll returns the ring in which the cells of the next n events lie, and the position of
// the first; nil for a queue without a ring. The caller writes the events, publishes them,
// and calls Note.
func (q *Queue) ClaimAll(n int) (r *ring.Reserved[event.Event], first uint64) {
	if q.kind != KindRing {
		return nil, 0
	}
	r = &q.consumer.ring.newest.Load().r
	return r, r.ClaimAll(n)
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
func (q *Queue) HearsSuccesses() bool { return q.filter != nil && !q.failures && !q.quiet }

// PutAll delivers evs in order, each in a reserved place, at a fraction of the cost
// of single Puts. Events with the flag Silent are silent.
func (q *Queue) PutAll(evs []event.Event) {
	switch q.kind {
	case KindRing, KindCallback:
		q.consumer.ring.PutAll(evs)
		if assertions {
			q.checkRing()
		}
		q.consumer.notice.mark(allSilent(evs))
	case KindBatch:
		q.batches.putAll(evs)
	default:
		q.putEach(evs)
	}
}

// Succeeded is a success that is not silent, without what those of one completer share.
type Succeeded struct {
	Cookie uint64
	Length uint32
	Op     hw.Op
}

// PutSuccesses is PutSuccess of several.
func (q *Queue) PutSuccesses(lane *Lane, source any, some []Succeeded) {
	if q.kind == KindBatch && !q.HearsSuccesses() {
		q.batches.putSuccesses(source, some)
		return
	}
	for i := range some {
		s := &some[i]
		q.PutSuccess(lane, source, s.Cookie, s.Op, s.Length)
	}
}

// putEach is PutAll for the kinds that take one event at a time.
func (q *Queue) putEach(evs []event.Event) {
	for len(evs) > 0 {
		n := 0
		if q.kind == KindChannel {
			n = q.channel.lockless(evs)
		}
		if n > 0 {
			q.channel.sendAll(evs[:n])
		} else {
			n = 1
			q.Put(&evs[0], evs[0].Flags&event.Silent != 0)
		}
		evs = evs[n:]
	}
}

// maySilence reports whether the event may be silent: only a completion without an
// error may.
func maySilence(e *event.Event) bool {
	return e.Status == 0 && e.Number.Completion()
}

func allSilent(evs []event.Event) bool {
	for i := range evs {
		if evs[i].Flags&event.Silent == 0 || !maySilence(&evs[i]) {
			return false
		}
	}
	return true
}
