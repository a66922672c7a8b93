package posts

import (
	"math/rand/v2"
	"sync"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/mem"
)

// receiver keeps the receives of one page posted during one life: from its own
// goroutine or, with upcall set, from the goroutine of the consumer that gets their
// events.
type receiver struct {
	*page
	life    *life
	account *account
	side    int
	rng     *rand.Rand
	upcall  bool

	mu       sync.Mutex // guards the page of an upcall receiver
	retired  bool
	failures int
	batch    []ep.DTO
	segments []mem.Segment
}

func newReceiver(lf *life, side, number int, p *page) *receiver {
	a := lf.sides[side]
	rng := a.w.dice(forReceiver, uint64(lf.link.number), uint64(lf.number), uint64(side), uint64(number))
	return &receiver{
		page: p, life: lf, account: a, side: side, rng: rng, upcall: rng.IntN(3) == 0 && len(p.shots) == 0, failures: p.failures,
		batch: make([]ep.DTO, 0, maxWindow), segments: make([]mem.Segment, 0, maxWindow*maxSegments),
	}
}

// prime posts the first receives, before the endpoint connects.
func (r *receiver) prime() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reclaim(false)
	r.fill()
}

// run is the receiver's goroutine.
func (r *receiver) run() {
	defer r.life.posters.Done()
	for {
		r.poll()
		r.reclaim(false)
		said := r.fill()
		var look <-chan time.Time
		if len(r.shots) > 0 || said == busy {
			look = time.After(shotPause)
		}
		select {
		case <-r.bell:
		case <-look:
		case <-r.life.stop:
			r.poll()
			return
		}
	}
}

// replenish lets an upcall receiver post receives in place of those that have
// completed. Consumers call it after each completion.
func (a *account) replenish(p *page) {
	if r := p.pump.Load(); r != nil {
		r.replenish()
	}
}

func (r *receiver) replenish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.retired {
		r.reclaim(false)
		r.fill()
	}
}

// retire stops an upcall receiver.
func (r *receiver) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retired = true
}

// fill fills the window with receives, and returns the verdict of the last post.
func (r *receiver) fill() (said verdict) {
	for r.outstanding() < r.window && r.going() {
		n := 1
		if r.rng.IntN(4) == 0 {
			n = min(r.window-r.outstanding(), 1+r.rng.IntN(8))
		}
		if said = r.post(n); said != took {
			break
		}
	}
	return said
}

func (r *receiver) going() bool {
	return !r.life.halted.Load() && !r.life.paused[r.side].Load() &&
		r.page.failures-r.failures < r.window+mostAfter && r.left() > maxWindow
}

// label makes the k-th entry after next a receive.
func (r *receiver) label(k int) *entry {
	at := r.choosePlace(r.rng)
	if at == churned && r.upcall {
		at = atMain // churned may have no room for a while, and an upcall receiver does not repeat a post
	}
	e := r.page.label(k, at, untagged|uint8(r.rng.Uint32()))
	e.op, e.flags, e.length = hw.OpRecv, 0, maxMessage
	if r.account.kind == silent && r.outstanding()+k+1 < r.window && r.rng.IntN(2) == 0 {
		e.flags = hw.Unsignalled
	}
	e.local = cut(r.rng, r.slotAt(r.slot(k)), maxMessage)
	return e
}

// post posts the next n receives.
func (r *receiver) post(n int) verdict {
	r.batch, r.segments = r.batch[:0], r.segments[:0]
	for k := range n {
		e := r.label(k)
		at := len(r.segments)
		r.segments = r.account.recv.segments(e.local, r.segments)
		r.batch = append(r.batch, ep.DTO{Flags: e.flags, Cookie: e.cookie, Segments: r.segments[at:]})
	}
	if n == 1 && !r.upcall && r.rng.IntN(16) == 0 {
		return r.byShot()
	}
	r.begin(n)
	var err error
	k := n
	if n == 1 {
		if err = r.account.ep.PostRecv(r.batch[0].Cookie, r.batch[0].Flags, r.batch[0].Segments...); err != nil {
			k = 0
		}
	} else {
		k, err = r.account.ep.PostRecvBatch(r.batch)
	}
	return r.judge(n, k, err)
}

// byShot posts a receive whose event goes to a one-shot, which it may release
// unread.
func (r *receiver) byShot() verdict {
	e := r.next()
	e.flags, e.place = 0, atShot
	if r.outstanding()+1 < r.window && r.rng.IntN(8) == 0 {
		e.place = nowhere
		r.lane.unseen.Add(1)
	}
	to := r.lane.dispatcher.disp.NewOneShot()
	r.batch[0].Flags, r.batch[0].OneShot = 0, to
	r.begin(1)
	k, err := r.account.ep.PostRecvBatch(r.batch)
	v := r.judge(1, k, err)
	if v != took || e.place == nowhere {
		to.Release()
	} else {
		r.shots = append(r.shots, shot{to, e})
	}
	return v
}
