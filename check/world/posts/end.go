package posts

import (
	"errors"
	"runtime"
	"sync"

	"godat/ep"
	"godat/hw"
)

// end ends the connection as planned. It does not wait for the events of the end:
// conclude does.
func (l *link) end(lf *life) {
	lf.end()
	endingTable[lf.plan.ending].do(l, lf)
}

// disconnect disconnects the given sides at the same time.
func (l *link) disconnect(lf *life, how ep.CloseFlags, sides ...int) {
	l.atOnce("Disconnect", func(side int) {
		l.w.must(lf.sides[side].ep.Disconnect(how), "%v: disconnecting %v", lf, lf.sides[side])
	}, sides...)
}

// breakOff disconnects the planned side abruptly.
func (l *link) breakOff(lf *life) { l.disconnect(lf, ep.Abrupt, lf.plan.by) }

// atOnce makes a call for each of the given sides at the same time.
func (l *link) atOnce(call string, do func(side int), sides ...int) {
	var calls sync.WaitGroup
	for _, s := range sides {
		calls.Go(func() { do(s) })
	}
	l.w.await(spawn(calls.Wait), "%s of link %d to return", call, l.number)
}

// ownPoster is a poster on the link's own page, for posts by the link's goroutine.
func (l *link) ownPoster(lf *life, side int) *poster {
	p := newPoster(lf, side, linkPage)
	p.rng = l.w.dice(forLife, uint64(l.number), uint64(lf.number), 3)
	return p
}

// postTries is how often the link repeats a post that finds no room.
const postTries = 1000

// insist fills in the next entry and posts it until a post is accepted; it gives up
// when none can be any more.
func (p *poster) insist(fill func(), post func() verdict) bool {
	for range postTries {
		if p.page.left() == 0 || !p.makeRoom() {
			return false
		}
		fill()
		switch post() {
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
	p := l.ownPoster(lf, lf.plan.by)
	ok := p.insist(func() {
		e := p.fillLoud(hw.OpSend)
		e.length, e.mustFail = maxMessage+8, true
		e.local = span{off: uint32(p.page.slotAt(0)), len: maxMessage + 8, pieces: 1}
		p.account.out.address(e)
	}, p.post)
	if !ok {
		l.breakOff(lf)
	}
}

// writeAstray writes to memory that the peer has not registered.
func (l *link) writeAstray(lf *life) {
	p := l.ownPoster(lf, lf.plan.by)
	to := p.peer.in.lmr.Remote(0, 64)
	if lf.plan.abruptly {
		to.Addr += 1 << 40
	} else {
		to.Context ^= 0x5555
	}
	ok := p.insist(func() {
		e := p.fill(hw.OpWrite, 0)
		e.length, e.mustFail = 64, true
		e.local = span{off: uint32(p.page.slotAt(0)), len: 64, pieces: 1}
	}, func() verdict {
		e := p.page.next()
		p.segments = p.segments[:0]
		return p.submit(func() error { return p.account.ep.PostRDMAWrite(e.cookie, e.flags, to, p.segmentsOf(e)...) })
	})
	if !ok {
		l.breakOff(lf)
	}
}

// sendOn sends more messages than the peer, which posts no more receives, has
// receives for. It stops when the connection has ended.
func (l *link) sendOn(lf *life) {
	lf.paused[1-lf.plan.by].Store(true)
	p := l.ownPoster(lf, lf.plan.by)
	for range 4 * maxWindow {
		if lf.sides[lf.plan.by].phaseNow() != up || !p.insist(func() { p.fillLoud(hw.OpSend) }, p.post) {
			break
		}
	}
	l.breakOff(lf)
}

// freeUnderWay frees a region while the one side sends from it and the other writes
// to it.
func (l *link) freeUnderWay(lf *life) {
	defer l.breakOff(lf)
	by := lf.plan.by
	a := lf.sides[by]
	rng := l.w.dice(forLife, uint64(l.number), uint64(lf.number), 4)
	v := &victim{account: a, yields: rng.IntN(200), region: l.w.register(a.home.pz, victimSize, hw.AllPrivileges, true, rng)}
	if v.region == nil {
		return
	}
	near, far := l.ownPoster(lf, by), l.ownPoster(lf, 1-by)
	freed := spawn(v.free)
	for i, live := 0, true; i < 30 && live; i++ {
		live = near.useVictim(v, true) || far.useVictim(v, false)
	}
	l.w.outlast(freed, "%v: Free to return", lf)
}

// victim is a region on Go's heap that is freed while posts use it.
type victim struct {
	account *account
	region  *region
	yields  int
}

// isDead reports whether err says that a region was freed.
func isDead(err error) bool {
	return errors.Is(err, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleLMR})
}

// free frees the region after some yields.
func (v *victim) free() {
	for range v.yields {
		runtime.Gosched()
	}
	v.account.w.must(v.region.lmr.Free(), "%v: freeing memory under traffic", v.account)
}

// useVictim posts a send from the victim (own) or a write to it, and reports
// whether the poster may go on.
func (p *poster) useVictim(v *victim, own bool) bool {
	if !p.makeRoom() {
		return false
	}
	e := p.fillLoud(hw.OpSend)
	off := p.rng.IntN(victimSize/2 - maxMessage)
	if !own {
		e.op, e.flags = hw.OpWrite, e.flags&^hw.SolicitedWait
		to := v.region.lmr.Remote(off, int(e.length))
		return p.submit(func() error {
			return p.account.ep.PostRDMAWrite(e.cookie, e.flags, to, p.account.out.segments(e.local, nil)...)
		}) <= busy
	}
	// This send is shorter than a header, since its bytes are not the message of its
	// cookie. It reads the half of the victim to which the peer does not write, since
	// nothing orders the two.
	e.length = min(e.length, headerSize-1)
	p.page.begin(1)
	err := p.account.ep.PostSend(e.cookie, e.flags, v.region.lmr.Segment(victimSize/2+off, int(e.length)))
	if isDead(err) {
		p.page.returned(1, 0)
		return true
	}
	return p.judge(1, accepts(err), err) <= busy
}
