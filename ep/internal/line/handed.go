package line

import (
	"runtime"

	"godat/internal/yield"
)

// handedLooks is how often a poster looks whether the provider has its receive, before it sleeps: as long as the holder
// of the token takes for a short send.
const handedLooks = 48

// awaitHanded waits until the provider has all posts before that ticket. The
// token's holder hands them over; the wait takes as long as the holder's calls to
// the provider. A program whose PostRecv has returned may tell the peer to send:
// where a send does not wait for its receive, a receive that is still on its way to
// the device breaks the connection.
func (q *Queue) awaitHanded(ticket uint32) {
	for range handedLooks {
		if q.hasHanded(ticket) {
			return
		}
		runtime.Gosched()
	}
	h := &q.box.cold.crew.handings
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n.Add(1)
	yield.Point()
	for !q.hasHanded(ticket) {
		h.more.Wait()
	}
	h.n.Add(-1)
}

// hasHanded reports whether the provider has all posts before that ticket, or gets none of them any more.
func (q *Queue) hasHanded(ticket uint32) bool {
	if !before(q.handed.Load(), ticket) {
		return true
	}
	return q.box.State().Phase() >= Over
}

// handOn notes that the provider has all posts before the next one.
func (q *Queue) handOn() {
	q.handed.Store(q.next)
	q.box.cold.crew.handings.changed()
}

// handedEvery is how often a receive that goes the short way moves handed.
const handedEvery = 1 << 20

// noteHanded notes that the provider has the posts of the n tickets from one on, which went
// the short way, if it is time to.
func (q *Queue) noteHanded(ticket, n uint32) {
	if noted := (ticket + handedEvery - 1) &^ (handedEvery - 1); noted-ticket < n {
		q.handed.Store((noted + 1) & ticketMask)
		q.box.cold.crew.handings.changed()
	}
}
