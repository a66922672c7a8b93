package delivery

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"godat/hw/event"
	"godat/internal/release"
	"godat/internal/yield"
)

// A Lane is a completer's own way into a channel: the event that it sends next, and the
// count of those that it has sent. The other producers count theirs in places.done, by a
// locked instruction for each event. A lane has one writer at a time, so it counts by plain
// stores, and what all its events have in common stays where it is.
//
// The zero Lane is ready for use. It belongs to the goroutine that completes: PutSuccess
// finds it a place in the channel, and Leave gives that back.
type Lane struct{ n *laneCount }

// Claim returns the event that Send sends to q, of a success whose operation, length and
// cookie the caller writes. It is nil if PutSuccess is to put the success into q.
func (l *Lane) Claim(q *Queue) *event.Event {
	n := l.n
	if n == nil || n.q != q || q.channel.held.Load() != 0 {
		return nil
	}
	return &n.event
}

// Send sends the event that Claim has returned.
func (l *Lane) Send() {
	n := l.n
	q := n.q
	at := n.begin()
	if assertions {
		q.channel.send(&n.event)
	} else {
		q.channel.ch <- n.event
	}
	n.end(at)
	if q.closed() {
		q.tryFinish()
	}
}

// laneCount is what a Lane has of a channel.
type laneCount struct {
	q *Queue // immutable

	// begun counts the sends that have begun, sent those that are over. A new Lane
	// counts on from there.
	begun, sent atomic.Uint64

	event event.Event // the completer's
	taken atomic.Bool // a Lane has it
	_     [128 - 16 - 8 - wordSize - unsafe.Sizeof(event.Event{})]byte
}

// enter gives the lane a place in q's channel in place of the one that it has, for a
// completer whose events have that source; false if q has none left.
func (l *Lane) enter(q *Queue, source any) bool {
	l.Leave()
	for i := range q.places.lanes {
		if n := &q.places.lanes[i]; !n.taken.Load() && n.taken.CompareAndSwap(false, true) {
			n.event = event.Event{Number: event.DTOCompletion, Source: source}
			l.n = n
			return true
		}
	}
	return false
}

// Leave lets another completer have the lane's place. What was counted stays counted.
func (l *Lane) Leave() {
	if n := l.n; n != nil {
		l.n = nil
		n.event = event.Event{}
		n.taken.Store(false)
	}
}

// begin notes that the completer is about to send. The send itself, which locks the
// channel, orders this store before the completer's look at the closed bit, which follows
// end.
func (n *laneCount) begin() (at uint64) {
	at = n.sent.Load() + 1
	release.Uint64(&n.begun, at)
	yield.Point()
	return at
}

// end counts the send. The completer's look at the closed bit, which follows, may come
// before a closer sees the count. But a closer that sets the bit after the look sees that
// the send has begun, and waits in settled.
func (n *laneCount) end(at uint64) {
	yield.Point()
	release.Uint64(&n.sent, at)
}

// settled waits until the sends are counted that have begun. It takes as long as a
// completer takes from begin to end, in which nothing blocks: there is room in the
// channel.
func (n *laneCount) settled() {
	for begun := n.begun.Load(); n.sent.Load() < begun; {
		runtime.Gosched()
	}
}
