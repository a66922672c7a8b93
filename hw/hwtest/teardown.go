package hwtest

import (
	"errors"
	"time"

	"godat/hw"
)

// endAll ends and closes the queue pairs of a host and checks their books.
func (h *host) endAll() {
	r := h.rig
	h.stopWaiting()
	h.start() // a device that openUnpumped opened has no pump yet
	for _, e := range h.ends {
		if e.qp == nil {
			continue
		}
		e.mu.Lock()
		closed, broken := e.closed, e.broken
		e.mu.Unlock()
		if !closed {
			if !broken {
				e.breakNow(false)
			}
			if !e.wait(e.overLocked) {
				r.tb.Errorf("%s: its queues did not end\n%s", e.name(), e.dump())
			}
			err := e.qp.Close()
			if errors.Is(err, hw.ErrInvalidState) {
				// The ends may come later than a short patience, or than a device that
				// breaks the contract has told. Without Close the device would stay open.
				closes := func() bool { return !errors.Is(e.qp.Close(), hw.ErrInvalidState) }
				r.also.Eventually(closes, defaultPatience, time.Millisecond, e.name())
			}
			r.also.NoError(err, e.name())
			for _, cq := range e.cqs {
				r.also.NoError(cq.Close())
			}
		}
		e.mu.Lock()
		r.also.Empty(e.bad, "%s broke the contract", e.name())
		e.mu.Unlock()
	}
}

// close closes the device and everything on it but the queue pairs, which endAll has
// closed.
func (h *host) close() {
	if h.closed {
		return
	}
	h.closed = true
	r := h.rig
	for _, f := range h.later {
		f()
	}
	for _, cq := range h.cqs {
		r.also.NoError(cq.Close())
	}
	for _, l := range h.listeners {
		if !l.closed {
			r.also.NoError(l.Listener.Close())
		}
	}
	for _, g := range h.regions {
		if !g.freed {
			r.also.NoError(g.mr.Deregister())
		}
		if g.pinned {
			g.pin.Unpin()
		}
	}
	for _, z := range append(h.zones, h.zone) {
		if z != nil {
			r.also.NoError(z.Close())
		}
	}
	if h.pump != nil {
		h.pump.end()
	}
	r.also.NoError(h.dev.Close(), "%s: everything is closed", h.name)
	h.consumers.end()
	h.mu.Lock()
	defer h.mu.Unlock()
	r.also.Empty(h.bad, "%s broke the contract", h.name)
	for _, ev := range h.asyncs {
		r.also.NotEqual(hw.AsyncCQOverrun, ev.Kind, "%s: a completion queue overran", h.name)
	}
}
