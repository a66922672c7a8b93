package ledger

import (
	"math/rand/v2"

	"godat/hw"
)

// attempt is a kind of attempt to connect.
type attempt uint8

const (
	joined      attempt = iota
	rejected            // the passive side rejects
	unheard             // nobody listens on the port
	unreachable         // there is no such address
	timedOut            // the passive side accepts after the timeout
	raced               // the passive side accepts at about the time of the timeout
	givenUp             // the active side disconnects before the answer
	attempts
)

func (a attempt) String() string {
	return [...]string{"joined", "rejected", "unheard", "unreachable", "timed out", "raced", "given up"}[a]
}

// ending is a way in which a connection ends.
type ending uint8

const (
	atRest       ending = iota // by a disconnect when every post has completed
	abrupt                     // by an abrupt disconnect in full flight, as all that follow
	abruptBoth                 // by both sides at once
	graceful                   // by a graceful disconnect; the requests posted before it must succeed
	gracefulBoth               // by both sides at once
	closed                     // one side closes its endpoint with posts outstanding
	closedBoth                 // both sides do
	freed                      // memory is freed while posts use it
	tooLong                    // a message is longer than the receive
	notReady                   // a send finds no receive, since the peer posts no more
	noAccess                   // a write goes to memory that the peer has not registered
	endings
)

func (e ending) String() string {
	return [...]string{
		"at rest", "abrupt", "abrupt by both", "graceful", "graceful by both", "closed", "closed by both",
		"freed", "too long", "not ready", "no access",
	}[e]
}

func (e ending) quiet() bool { return e == atRest }

// allows returns the statuses that an ending may cause beside FLUSHED, and whether
// it may cause BROKEN.
func (e ending) allows() (s statusSet, breaks bool) {
	switch e {
	case freed:
		return statuses(hw.StatusLocalProtection, hw.StatusRemoteAccess, hw.StatusRemoteResponder), true
	case tooLong:
		return statuses(hw.StatusLocalLength, hw.StatusRemoteResponder), true
	case notReady:
		return statuses(hw.StatusReceiverNotReady), true
	case noAccess:
		return statuses(hw.StatusRemoteAccess), true
	case atRest, abrupt, abruptBoth, graceful, gracefulBoth, closed, closedBoth, endings:
	}
	return 0, false
}

// plan is everything that is decided about a life before it begins.
type plan struct {
	attempt  attempt
	ending   ending
	active   int  // the side that connects
	by       int  // the side that ends the connection
	posts    int  // of each poster
	endAfter int  // requests posted before the end
	eager    bool // posters do not wait for the connection
	linger   bool // posters go on until the endpoint is reset or closed
	closes   [2]bool
	churn    bool // a route is closed and made again while posts use it
	abruptly bool // abruptly, or with a bad address, where the ending leaves a choice
}

// simplePosts is how many messages one life sends with [Config.Simple].
const simplePosts = 20

// draw plans a life.
func (l *link) draw(rng *rand.Rand) plan {
	if l.w.cfg.Simple {
		return plan{posts: simplePosts, endAfter: simplePosts, closes: [2]bool{true, true}}
	}
	p := plan{
		active: rng.IntN(2), by: rng.IntN(2), posts: 40 + rng.IntN(perLife-40),
		eager: rng.IntN(4) == 0, linger: rng.IntN(2) == 0,
		closes: [2]bool{rng.IntN(3) == 0, rng.IntN(3) == 0},
		churn:  rng.IntN(2) == 0, abruptly: rng.IntN(2) == 0,
	}
	if x := rng.IntN(24); x < int(attempts) {
		p.attempt = attempt(x)
	}
	p.ending = ending(rng.IntN(int(endings)))
	if rng.IntN(5) == 0 {
		p.ending = atRest
	}
	p.endAfter = 1 + rng.IntN(p.posts)
	return p
}

// fit replaces what the plan's endpoints can't do.
func (p *plan) fit(sides [2]*account) {
	if p.ending == notReady && !sides[p.by].jumpy {
		p.ending = atRest
	}
	switch p.ending {
	case closed:
		p.closes[p.by] = true
	case closedBoth:
		p.closes = [2]bool{true, true}
	default:
	}
}
