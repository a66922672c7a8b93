package ledger

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	dat "godat/runtime"
)

// zonesPerAdapter is how many protection zones each adapter has.
const zonesPerAdapter = 2

// world is all that a run has.
type world struct {
	cfg   Config
	books books
	homes [2][zonesPerAdapter]*home
	ias   [2]*adapter
	all   []*link
	links sync.WaitGroup
	hasty bool          // a send that finds no receive breaks the connection at once
	over  chan struct{} // closed when everything has fallen

	mu    sync.Mutex
	calls map[uint64]*call // attempts under way, by the nonce that the request carries
	hubs  []*hub           // all there ever were, when everything is to fall
}

// adapter is an adapter and what its homes share.
type adapter struct {
	ia   *dat.IA
	psp  *dat.PSP
	crs  *hub
	hubs [classes][]*hub
}

// home is a protection zone, and what its endpoints share.
type home struct {
	*adapter
	name string
	pz   *dat.PZ
}

// shared chooses one of the adapter's dispatchers.
func (h *home) shared(c class, rng *rand.Rand) *hub {
	return h.hubs[c][rng.IntN(len(h.hubs[c]))]
}

// complain adds a complaint.
func (w *world) complain(k Kind, format string, args ...any) { w.books.complain(k, format, args...) }

// broken reports whether there was a complaint, or everything has fallen. A run
// then ends as soon as it can.
func (w *world) broken() bool { return w.books.any.Load() || w.books.fallen.Load() }

// going reports whether more lives are to begin.
func (w *world) going() bool {
	c := &w.books.counts
	return !w.broken() && c.posted[requests].Load()+c.posted[receives].Load() < w.cfg.Ops
}

// mayRefuse reports whether err is what an unreliable provider says to a call that
// it may be asked again.
func (w *world) mayRefuse(err error) bool {
	return w.cfg.Unreliable && errors.Is(err, dat.ErrInsufficientResources)
}

// await waits for something that must happen, unless everything falls.
func (w *world) await(c <-chan struct{}, format string, args ...any) bool {
	return w.awaitUnless(w.over, c, format, args...)
}

// outlast is await for what must happen in any case.
func (w *world) outlast(c <-chan struct{}, format string, args ...any) bool {
	return w.awaitUnless(nil, c, format, args...)
}

func (w *world) awaitUnless(over, c <-chan struct{}, format string, args ...any) bool {
	select {
	case <-c:
		return true
	default:
	}
	timeout := time.NewTimer(w.cfg.Patience)
	defer timeout.Stop()
	select {
	case <-c:
		return true
	case <-over:
	case <-timeout.C:
		w.complain(Stuck, "waited in vain for "+format, args...)
	}
	return false
}

// open opens the adapters and makes what endpoints share.
func (w *world) open() bool {
	w.calls, w.over = make(map[uint64]*call), make(chan struct{})
	w.books.salt = w.cfg.dice(forSalt).Uint64() & codeMask
	w.books.early, w.books.hear = w.cfg.EarlyCompletion, w.cfg.OnComplaint
	for i, name := range w.cfg.Adapters {
		ia, err := dat.Open(context.Background(), name, append(w.cfg.Options, dat.WithProvider(w.cfg.Providers[i]))...)
		if err != nil {
			w.complain(Code, "opening %q: %v", name, err)
			return false
		}
		w.ias[i] = &adapter{ia: ia}
		w.hasty = w.hasty || !ia.Attr().NotReadyWait
		if !w.furnish(i) {
			return false
		}
	}
	return true
}

// furnish makes what the endpoints of an adapter share.
func (w *world) furnish(i int) bool {
	ad := w.ias[i]
	name := string(rune('A' + i))
	// As long as all endpoints there can be at a time could need together.
	room := 2 * w.cfg.Links * 2 * (2*64 + 2)
	for c := range classes {
		for _, s := range stylesOf(c) {
			h := w.newHub(ad.ia, hubPlan{name: "shared of " + name, style: s, qlen: room, routed: s%2 == 0})
			if h == nil {
				return false
			}
			ad.hubs[c] = append(ad.hubs[c], h)
		}
	}
	if ad.crs = w.newHub(ad.ia, hubPlan{name: "requests of " + name, style: byWait, qlen: room}); ad.crs == nil {
		return false
	}
	var err error
	if ad.psp, err = ad.ia.NewPSP(dat.PSPConfig{Dispatcher: ad.crs.disp}); err != nil {
		w.complain(Code, "listening: %v", err)
		return false
	}
	for z := range w.homes[i] {
		h := &home{adapter: ad, name: name + string(rune('1'+z))}
		w.homes[i][z] = h
		if h.pz, err = ad.ia.NewPZ(); err != nil {
			w.complain(Code, "a zone of %s: %v", name, err)
			return false
		}
	}
	return true
}

