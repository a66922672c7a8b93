package ledger

import (
	"math/rand/v2"

	"godat/hw"
)

// attempt is how an attempt to connect goes.
type attempt uint8

const (
	joined      attempt = iota
	rejected            // by whoever is asked
	unheard             // nobody listens there
	unreachable         // there is no such address
	timedOut            // nobody answers in time; the answer that follows is too late
	raced               // the answer comes at about the time that the attempt times out
	givenUp             // whoever asked does not wait for the answer
	attempts
)

func (a attempt) String() string {
	return [...]string{"joined", "rejected", "unheard", "unreachable", "timed out", "raced", "given up"}[a]
}

// ending is how a connection ends.
type ending uint8

const (
	atRest       ending = iota // when everything that was posted is done
	abrupt                     // in full flight, as what follows
	abruptBoth                 // by both sides at once
	graceful                   // requests posted so far are to succeed
	gracefulBoth               // both sides at once
	closed                     // the endpoint is closed with its work outstanding
	closedBoth                 // both are
	freed                      // memory is freed that is being used
	tooLong                    // a message is longer than the receive
	notReady                   // the peer posts no more receives
	noAccess                   // a write to memory that is not the peer's
	endings
)

func (e ending) String() string {
	return [...]string{
		"at rest", "abrupt", "abrupt by both", "graceful", "graceful by both", "closed", "closed by both",
		"freed", "too long", "not ready", "no access",
	}[e]
}

func (e ending) quiet() bool { return e == atRest }

// allows says which statuses, and whether BROKEN, may come of an ending.
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

// plan is all that is decided about a life before it begins.
type plan struct {
	attempt  attempt
	ending   ending
	active   int  // the side that connects
	by       int  // the side that ends it
	posts    int  // of each poster
	endAfter int  // posts of requests until it ends
	eager    bool // posters do not wait for the connection
	linger   bool // they go on until the endpoint is reset or closed
	closes   [2]bool
	churn    bool // a route is closed and made again meanwhile
	abruptly bool // where it does not matter otherwise
}

// simplePosts is how many messages are sent in a simple life.
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

// fit changes what the plan's endpoints can't do.
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
