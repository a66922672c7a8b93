package posts

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// poster posts the requests of one page in one life.
type poster struct {
	page    *page
	life    *life
	account *account
	peer    *account
	up      <-chan struct{}
	rng     *rand.Rand
	left    int // requests to post before it rests

	shut     int // posts refused because the endpoint is not connected
	after    int // requests posted since the end began
	failures int // the page's failures when the life began
	unasked  int // sends since the last solicited one
	batch    []ep.DTO
	segments []mem.Segment
	spare    *evd.OneShot // a one-shot whose event has come, for use again
}

// Limits of a poster.
const (
	mostShut     = 12 // refusals before it gives up
	mostAfter    = 40 // requests it posts after the end began
	eagerTries   = 3
	solicitEvery = 3
	mostBatch    = 40
)

func newPoster(lf *life, side, number int) *poster {
	a := lf.sides[side]
	p := &poster{
		page: a.lanes[requests].pages[number], life: lf, account: a, peer: a.peer.Load(), up: lf.up[side],
		rng:   a.w.dice(forPoster, uint64(lf.link.number), uint64(lf.number), uint64(side), uint64(number)),
		left:  lf.plan.posts,
		batch: make([]ep.DTO, 0, mostBatch), segments: make([]mem.Segment, 0, mostBatch*maxSegments),
	}
	p.failures = p.page.failures
	return p
}

// run is the poster's goroutine.
func (p *poster) run() {
	defer p.life.posters.Done()
	p.work()
	p.spare.Release()
	p.life.resting()
	p.linger()
}

func (p *poster) work() {
	if !p.await() {
		return
	}
	for p.left > 0 && p.going() && p.makeRoom() {
		before := p.page.begun.Load()
		p.act()
		n := int(p.page.begun.Load() - before)
		p.left -= n
		p.life.posted(n)
		if p.life.ending.Load() {
			p.after += n
		}
	}
	if p.life.plan.ending.quiet() {
		p.finish()
	}
}

// await waits until the connection is up. An eager poster posts a few requests
// before.
func (p *poster) await() bool {
	if p.life.plan.eager {
		p.page.early = true
		for i := 0; i < eagerTries && p.going() && p.makeRoom(); i++ {
			p.act()
			runtime.Gosched()
		}
		p.page.early = false
	}
	select {
	case <-p.up:
		p.shut = 0
		return true
	case <-p.life.stop:
		return false
	}
}

// going reports whether the poster may go on.
func (p *poster) going() bool {
	return p.shut < mostShut && p.after < mostAfter && p.page.failures-p.failures < p.page.window+mostAfter &&
		!p.life.halted.Load() && p.page.left() > mostBatch
}

// makeRoom waits until the window has room; it returns false when the life or the
// run is over.
func (p *poster) makeRoom() bool {
	for {
		p.page.poll()
		p.page.reclaim(false)
		if p.page.outstanding() < p.page.window {
			return true
		}
		if !p.rest(nil) {
			return false
		}
	}
}

// rest waits until an entry has completed or a pause is over. It returns false when
// the life or the run is over; then the events outstanding may be lost.
func (p *poster) rest(pause <-chan time.Time) bool {
	select {
	case <-p.page.bell:
	case <-pause:
	case <-p.life.stop:
		return false
	case <-p.account.w.over:
		return false
	}
	return true
}

// finish posts a last send that is neither suppressed nor UNSIGNALLED, and waits
// until every entry is settled.
func (p *poster) finish() {
	for said := busy; said != took; said = p.post() {
		if !p.going() || !p.makeRoom() {
			return
		}
		p.fillLoud(hw.OpSend)
	}
	for {
		p.page.poll()
		p.page.reclaim(false)
		if p.page.outstanding() == 0 || !p.rest(time.After(shotPause)) {
			return
		}
	}
}

// linger polls the one-shots that are outstanding until the life is over.
func (p *poster) linger() {
	for p.page.poll(); p.rest(time.After(shotPause)); p.page.poll() {
	}
	p.page.poll()
}

// shotPause is the pause between two polls of one-shots.
const shotPause = 2 * time.Millisecond

// poll settles the entries whose event has come to a one-shot.
func (p *page) poll() {
	rest := p.shots[:0]
	for _, s := range p.shots {
		select {
		case ev := <-s.to.C():
			p.lane.shot(&ev)
			s.to.Release()
		default:
			rest = append(rest, s)
		}
	}
	p.shots = rest
}

// shot settles the entry of an event that came to a one-shot.
func (l *lane) shot(ev *event.Event) {
	o := consumer{dispatcher: l.dispatcher, place: atShot}
	o.completion(ev)
}

// verdict is what the result of a post means for its poster.
type verdict uint8

const (
	took verdict = iota
	busy         // the queue or the dispatcher is full for the moment
	shut         // the endpoint is not connected
	gone         // the endpoint is closed
)

// judge checks the result of a post of n entries, of which the first k were
// accepted.
func (p *page) judge(n, k int, err error) verdict {
	p.returned(n, k)
	a := p.lane.account
	lf := a.life.Load()
	first := &p.entries[int(p.begun.Load())-n+min(k, n-1)]
	switch {
	case (err == nil) != (k == n):
		a.w.complain(Code, "%s: %d of %d posts were taken, and the error is %v", p.name(first), k, n, err)
	case err == nil:
		return took
	case noRoom(err):
		if first.place == churned || p.lane.dispatcher.tight {
			return busy
		}
		a.w.complain(Code, "%s: there must be room at %s: %v", p.name(first), p.lane.dispatcher.name, err)
	case errors.Is(err, hw.ErrInsufficientResources):
		if p.lane.crowded() {
			return busy
		}
		a.w.complain(Code, "%s: there must be a slot: %v", p.name(first), err)
	case errors.Is(err, hw.ErrInvalidHandle) && (a.closing.Load() || a.books.closingAbruptly.Load()):
		return gone
	case errors.Is(err, hw.ErrInvalidState) && p.lane.dir == requests && (p.early || lf.ending.Load()):
		return shut
	case errors.Is(err, hw.ErrInvalidState) && p.lane.dir == requests && (a.w.cfg.Unreliable || a.fragile()):
		return shut
	default:
		a.w.complain(Code, "%s: %v", p.name(first), err)
	}
	return gone
}

// judge is page.judge for requests; if there was no room, it pauses.
func (p *poster) judge(n, k int, err error) verdict {
	v := p.page.judge(n, k, err)
	if v != took {
		p.unasked = solicitEvery
	}
	switch v {
	case busy:
		p.page.reclaim(false)
		p.rest(time.After(idlePause))
	case shut:
		p.shut++
		runtime.Gosched()
	case gone:
		p.shut = mostShut
	case took:
	}
	return v
}

// waitShot waits for the event of a one-shot.
func (p *poster) waitShot(s *evd.OneShot, e *entry) {
	ctx, cancel := context.WithTimeout(context.Background(), p.account.w.cfg.Patience)
	defer cancel()
	ev, err := s.Wait(ctx)
	if err != nil {
		p.account.w.complain(Stuck, "%s: waiting for its one-shot request: %v", p.page.name(e), err)
		return
	}
	p.page.lane.shot(&ev)
	p.spare = s
}
