package ledger

import (
	"errors"

	dat "godat/runtime"
)

// end ends the connection as planned. It does not wait for the events of the end:
// conclude does.
func (l *link) end(lf *life) {
	by := lf.plan.by
	lf.end()
	how := dat.Graceful
	if lf.plan.abruptly {
		how = dat.Abrupt
	}
	switch lf.plan.ending {
	case atRest:
		l.disconnect(lf, how, by)
	case abrupt:
		l.disconnect(lf, dat.Abrupt, by)
	case abruptBoth:
		l.disconnect(lf, dat.Abrupt, 0, 1)
	case graceful:
		l.disconnect(lf, dat.Graceful, by)
	case gracefulBoth:
		l.disconnect(lf, dat.Graceful, 0, 1)
	case closed:
		l.closeUnderWay(by)
	case closedBoth:
		l.closeUnderWay(0, 1)
	case freed:
		l.freeUnderWay(lf)
		l.disconnect(lf, dat.Abrupt, by)
	case tooLong:
		l.sendTooLong(lf)
	case notReady:
		lf.paused[1-by].Store(true)
		l.sendOn(lf)
		l.disconnect(lf, dat.Abrupt, by)
	case noAccess:
		l.writeAstray(lf)
	case endings:
	}
}

// disconnect disconnects the given sides at the same time.
func (l *link) disconnect(lf *life, how dat.CloseFlags, sides ...int) {
	done := make(chan struct{}, len(sides))
	for _, s := range sides {
		go l.disconnectOne(lf, how, s, done)
	}
	for range sides {
		l.w.await(done, "%v: Disconnect to return", lf)
	}
}

func (l *link) disconnectOne(lf *life, how dat.CloseFlags, side int, done chan<- struct{}) {
	if err := lf.sides[side].ep.Disconnect(how); err != nil {
		l.w.complain(Code, "%v: disconnecting %v: %v", lf, lf.sides[side], err)
	}
	done <- struct{}{}
}

// closeUnderWay closes the endpoints of the given sides at the same time, with
// posts outstanding.
func (l *link) closeUnderWay(sides ...int) {
	done := make(chan struct{}, len(sides))
	for _, s := range sides {
		go l.closeOne(s, done)
	}
	for range sides {
		l.w.await(done, "Close of an endpoint of link %d to return", l.number)
	}
}

func (l *link) closeOne(side int, done chan<- struct{}) {
	l.close(side)
	done <- struct{}{}
}

// hand is a poster on the link's own page, for posts by the link's goroutine.
func (l *link) hand(lf *life, side int) *poster {
	p := newPoster(lf, side, linkPage)
	p.rng = l.w.cfg.dice(forLife, uint64(l.number), uint64(lf.number), 3)
	return p
}

// handTries is how often the link repeats a post that finds no room.
const handTries = 1000

// insist fills in the next entry and posts it until a post is accepted; it gives up
// when none can be any more.
func (p *poster) insist(fill func()) bool {
	for range handTries {
		if p.page.left() == 0 || !p.makeRoom() {
			return false
		}
		fill()
		switch p.post() {
		case took:
			return true
		case shut, gone:
			return false
		case busy:
		}
	}
	return false
}

// sendTooLong sends a message that is longer than any receive.
func (l *link) sendTooLong(lf *life) {
	p := l.hand(lf, lf.plan.by)
	ok := p.insist(func() {
		e := p.fillSend(0, true)
		e.length, e.hopes = maxMessage+8, true
		e.local = span{off: uint32(p.slotAt(0)), len: maxMessage + 8, pieces: 1}
		p.account.out.address(e)
	})
	if !ok {
		l.disconnect(lf, dat.Abrupt, lf.plan.by)
	}
}

// writeAstray writes to memory that the peer has not registered.
func (l *link) writeAstray(lf *life) {
	p := l.hand(lf, lf.plan.by)
	for range handTries {
		if p.page.left() == 0 || !p.makeRoom() {
			break
		}
		e := p.fillWrite(0)
		e.length, e.hopes = 64, true
		e.local = span{off: uint32(p.slotAt(0)), len: 64, pieces: 1}
		to := p.peer.in.lmr.Remote(0, 64)
		if lf.plan.abruptly {
			to.Addr += 1 << 40
		} else {
			to.Context ^= 0x5555
		}
		p.segments = p.segments[:0]
		p.begin(1)
		err := p.account.ep.PostRDMAWrite(e.cookie, e.flags, to, p.segmentsOf(e)...)
		if v := p.judge(1, accepts(err), err); v == took {
			return
		} else if v != busy {
			break
		}
	}
	l.disconnect(lf, dat.Abrupt, lf.plan.by)
}

// accepts is how many posts a single post accepted, by its error.
func accepts(err error) int {
	if err != nil {
		return 0
	}
	return 1
}

// sendOn sends more messages than the peer, which posts no more receives, has
// receives for. It stops when the connection has ended.
func (l *link) sendOn(lf *life) {
	p := l.hand(lf, lf.plan.by)
	for range 4 * maxWindow {
		if lf.sides[lf.plan.by].phaseNow() != up || !p.insist(func() { p.fillSend(0, true) }) {
			return
		}
	}
}

// freeUnderWay frees a region while the one side sends from it and the other writes
// to it.
func (l *link) freeUnderWay(lf *life) {
	by := lf.plan.by
	a := lf.sides[by]
	rng := l.w.cfg.dice(forLife, uint64(l.number), uint64(lf.number), 4)
	v := &victim{
		account: a, yields: rng.IntN(200), done: make(chan struct{}),
		region: l.w.register(a.home.pz, victimSize, dat.AllPrivileges, true, rng),
	}
	if v.region == nil {
		return
	}
	near, far := l.hand(lf, by), l.hand(lf, 1-by)
	go v.run()
	for i, live := 0, true; i < 30 && live; i++ {
		live = near.useVictim(v, true) || far.useVictim(v, false)
	}
	if !l.w.outlast(v.done, "%v: Free to return", lf) {
		return
	}
	if err := near.account.ep.PostSend(0, 0, v.region.lmr.Segment(0, 8)); !errors.Is(err, dat.ErrInvalidHandle) && !errors.Is(err, dat.ErrInvalidState) {
		l.w.complain(Code, "%v: a post from a freed region: %v", a, err)
	}
}
