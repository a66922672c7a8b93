package delivery

import (
	"godat/hw/event"
	"godat/internal/yield"
)

// Delivery through a channel of events, the dispatcher's own or a route's.
//
// The producer of an event that notifies sends it without a lock, unless silent
// events are held: then all events go through mu, so that none overtakes another.
// held goes back to 0 only after the last held event was sent, and until then every
// producer locks mu.

// send puts ev into the channel, which has room, because the place was reserved.
func (q *Queue) send(ev *event.Event) {
	if !assertions {
		q.ch <- *ev
		return
	}
	select {
	case q.ch <- *ev:
	default:
		panic("evd: a channel overflowed")
	}
}

// putHeld is Put for a silent event, or while silent ones are held.
func (q *Queue) putHeld(ev *event.Event, silent bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !silent {
		q.sendHeld()
		q.send(ev)
		q.sent()
		return
	}
	q.hold = append(q.hold, *ev) // within its capacity
	q.held.Store(int32(len(q.hold)))
	yield.Point()
	if len(q.hold) >= q.half() || q.closed() {
		q.sendHeld()
	}
}

// sendHeld moves the held events into the channel. The caller holds mu.
func (q *Queue) sendHeld() {
	if len(q.hold) == 0 {
		return
	}
	q.sendAll(q.hold)
	clear(q.hold)
	q.hold = q.hold[:0]
	yield.Point()
	q.held.Store(0)
}

// sendAll sends evs and counts them, a few at a time.
func (q *Queue) sendAll(evs []event.Event) {
	for len(evs) > 0 {
		n := min(len(evs), doneEvery)
		for i := range evs[:n] {
			q.send(&evs[i])
		}
		yield.Point()
		q.giveBack(uint64(n))
		evs = evs[n:]
	}
}

// putEach is PutAll for the kinds that take one event at a time.
func (q *Queue) putEach(evs []event.Event) {
	for len(evs) > 0 {
		n := 0
		if q.kind == KindChannel && q.held.Load() == 0 && !q.filter {
			for n < len(evs) && (evs[n].Flags&event.Silent == 0 || !maySilence(&evs[n])) {
				n++
			}
		}
		if n > 0 {
			q.sendAll(evs[:n])
		} else {
			n = 1
			q.Put(&evs[0], evs[0].Flags&event.Silent != 0)
		}
		evs = evs[n:]
	}
}

// half is how many silent events are held at most: half of the length that the
// program asked for.
func (q *Queue) half() int { return max(1, (int(q.limit.Load())-slack)/2) }
