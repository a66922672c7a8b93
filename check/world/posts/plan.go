package posts

import (
	"math/rand/v2"

	"godat/ep"
	"godat/hw"
)

// attempt is a kind of attempt to connect.
type attempt uint8

const (
	joined      attempt = iota
	rejected            // the passive side rejects
	untaken             // the passive side closes the dispatcher that has the request
	noListener          // nobody listens on the port
	unreachable         // there is no such address
	timedOut            // the passive side accepts after the timeout
	raced               // the passive side accepts at about the time of the timeout
	givenUp             // the active side disconnects before the answer
	attempts
)

func (a attempt) String() string {
	return [...]string{"joined", "rejected", "untaken", "no listener", "unreachable", "timed out", "raced", "given up"}[a]
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

// endingTable says what each ending does, which statuses it may cause beside FLUSHED,
// and whether it may cause BROKEN.
var endingTable = [endings]struct {
	name   string
	do     func(*link, *life)
	may    statusSet
	breaks bool
}{
	atRest:       {name: "at rest", do: func(l *link, lf *life) { l.disconnect(lf, lf.how(), lf.plan.by) }},
	abrupt:       {name: "abrupt", do: (*link).breakOff},
	abruptBoth:   {name: "abrupt by both", do: func(l *link, lf *life) { l.disconnect(lf, ep.Abrupt, 0, 1) }},
	graceful:     {name: "graceful", do: func(l *link, lf *life) { l.disconnect(lf, ep.Graceful, lf.plan.by) }},
	gracefulBoth: {name: "graceful by both", do: func(l *link, lf *life) { l.disconnect(lf, ep.Graceful, 0, 1) }},
	closed:       {name: "closed", do: func(l *link, lf *life) { l.atOnce("Close", l.close, lf.plan.by) }},
	closedBoth:   {name: "closed by both", do: func(l *link, _ *life) { l.atOnce("Close", l.close, 0, 1) }},
	freed: {
		name: "freed", do: (*link).freeUnderWay, breaks: true,
		may: statuses(hw.StatusLocalProtection, hw.StatusRemoteAccess, hw.StatusRemoteResponder),
	},
	tooLong:  {name: "too long", do: (*link).sendTooLong, breaks: true, may: statuses(hw.StatusLocalLength, hw.StatusRemoteResponder)},
	notReady: {name: "not ready", do: (*link).sendOn, breaks: true, may: statuses(hw.StatusReceiverNotReady)},
	noAccess: {name: "no access", do: (*link).writeAstray, breaks: true, may: statuses(hw.StatusRemoteAccess)},
}

func (e ending) String() string { return endingTable[e].name }

func (e ending) quiet() bool { return e == atRest }

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

// how is how a side disconnects where the ending leaves a choice.
func (lf *life) how() ep.CloseFlags {
	if lf.plan.abruptly {
		return ep.Abrupt
	}
	return ep.Graceful
}

// draw plans a life.
func (l *link) draw(rng *rand.Rand) plan {
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
