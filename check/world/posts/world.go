package posts

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"godat/check/world/program"
	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// zonesPerAdapter is how many protection zones each adapter has.
const zonesPerAdapter = 2

// world is everything that a run makes.
type world struct {
	*program.World
	cfg   *Posts
	books books
	ias   [2]*adapter
	all   []*link
	links sync.WaitGroup
	hasty bool          // a send that finds no receive breaks the connection at once
	over  chan struct{} // closed when closeAbruptly has closed the adapters

	mu          sync.Mutex
	calls       map[uint64]*call      // attempts under way, by the nonce that the request carries
	dispatchers []*consumedDispatcher // all dispatchers there ever were, if the run closes the adapters abruptly
}

// adapter is an adapter and the dispatchers that its endpoints share.
type adapter struct {
	ia          *dat.IA
	psp         *ep.PSP
	crs         *consumedDispatcher
	dispatchers [classes][]*consumedDispatcher
	homes       [zonesPerAdapter]*home
}

// home is a protection zone of an adapter.
type home struct {
	*adapter
	name string
	pz   *mem.PZ
}

// shared chooses one of the adapter's shared dispatchers of a class.
func (h *home) shared(c class, rng *rand.Rand) *consumedDispatcher {
	return h.dispatchers[c][rng.IntN(len(h.dispatchers[c]))]
}

// complain adds a complaint.
func (w *world) complain(k Kind, format string, args ...any) { w.books.complain(k, format, args...) }

// must complains of the error of a call that has to succeed, and reports whether it has.
func (w *world) must(err error, format string, args ...any) bool {
	if err != nil {
		w.complain(Code, format+": %v", append(args, err)...)
	}
	return err == nil
}

// broken reports whether there was a complaint, or closeAbruptly is closing the adapters.
// The run then ends as soon as it can.
func (w *world) broken() bool { return w.books.any.Load() || w.books.closingAbruptly.Load() }

// going reports whether more lives are to begin.
func (w *world) going() bool {
	return !w.broken() && w.books.posts() < w.cfg.Ops
}

// retry makes a call, and again as often as an unreliable provider refuses it.
func (w *world) retry(call func() error) (err error) {
	for range mostTries {
		if err = call(); !w.cfg.Unreliable || !errors.Is(err, hw.ErrInsufficientResources) {
			break
		}
	}
	return err
}

// mostTries is how often the program makes a call that an unreliable provider may refuse:
// a registration, NewEndpoint, Connect.
const mostTries = 100

// await waits until c is closed, and complains after Patience. An abrupt close ends the wait
// with false.
func (w *world) await(c <-chan struct{}, format string, args ...any) bool {
	_, ok := receive(w, w.over, c, format, args...)
	return ok
}

// outlast is await for what must happen even during an abrupt close.
func (w *world) outlast(c <-chan struct{}, format string, args ...any) bool {
	_, ok := receive(w, nil, c, format, args...)
	return ok
}

// receive receives from c, and complains after Patience. The close of over ends the
// wait with false.
func receive[T any](w *world, over <-chan struct{}, c <-chan T, format string, args ...any) (x T, ok bool) {
	timeout := time.NewTimer(w.cfg.Patience)
	defer timeout.Stop()
	select {
	case x = <-c:
		return x, true
	default:
	}
	select {
	case x = <-c:
		return x, true
	case <-over:
	case <-timeout.C:
		w.complain(Stuck, "waited in vain for "+format, args...)
	}
	return x, false
}

// open opens the adapters and makes what their endpoints share.
func (w *world) open() bool {
	w.calls, w.over = make(map[uint64]*call), make(chan struct{})
	w.books.cookies.Store(w.Seed << 20)
	w.books.wrong, w.books.early = w.Wrong, w.cfg.Early
	for i, host := range Hosts {
		ia, err := w.Open(host)
		if !w.must(err, "opening an adapter of %s", host) {
			return false
		}
		w.ias[i] = &adapter{ia: ia}
		w.hasty = w.hasty || !ia.Attr().NotReadyWait
		if !w.makeShared(i) {
			return false
		}
	}
	return true
}

