package hwtest

import (
	"time"

	"godat/hw"
)

var polledCases = []contractCase{
	{"a device either completes by itself or is polled", func(r *rig) {
		if r.a.polled == nil {
			r.tb.Log("this one completes by itself")
			a, b := r.pair()
			roundTrip(r, a, b)
			return
		}
		r.also.Zero(r.a.polled.Poll(nil), "a poll for nothing returns nothing")
	}},
	{"Poll returns at once when there is nothing", polledOnly(func(_ *rig, h *host, _ []*end) {
		for range 3 {
			h.rig.also.Zero(h.pollOnce())
		}
	})},
	{"Poll visits every queue, however full the others are", polledOnly(pollFairly)},
	{"completions wait for a poll as long as it takes", polledOnly(pollLate)},
	{"a completion after Arm ends Wait, before it or in it", polledOnly(armAndWait)},
	{"Wake ends Wait, before it or in it", polledOnly(wakeUp)},
	{"another goroutine may poll during a Wait, and a completion ends the Wait all the same", polledOnly(pollBesideWait)},
	{"a completion after Arm ends Sleep, before it or in it", sleeperOnly(armAndWait)},
	{"Wake ends Sleep, before it or in it", sleeperOnly(wakeUp)},
	{"another goroutine may poll during a Sleep, and a completion ends the Sleep all the same", sleeperOnly(pollBesideWait)},
	{"Wait and Sleep may take turns", sleeperOnly(waitInTurns)},
	{"a queue for solicited completions wakes for those and for failed ones", ifPolled(solicitedOnly)},
	{"queue pairs share a completion queue", ifPolled(sharedQueue)},
}

// polledOnly runs a case on a third device, which only the case polls, with three
// connections to b.
func polledOnly(run func(r *rig, h *host, ends []*end)) func(*rig) {
	return ifPolled(func(r *rig) {
		h := r.openUnpumped(0)
		run(r, h, r.threePairs(h))
	})
}

// sleeperOnly is polledOnly for a case that waits by Sleep.
func sleeperOnly(run func(r *rig, h *host, ends []*end)) func(*rig) {
	return only(func(r *rig) bool { _, ok := r.a.dev.(hw.Sleeper); return ok && r.a.polled != nil },
		"this device has no Sleep", polledOnly(func(r *rig, h *host, ends []*end) {
			h.wait = h.dev.(hw.Sleeper).Sleep
			run(r, h, ends)
		}))
}

// ifPolled runs a case on polled devices.
func ifPolled(run func(*rig)) func(*rig) {
	return only(func(r *rig) bool { return r.a.polled != nil },
		"this device completes by itself; the first case of the group shows it", run)
}

// threePairs connects three queue pairs of h, which has no pump, to b.
func (r *rig) threePairs(h *host) (ends []*end) {
	for range 3 {
		e := h.newEnd()
		r.join(e, r.b.newEnd())
		ends = append(ends, e)
	}
	return ends
}

// peer is the other end of a connection that r.threePairs made.
func (r *rig) peer(e *end) *end { return r.b.ends[e.index] }

// pollOnce polls one batch from the case's own goroutine.
func (h *host) pollOnce() int {
	p := pump{host: h, dev: h.polled}
	return p.poll()
}

// pollAll polls until nothing is left.
func (h *host) pollAll() {
	for h.pollOnce() > 0 {
	}
}

// arm arms the device when it has nothing left to poll.
func (h *host) arm() {
	h.pollAll()
	h.rig.must.NoError(h.polled.Arm())
	h.rig.must.Zero(h.pollOnce())
}

// pollFor polls until most completions have come, or Config.Patience has passed.
func (h *host) pollFor(most int) {
	deadline := time.Now().Add(h.rig.cfg.Patience)
	for n := 0; n < most && time.Now().Before(deadline); {
		n += h.pollOnce()
	}
}

// completeReceives makes n receives complete on e, without polling e's host.
func (r *rig) completeReceives(e *end, n int) {
	from := r.peer(e)
	for range n {
		e.recv()
		from.sent(from.post(sendOf()))
	}
}

func pollFairly(r *rig, h *host, ends []*end) {
	const each = 6
	for _, e := range ends {
		r.completeReceives(e, each)
	}
	seen := map[int]int{}
	for range len(ends) * each {
		var one [1]hw.WC
		if h.polled.Poll(one[:]) == 0 {
			continue
		}
		seen[endOf(one[0].ID)]++
		h.route(one[0])
		if len(seen) == len(ends) {
			break
		}
	}
	r.also.Len(seen, len(ends))
	for i, n := range seen {
		r.also.Less(n, each, "queue pair %d was served before others were seen", i)
	}
}

func pollLate(r *rig, h *host, ends []*end) {
	for _, e := range ends {
		r.completeReceives(e, defaultDepth)
	}
	for _, e := range ends {
		r.also.Zero(e.books[recvQueue].head)
	}
	h.pollFor(len(ends) * defaultDepth)
	for _, e := range ends {
		r.also.Equal(hw.StatusSuccess, e.received(defaultDepth-1).Status)
	}
}

