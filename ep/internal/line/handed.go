package line

import (
	"runtime"
	"sync"
	"sync/atomic"

	"godat/internal/yield"
)

// handedLooks is how often a poster looks whether the provider has its receive, before it sleeps: as long as the holder
// of the token takes for a short send.
const handedLooks = 48

// handings are where the posters of an adapter sleep until the provider has their receives.
//
// No wake-up is lost: a poster counts itself in n and then looks whether its receive was handed over. A holder of a token
// hands over, or ends the connection, and then looks at n. So one of the two sees the other.
type handings struct {
	n    atomic.Int32 // posters that sleep, or are about to
	mu   sync.Mutex
	more sync.Cond // receives were handed over, or a connection has ended
}

// changed wakes those that sleep, if any, so that each looks again.
func (h *handings) changed() {
	if h.n.Load() == 0 {
		return
	}
	h.mu.Lock()
	h.more.Broadcast()
	h.mu.Unlock()
}

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

// hasHanded reports whether the provider has all posts before that ticket, or they are flushed.
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
