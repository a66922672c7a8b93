package delivery

import (
	"fmt"
	"sync"
	"sync/atomic"

	"godat/hw/event"
	"godat/internal/yield"
)

// channel is delivery through a channel of events, the dispatcher's own or a route's.
//
// The producer of an event that notifies sends it without a lock, unless silent events are
// held: then all events go through mu, so that none overtakes another. held goes back to 0
// only after the last held event was sent.
type channel struct {
	// Immutable.
	q      *Queue
	sizes  channelSizes
	maxLen int
	ch     chan event.Event
	name   fmt.Stringer // nil: the dispatcher's
	ended  func()       // called when ch has had its end; nil: nobody asks

	held     atomic.Int32 // len(hold); negative while sendHeld sends them, which counts them as sent
	finished atomic.Bool

	mu       sync.Mutex
	hold     []event.Event // silent events
	listed   int           // listed events that may be in the channel
	listedAt uint64        // sends when the last of them was sent

	pump pump
}

// Channel is the way of a dispatcher that sends each event on a channel.
var Channel = &Way{Name: "channel", Helps: true, Begin: func(q *Queue, cfg *Config) { q.initChannel(cfg.QLen, cfg.MaxLen) }}

// initChannel makes q deliver by a channel, for so many operations.
func (q *Queue) initChannel(qlen, maxLen int) {
	q.form = toChannel
	q.places.limit.Store(uint64(qlen + ofMany.slack()))
	q.channel.init(q, maxLen, ofMany)
}

// OfOne has the dispatcher's channel take the memory that the events of one endpoint
// need; those of several are delivered all the same, with less room for what is on its way.
// The dispatcher's maker calls OfOne before the first event.
func (d *Dispatcher) OfOne() {
	q := &d.main
	if q.form == toChannel {
		q.places.limit.Add(uint64(ofOne.slack() - ofMany.slack()))
		q.channel.init(q, q.channel.maxLen, ofOne)
	}
}

// channelSizes say how long a channel is beyond the places that its owner asked for.
type channelSizes struct {
	// inFlight is how many events may count twice at a time, between their send and the
	// count of it.
	inFlight int
	// listed is how many listed events, which have no reservation, may be in the channel at
	// a time. Their room is beyond the limit, so that they need not wait behind
	// reservations without events.
	listed int
	lanes  int // completers that have a lane
}

// asyncRoom is how many listed events may be in batches at a time, or in the channel of
// many endpoints.
const asyncRoom = 16

var (
	ofMany = channelSizes{inFlight: 64, listed: asyncRoom, lanes: 8}
	// ofOne is for the events of one endpoint, whose requests and receives complete in a
	// goroutine each.
	ofOne = channelSizes{inFlight: 2*doneEvery + 4, listed: 1, lanes: 2}
)

// slack is how many places a channel has beyond those that its owner asked for. Listed
// events count as others do once they are in the channel.
func (s *channelSizes) slack() int { return s.inFlight + s.listed }

// doneEvery is how many sends of PutAll share one update of done.
const doneEvery = 8

// init makes c the channel of q, with room for so many events.
func (c *channel) init(q *Queue, maxLen int, sizes channelSizes) {
	c.q, c.maxLen, c.sizes = q, maxLen, sizes
	c.ch = make(chan event.Event, maxLen+sizes.slack()+sizes.listed+1) // and the last event
	q.places.lanes = make([]laneCount, sizes.lanes)
	for i := range q.places.lanes {
		q.places.lanes[i].q = q
	}
}

// send puts ev into the channel, which has room, because the place was reserved.
func (c *channel) send(ev *event.Event) {
	if !assertions {
		c.ch <- *ev
		return
	}
	select {
	case c.ch <- *ev:
	default:
		panic("evd: a channel overflowed")
	}
}

