package ledger

import "time"

// fall closes the adapters abruptly when there were enough posts, with everything
// going on as it was.
func (w *world) fall() {
	for w.going() {
		time.Sleep(idlePause)
	}
	w.books.fallen.Store(true)
	var done [2]chan struct{}
	for i, ad := range w.ias {
		done[i] = make(chan struct{})
		go w.closeIA(ad.ia, done[i])
	}
	for _, c := range done {
		if !w.outlast(c, "Close of an adapter to return") {
			// The books overlook that one is stuck, now; but not this.
			w.complain(Leak, "Close of an adapter does not return")
		}
	}
	close(w.over)
}

// clearUp demands, when everything has fallen, that the channels were closed, and
// that everything that was posted towards one had come by then.
func (w *world) clearUp() {
	w.mu.Lock()
	hubs := w.hubs
	w.mu.Unlock()
	for _, h := range hubs {
		if h.style != byCallback && !w.outlast(h.done, "the consumer of %s", h.name) {
			w.complain(Leak, "dispatcher %s was aborted, and its consumer goes on", h.name)
		}
		h.mu.Lock()
		outlets := append([]*outlet(nil), h.outlets...)
		h.mu.Unlock()
		for _, o := range outlets {
			if !w.outlast(o.ended, "route %d of %s", o.place, h.name) {
				w.complain(Leak, "dispatcher %s was aborted, and its route %d is not closed", h.name, o.place)
			}
		}
	}
	for _, a := range w.books.accounts {
		if a != nil && a.ep != nil {
			for d := range a.lanes {
				a.lanes[d].auditFall()
			}
		}
	}
}

// auditFall demands that what was posted towards a channel has completed. What was
// posted towards a route that is closed and made again may have gone to the
// dispatcher itself, whose queue is lost with it.
func (l *lane) auditFall() {
	channel := l.hub.style == byChannel || l.hub.style == byBatch || l.hub.style == bySlowBatch
	for _, p := range l.pages {
		for i := p.audited; i < p.begun.Load(); i++ {
			e := &p.entries[i]
			route := e.place > atMain && e.place <= maxRoute
			kept := route && e.place != churned || channel && (route || e.place == atMain)
			if kept && !e.quiet() && e.isOpen() {
				l.account.books.complain(Lost, "%s: the adapter was closed, and its event did not come through %s", p.name(e), l.hub.name)
			}
		}
	}
}
