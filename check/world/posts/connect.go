package posts

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/hw/event"
)

// Sizes and times of attempts to connect.
const (
	nonceSize   = 8
	mostPrivate = 48
	shortTime   = 5 * time.Millisecond
	nowhereQual = 9 // a port on which nobody listens
)

// call is a connection request, as its active side knows it.
type call struct {
	private []byte
	to      *home
	crs     chan *ep.CR // receives the request when it has come
	late    bool        // the request may come when nobody waits for it any more
}

// newCall prepares a call of the plan's active side, and expects its request.
func (l *link) newCall(lf *life) *call {
	rng := l.w.dice(forLife, uint64(l.number), uint64(lf.number), 1)
	c := &call{private: make([]byte, nonceSize+rng.IntN(mostPrivate)), to: lf.sides[1-lf.plan.active].home, crs: make(chan *ep.CR, 1)}
	c.late = lf.plan.attempt == timedOut || lf.plan.attempt == raced || l.w.cfg.harsh()
	noise(rng, c.private)
	binary.BigEndian.PutUint64(c.private, uint64(l.number)<<32|uint64(lf.number))
	l.w.expect(c)
	return c
}

// connect makes the planned attempt and reports whether the connection is up.
func (l *link) connect(lf *life) bool {
	lf.receive(lf.plan.active)
	c := l.newCall(lf)
	defer l.w.forget(c)
	switch lf.plan.attempt {
	case joined:
		return l.join(lf, c)
	case rejected:
		l.reject(lf, c)
	case untaken:
		l.leaveUntaken(lf, c)
	case noListener:
		l.try(lf, ep.ConnectConfig{Addr: c.to.ia.Attr().Address, Qual: nowhereQual, Private: c.private}, nil, event.NonPeerRejected)
	case unreachable:
		l.try(lf, ep.ConnectConfig{Addr: "no such host!", Qual: c.to.psp.Qual(), Private: c.private}, nil, event.Unreachable)
	case timedOut, raced:
		return l.tooLate(lf, c)
	case givenUp:
		l.giveUp(lf, c)
	case attempts:
	}
	return false
}

// try calls Connect, and again as often as an unreliable provider refuses.
func (l *link) try(lf *life, cfg ep.ConnectConfig, private []byte, may ...event.Number) bool {
	a := lf.sides[lf.plan.active]
	if l.w.cfg.harsh() {
		may = append(may, event.NonPeerRejected, event.Unreachable, event.TimedOut) // a provider has limits of its own
	}
	err := l.w.retry(func() error {
		a.try(private, may...)
		return a.ep.Connect(cfg)
	})
	if err != nil {
		a.fail()
		l.w.complain(Code, "%v: connecting %v: %v", lf, a, err)
	}
	return err == nil
}

// ask connects and returns the request when it has come. With a timeout it returns
// nil at once: the request may never come.
func (l *link) ask(lf *life, c *call, timeout time.Duration, private []byte, may ...event.Number) *ep.CR {
	if !l.try(lf, ep.ConnectConfig{Addr: c.to.ia.Attr().Address, Qual: c.to.psp.Qual(), Private: c.private, Timeout: timeout}, private, may...) {
		return nil
	}
	if timeout > 0 {
		return nil
	}
	if !l.w.cfg.harsh() {
		cr, _ := receive(l.w, l.w.over, c.crs, "%v: the request", lf)
		return cr
	}
	select {
	case cr := <-c.crs:
		return cr
	case <-lf.sides[lf.plan.active].book.outcomes: // the book has checked it
	case <-l.w.over:
	}
	return nil
}

// harsh reports whether the network may end a connection while it is set up.
func (p *Posts) harsh() bool { return p.Unreliable && p.Early }

// noise fills b with random bytes.
func noise(rng *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
}

// answer is the private data of the passive side's answer.
func (l *link) answer(lf *life) []byte {
	rng := l.w.dice(forLife, uint64(l.number), uint64(lf.number), 2)
	answer := make([]byte, rng.IntN(mostPrivate))
	noise(rng, answer)
	return answer
}

// join connects the two sides and waits for both to be up.
func (l *link) join(lf *life, c *call) bool {
	answer := l.answer(lf)
	cr := l.ask(lf, c, 0, answer, event.Established)
	if cr == nil {
		return false
	}
	return l.accept(lf, cr, answer, event.Established) && l.established(lf, lf.plan.active) && l.established(lf, 1-lf.plan.active)
}

