package rpc

import (
	"time"

	"godat/hw"
	dat "godat/runtime"
)

// progress looks whether octets of a connection move. Its zero value has not looked yet.
//
// An end that waits for the other for Config.Patience blames it only if nothing has moved for so long: what
// the other end has to send first, or to get first, may be on its way on a slow link. That lasts no longer
// than Config.Stall in all, so that a peer which sends on and on, and never what is waited for, holds nobody.
// Where the transport does not tell, Patience is all.
type progress struct{ last hw.Flow }

// moves reports whether octets have moved since the look before, either way.
func (p *progress) moves(conn *dat.Conn) bool {
	now, ok := conn.Endpoint.Flow()
	before := p.last
	p.last = now
	return ok && (now.Came != before.Came || now.Passed != before.Passed)
}

// leastLate is from which lateness on the end of a wait says nothing of the peer.
const leastLate = 500 * time.Millisecond

// isLate reports whether the end of a wait for the time d is seen so late that this process was paused, or
// has more to do than it can: then the peer gets its time again.
func isLate(due time.Time, d time.Duration) bool { return time.Since(due) > max(d/4, leastLate) }

// lateTries is how often it gets that.
const lateTries = 3