// makeShared makes what the endpoints of an adapter share.
func (w *world) makeShared(i int) bool {
	ad := w.ias[i]
	name := string(rune('A' + i))
	// Long enough for all endpoints that can exist at a time.
	room := 2 * w.cfg.Clients * 2 * (2*64 + 2)
	for c := range classes {
		for _, s := range stylesOf(c) {
			h := w.newDispatcher(ad.ia, dispatcherPlan{name: "shared of " + name, style: s, qlen: room, routed: s%2 == 0})
			if h == nil {
				return false
			}
			ad.dispatchers[c] = append(ad.dispatchers[c], h)
		}
	}
	if ad.crs = w.newDispatcher(ad.ia, dispatcherPlan{name: "requests of " + name, style: byWait, qlen: room}); ad.crs == nil {
		return false
	}
	var err error
	if ad.psp, err = ad.ia.NewPSP(ep.PSPConfig{Dispatcher: ad.crs.disp}); !w.must(err, "listening") {
		return false
	}
	for z := range ad.homes {
		h := &home{adapter: ad, name: name + string(rune('1'+z))}
		ad.homes[z] = h
		if h.pz, err = ad.ia.NewPZ(); !w.must(err, "a zone of %s", name) {
			return false
		}
	}
	return true
}

// run runs the links until there are enough posts.
func (w *world) run() {
	for n := range w.cfg.Clients {
		l := &link{w: w, number: n, adapters: [2]int{0, 1}}
		if n%4 == 3 {
			l.adapters[1] = 0
		}
		w.all = append(w.all, l)
		w.links.Add(1)
		go l.run()
	}
	if w.cfg.AbruptClose {
		w.closeAbruptly()
	}
	w.links.Wait()
}

// close closes what the endpoints shared, so that nothing is left when the world closes the adapters.
func (w *world) close() {
	if w.books.closingAbruptly.Load() {
		w.checkAbruptClose()
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
	}
}

// spawn calls f on a goroutine of its own, and returns a channel that is closed when f
// has returned.
func spawn(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

func (w *world) closeIA(ia *dat.IA) {
	if err := ia.Close(); err != nil {
		w.complain(Leak, "closing an adapter: %v", err)
	}
}

// clear closes what the endpoints of an adapter shared.
func (w *world) clear(ad *adapter) {
	w.must(ad.psp.Close(), "closing a service point")
	ad.crs.close()
	for c := range ad.dispatchers {
		for _, h := range ad.dispatchers[c] {
			h.close()
		}
	}
	for _, h := range ad.homes {
		w.must(h.pz.Close(), "closing the zone of %s", h.name)
	}
	if s := ad.ia.MemoryStats(); s.Regions != 0 || s.Bytes != 0 {
		w.complain(Leak, "%d regions of %d bytes are registered when all were freed", s.Regions, s.Bytes)
	}
}

// checkAsync complains of every asynchronous error of the adapter.
func (ad *adapter) checkAsync(w *world) {
	var evs [manyEvents]event.Event
	n, err := ad.ia.Async().Dequeue(evs[:])
	w.must(err, "Dequeue of asynchronous errors")
	for _, ev := range evs[:n] {
		_, why, _ := ev.Async()
		w.complain(Alarm, "%v, reason %v", ev, why)
	}
}

// expect enters a call before its Connect; requested finds it by its nonce.
func (w *world) expect(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[binary.BigEndian.Uint64(c.private)] = c
}

// forget removes a call, unless its request may come late.
func (w *world) forget(c *call) {
	if c.late {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, binary.BigEndian.Uint64(c.private))
}

// requested hands a connection request to the link that waits for it.
func (w *world) requested(ev *event.Event) {
	cr := ep.RequestOf(*ev)
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