// accept accepts a request with the passive side's endpoint; the outcome is one of may.
func (l *link) accept(lf *life, cr *ep.CR, answer []byte, may ...event.Number) bool {
	side := 1 - lf.plan.active
	lf.receive(side)
	a := lf.sides[side]
	if l.w.cfg.Unreliable || a.fragile() {
		may = append(may, event.AcceptCompletionError)
	}
	a.try(nil, may...)
	if err := cr.Accept(a.ep, answer); err != nil {
		a.fail()
		l.w.complain(Code, "%v: accepting with %v: %v", lf, a, err)
		return false
	}
	return true
}

// established waits for the outcome of a side's attempt.
func (l *link) established(lf *life, side int) bool {
	a := lf.sides[side]
	n, heard := receive(l.w, l.w.over, a.book.outcomes, "%v: an outcome at %v; %v", lf, a, l.state())
	switch {
	case n == event.Established:
		close(lf.up[side])
	case heard: // the side's connection book has checked whether this outcome may be
		lf.ending.Store(true)
	}
	return n == event.Established
}

// reject rejects the request.
func (l *link) reject(lf *life, c *call) {
	answer := l.answer(lf)
	cr := l.ask(lf, c, 0, answer, event.PeerRejected)
	if cr == nil {
		return
	}
	if err := cr.Reject(answer); err != nil && !l.w.cfg.harsh() {
		l.w.complain(Code, "%v: rejecting: %v", lf, err)
	}
}

// leaveUntaken connects to a service point of which nobody takes the requests, and closes that and its dispatcher
// when the request is there.
func (l *link) leaveUntaken(lf *life, c *call) {
	w := l.w
	d, err := c.to.ia.NewDispatcher(evd.Config{QLen: 1})
	if !w.must(err, "%v: a dispatcher of requests", lf) {
		return
	}
	psp, err := c.to.ia.NewPSP(ep.PSPConfig{Dispatcher: d})
	if !w.must(err, "%v: listening", lf) {
		return
	}
	if l.try(lf, ep.ConnectConfig{Addr: c.to.ia.Attr().Address, Qual: psp.Qual(), Private: c.private}, nil, event.PeerRejected) {
		late := time.Now().Add(w.cfg.Patience)
		for d.Snapshot().Queued == 0 && lf.sides[lf.plan.active].phaseNow() == trying && !w.broken() {
			if time.Now().After(late) {
				w.complain(Stuck, "%v: its request does not come", lf)
				break
			}
			time.Sleep(idlePause)
		}
	}
	w.must(psp.Close(), "%v: closing its service point", lf)
	w.must(d.Close(), "%v: closing its dispatcher", lf)
}

// tooLate accepts a request after its active side has timed out, or (raced) at
// about that time.
func (l *link) tooLate(lf *life, c *call) bool {
	active, passive := lf.plan.active, 1-lf.plan.active
	answer := l.answer(lf)
	may := []event.Number{event.TimedOut}
	if lf.plan.attempt == raced {
		may = append(may, event.Established)
	}
	l.ask(lf, c, shortTime, answer, may...)
	if lf.plan.attempt == timedOut {
		l.awaitEnd(lf, active)
		c.to.crs.sync()
	}
	var cr *ep.CR
	select {
	case cr = <-c.crs:
	case <-time.After(shortTime):
		return false // the attempt timed out before its request came
	}
	if !l.accept(lf, cr, answer, event.Established, event.AcceptCompletionError) {
		return false
	}
	if lf.plan.attempt == timedOut {
		return l.established(lf, passive)
	}
	// One side may be up without the other, which then ends the connection.
	a, b := l.established(lf, active), l.established(lf, passive)
	if a && b {
		lf.ending.Store(false)
	}
	return a && b
}

// giveUp disconnects the active side while its request waits for an answer.
func (l *link) giveUp(lf *life, c *call) {
	a := lf.sides[lf.plan.active]
	cr := l.ask(lf, c, 0, nil, event.Disconnected)
	if cr == nil {
		return
	}
	lf.end()
	if err := a.ep.Disconnect(lf.how()); err != nil && !l.w.cfg.harsh() {
		l.w.complain(Code, "%v: giving up: %v", lf, err)
	}
	if !lf.plan.abruptly {
		_ = cr.Reject(nil) // the active side is gone
		return
	}
	l.accept(lf, cr, nil, event.AcceptCompletionError)
}