// waiting waits on a goroutine, and returns a channel for its result.
func (h *host) waiting() chan error {
	done := make(chan error, 1)
	h.waiter = make(chan struct{})
	go closeAfter(h.waiter, func() { done <- h.wait() })
	return done
}

// stopWaiting ends the wait of a case that failed before it returned.
func (h *host) stopWaiting() {
	if h.waiter == nil {
		return
	}
	select {
	case <-h.waiter:
	default:
		h.polled.Wake()
		<-h.waiter
	}
}

// returns checks that a wait returns.
func (r *rig) returns(done chan error) {
	r.also.NoError(receive(r, done, "the return of Wait"))
}

// blocks checks that a wait does not return within shortWait.
func (r *rig) blocks(done chan error) {
	select {
	case err := <-done:
		r.must.Failf("Wait returned without a completion or Wake", "%v", err)
	case <-time.After(shortWait):
	}
}

func armAndWait(r *rig, h *host, ends []*end) {
	for i := range 6 {
		e := ends[i%len(ends)]
		h.arm()
		if i%2 == 0 { // the completion comes before Wait
			r.completeReceives(e, 1)
			r.returns(h.waiting())
		} else {
			done := h.waiting()
			r.blocks(done)
			r.completeReceives(e, 1)
			r.returns(done)
		}
		r.also.Equal(1, h.pollOnce())
	}
}

func wakeUp(r *rig, h *host, _ []*end) {
	h.pollAll()
	h.polled.Wake()
	r.returns(h.waiting())
	done := h.waiting()
	r.blocks(done)
	h.polled.Wake()
	h.polled.Wake()
	r.returns(done)
}

// waitInTurns begins each wait in the other way than the last. What ended one ends no other.
func waitInTurns(r *rig, h *host, ends []*end) {
	sleep := h.wait
	h.polled.Wake()
	r.returns(h.waiting())
	for i := range 6 {
		h.wait = h.polled.Wait
		if i%2 == 0 {
			h.wait = sleep
		}
		h.arm()
		done := h.waiting()
		r.blocks(done)
		if i%3 == 0 {
			h.polled.Wake()
			r.returns(done)
			continue
		}
		r.completeReceives(ends[i%len(ends)], 1)
		r.returns(done)
		r.also.Equal(1, h.pollOnce())
	}
}

// pollBesideWait polls while another goroutine waits, as a consumer does that polls
// by itself: a completion must end the wait even when such a poll takes it.
func pollBesideWait(r *rig, h *host, ends []*end) {
	for i := range 6 {
		e := ends[i%len(ends)]
		h.arm()
		done := h.waiting()
		r.blocks(done)
		for range 3 {
			r.also.Zero(h.pollOnce())
		}
		if i%2 == 0 { // Wait returns before the case polls
			r.completeReceives(e, 1)
			r.returns(done)
			r.also.Equal(1, h.pollOnce())
			continue
		}
		e.recv()
		from := r.peer(e)
		out := from.post(sendOf())
		h.pollFor(1)
		r.returns(done)
		from.sent(out)
	}
}

func solicitedOnly(r *rig) {
	h := r.openUnpumped(0)
	h.solicitedOnly = true
	e := r.threePairs(h)[0]
	from := r.peer(e)
	r.must.NoError(h.polled.Arm())
	r.completeReceives(e, 3)
	done := h.waiting()
	r.blocks(done)
	e.recv()
	marked := sendOf()
	marked.Flags |= hw.WRSolicited
	from.post(marked)
	r.returns(done)
	r.also.Equal(4, h.pollOnce(), "the unsolicited ones had waited")

	e.recv()
	h.arm()
	done = h.waiting()
	e.breakNow(false)
	r.returns(done)
}

func sharedQueue(r *rig) {
	const n = 4
	var cqs [2]hw.CQ
	for i, h := range []*host{r.a, r.b} {
		cqs[i] = h.newCQ(nil, n*(2*defaultDepth+2), tag{end: anyEnd})
	}
	var as, bs [n]*end
	for i := range n {
		as[i] = r.a.newEnd(func(c *hw.QPConfig) { c.SendCQ, c.RecvCQ = cqs[0], cqs[0] })
		bs[i] = r.b.newEnd(func(c *hw.QPConfig) { c.SendCQ, c.RecvCQ = cqs[1], cqs[1] })
		r.join(as[i], bs[i])
	}
	for round := range 10 {
		for i := range n {
			for range 2 {
				bs[i].recv()
				as[i].recv()
				as[i].post(sendOf())
				bs[i].post(sendOf())
			}
		}
		for i := range n {
			as[i].received(2*round + 1)
			bs[i].received(2*round + 1)
			as[i].sent(2*round + 1)
			bs[i].sent(2*round + 1)
		}
	}
}