// putAll sends evs, or holds them: those that the filter accepts.
func (c *channel) putAll(evs []event.Event) {
	for len(evs) > 0 {
		n := c.lockless(evs)
		c.sendAll(evs[:n])
		if evs = evs[n:]; len(evs) == 0 {
			return
		}
		switch ev := &evs[0]; {
		case !c.q.accepts(ev):
			c.q.Release(1)
		case c.held.Load() != 0 || isSilent(ev):
			c.putHeld(ev)
		default:
			c.sendAll(evs[:1])
		}
		evs = evs[1:]
	}
}

// putHeld sends an event while silent ones are held, or holds it if it is silent.
func (c *channel) putHeld(ev *event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !isSilent(ev) {
		c.sendHeld()
		c.send(ev)
		c.q.sent()
		return
	}
	if c.hold == nil {
		c.hold = make([]event.Event, 0, c.maxLen/2+1)
	}
	c.hold = append(c.hold, *ev) // within its capacity
	c.held.Store(int32(len(c.hold)))
	yield.Point()
	if len(c.hold) >= c.half() || c.q.closed() {
		c.sendHeld()
	}
}

// half is how many silent events are held at most: half of the length that the
// program asked for.
func (c *channel) half() int { return max(1, (int(c.q.places.limit.Load())-c.sizes.slack())/2) }

// sendHeld moves the held events into the channel. The caller holds mu.
func (c *channel) sendHeld() {
	if len(c.hold) == 0 {
		return
	}
	c.held.Store(-int32(len(c.hold)))
	c.sendAll(c.hold)
	clear(c.hold)
	c.hold = c.hold[:0]
	yield.Point()
	c.held.Store(0)
}

// flushHeld is sendHeld for callers that do not hold mu.
func (c *channel) flushHeld() {
	if c.held.Load() == 0 {
		return
	}
	c.mu.Lock()
	c.sendHeld()
	c.mu.Unlock()
}

// sendAll sends evs and counts them, a few at a time.
func (c *channel) sendAll(evs []event.Event) {
	for len(evs) > 0 {
		n := min(len(evs), doneEvery)
		for i := range evs[:n] {
			c.send(&evs[i])
		}
		yield.Point()
		c.q.giveBack(uint64(n))
		evs = evs[n:]
	}
}

// lockless counts the first of evs that go into the channel without a lock.
func (c *channel) lockless(evs []event.Event) (n int) {
	if c.held.Load() != 0 || c.q.filter != nil {
		return 0
	}
	for n < len(evs) && !isSilent(&evs[n]) {
		n++
	}
	return n
}

// takeListed moves listed events into the channel. It reports whether all of them
// were sent.
func (c *channel) takeListed(l *asyncList) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sendHeld() // before reserveSlow, which locks mu for held events when it refuses
	var ev event.Event
	for l.count.Load() != 0 {
		if !c.mayList() || !c.q.reserveSlow(1, uint64(c.sizes.listed)) {
			return false
		}
		if !l.pop(&ev) {
			c.q.giveBack(1)
			break
		}
		c.send(&ev)
		c.q.sent()
		c.listed++
		c.listedAt = c.q.places.sends()
	}
	return true
}

// mayList reports whether the channel holds fewer listed events than it may. All listed
// events were received in two cases: the channel is empty; or, of the events sent after the
// last listed one, at least as many have left the channel as could have been on their way
// when that one was sent. The caller holds mu.
func (c *channel) mayList() bool {
	if c.listed < c.sizes.listed {
		return true
	}
	sends := c.q.places.sends()
	inside := uint64(len(c.ch))
	if inside == 0 || int64(sends-inside-c.listedAt) >= int64(c.sizes.inFlight) {
		c.listed = 0
	}
	return c.listed == 0
}

// tryFinish closes the channel, or sends the last event, once the queue is closed and no
// reservation is left: no producer can send any more.
func (c *channel) tryFinish() {
	q := c.q
	if q.places.idle() && c.finished.CompareAndSwap(false, true) {
		if last := q.d.last; last != nil && q == &q.d.main {
			c.ch <- *last
		} else {
			close(c.ch)
		}
		if c.ended != nil {
			c.ended()
		}
	}
}