// run lets the links live until there were enough posts.
func (w *world) run() {
	for n := range w.cfg.Links {
		l := &link{w: w, number: n, adapters: [2]int{0, 1}}
		if n%4 == 3 {
			l.adapters[1] = 0
		}
		w.all = append(w.all, l)
		w.links.Add(1)
		go l.run()
	}
	if w.cfg.Fall {
		w.fall()
	}
	w.links.Wait()
}

// close closes everything, and demands that nothing else is left.
func (w *world) close() {
	if w.books.fallen.Load() {
		w.clearUp()
		return
	}
	for _, ad := range w.ias {
		if ad == nil {
			continue
		}
		if !w.broken() {
			w.clear(ad)
		}
		ad.checkAsync(w)
		if !w.broken() {
			if err := ad.ia.CloseGraceful(); err != nil {
				w.complain(Leak, "closing an adapter on which nothing is left: %v", err)
			}
		}
		done := make(chan struct{})
		go w.closeIA(ad.ia, done)
		w.await(done, "Close of an adapter to return")
	}
}

func (w *world) closeIA(ia *dat.IA, done chan<- struct{}) {
	defer close(done)
	if err := ia.Close(); err != nil {
		w.complain(Leak, "closing an adapter: %v", err)
	}
}

// clear closes what the endpoints of an adapter shared.
func (w *world) clear(ad *adapter) {
	if err := ad.psp.Close(); err != nil {
		w.complain(Code, "closing a service point: %v", err)
	}
	ad.crs.close()
	for c := range ad.hubs {
		for _, h := range ad.hubs[c] {
			h.close()
		}
	}
	for i := range w.ias {
		if w.ias[i] != ad {
			continue
		}
		for _, h := range w.homes[i] {
			w.leave(h)
		}
	}
	if s := ad.ia.MemoryStats(); s.Regions != 0 || s.Bytes != 0 {
		w.complain(Leak, "%d regions of %d bytes are registered when all were freed", s.Regions, s.Bytes)
	}
}

// leave frees what a home has.
func (w *world) leave(h *home) {
	if err := h.pz.Close(); err != nil {
		w.complain(Code, "closing the zone of %s: %v", h.name, err)
	}
}

// checkAsync demands that the adapter has reported no asynchronous error.
func (ad *adapter) checkAsync(w *world) {
	var evs [manyEvents]dat.Event
	n, err := ad.ia.Async().Dequeue(evs[:])
	if err != nil {
		w.complain(Code, "Dequeue of asynchronous errors: %v", err)
	}
	for _, ev := range evs[:n] {
		_, why, _ := ev.Async()
		w.complain(Alarm, "%v, reason %v", ev, why)
	}
}

// expect enters a call, whose request will come as an event.
func (w *world) expect(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[binary.BigEndian.Uint64(c.private)] = c
}

// forget forgets a call, unless its request may come late.
func (w *world) forget(c *call) {
	if c.late {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, binary.BigEndian.Uint64(c.private))
}

// requested enters a connection request.
func (w *world) requested(ev *dat.Event) {
	cr := dat.RequestOf(*ev)
	q, err := cr.Query()
	if err != nil || len(q.Private) < nonceSize {
		w.complain(Connection, "a request with private data %x, error %v", q.Private, err)
		return
	}
	w.mu.Lock()
	c := w.calls[binary.BigEndian.Uint64(q.Private)]
	w.mu.Unlock()
	switch {
	case c == nil:
		w.complain(Stranger, "a connection request %x that nobody waits for", q.Private)
	case string(c.private) != string(q.Private):
		w.complain(Connection, "a request with private data %x, not %x", q.Private, c.private)
	default:
		select {
		case c.crs <- cr:
		default:
			if c.late {
				return
			}
			w.complain(Twice, "a second request with private data %x", q.Private)
		}
	}
}
