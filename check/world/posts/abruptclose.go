package posts

import "time"

// closeAbruptly closes both adapters abruptly, once the run has enough posts, while the
// links go on.
func (w *world) closeAbruptly() {
	for w.going() {
		time.Sleep(idlePause)
	}
	w.books.closingAbruptly.Store(true)
	var done [2]<-chan struct{}
	for i, ad := range w.ias {
		done[i] = spawn(func() { w.closeIA(ad.ia) })
	}
	for _, c := range done {
		if !w.outlast(c, "Close of an adapter to return") {
			// The books now drop complaints of the kind Stuck; this one they keep.
			w.complain(Leak, "Close of an adapter does not return")
		}
	}
	close(w.over)
}

// checkAbruptClose checks, after closeAbruptly, that the consumers have ended and the channels are
// closed, and that every post whose event goes to a channel has completed.
func (w *world) checkAbruptClose() {
	w.mu.Lock()
	dispatchers := w.dispatchers
	w.mu.Unlock()
	for _, h := range dispatchers {
		if h.style != byCallback && !w.outlast(h.done, "the consumer of %s", h.name) {
			w.complain(Leak, "dispatcher %s was aborted, and its consumer goes on", h.name)
		}
		for _, o := range h.openConsumers() {
			if !w.outlast(o.ended, "route %d of %s", o.place, h.name) {
				w.complain(Leak, "dispatcher %s was aborted, and its route %d is not closed", h.name, o.place)
			}
		}
	}
	for _, a := range w.books.endpoints.Range {
		for d := range a.(*account).lanes {
			a.(*account).lanes[d].auditAbruptClose()
		}
	}
}

// auditAbruptClose complains of posts that have not completed though their events go to a
// channel. It excepts those to the route that churn closes and makes again: their
// events may have gone to the dispatcher's own queue, which is lost with it.
func (l *lane) auditAbruptClose() {
	for _, p := range l.pages {
		for e := range p.unaudited {
			route := e.place > atMain && e.place <= maxRoute
			kept := route && e.place != churned || l.dispatcher.style.hasChannel() && (route || e.place == atMain)
			if kept && !e.quiet() && e.isOpen() {
				l.account.books.complain(Lost, "%s: the adapter was closed, and its event did not come through %s", p.name(e), l.dispatcher.name)
			}
		}
	}
}
