package loop

import "godat/hw"

// join connects a queue pair that asked with one that answers, and reports it to
// both. It returns false if the asking one has gone. The answering one's phase
// is connecting, and stays so if it fails.
func join(a, b *life, private []byte) bool {
	ab, ba := newPipe(a, b), newPipe(b, a)
	ab.reverse, ba.reverse = ba, ab
	if !a.install(b, ab, ba) {
		return false
	}
	in, out := min(a.qp.cfg.ReadsIn, b.qp.cfg.ReadsOut), min(a.qp.cfg.ReadsOut, b.qp.cfg.ReadsIn)
	// Both pipes are held: until both sides have heard that the connection is
	// up, nothing completes on it, and nobody hears that it is down.
	if ab.attention.Load()&srcClosed == 0 {
		a.facts.Established(hw.ConnInfo{Local: a.local, Remote: b.local, ReadsIn: in, ReadsOut: out, Private: private})
	}
	if ba.attention.Load()&srcClosed == 0 {
		b.facts.Established(hw.ConnInfo{Local: b.local, Remote: a.local, ReadsIn: out, ReadsOut: in})
	}
	ab.grant()
	ab.run()
	ba.grant()
	ba.run()
	return true
}

// install makes the pipes known, unless the asking side has gone.
func (l *life) install(b *life, ab, ba *pipe) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != connecting {
		return false
	}
	for _, p := range [...]*pipe{ab, ba} {
		p.from.qp.dev.addPipe(p)
		if p.to.qp.dev != p.from.qp.dev {
			p.to.qp.dev.addPipe(p)
		}
	}
	// The answering side's owner is in Accept, and makes no other call. If it
	// is told of something before Accept returns, it finds the pipes.
	b.mu.Lock()
	defer b.mu.Unlock()
	l.phase, b.phase = connected, connected
	l.qp.out.Store(ab)
	l.qp.in.Store(ba)
	b.qp.out.Store(ba)
	b.qp.in.Store(ab)
	return true
}

// newPipe makes a pipe, which its maker holds.
func newPipe(from, to *life) *pipe {
	src, dst := from.qp, to.qp
	p := &pipe{
		src:        end{View: src.View(&src.dev.Device), sink: src.cfg.SendSink},
		dst:        end{View: dst.View(&dst.dev.Device), sink: dst.cfg.RecvSink},
		sq:         from.sq,
		rq:         to.rq,
		from:       from,
		to:         to,
		segments:   src.cfg.SendSegments,
		neverWaits: src.cfg.NotReady == 0,
		sends:      make([]hw.WC, max(1, min(maxScratch, src.cfg.SendDepth))),
		recvs:      make([]hw.WC, max(1, min(maxScratch, dst.cfg.RecvDepth))),
		recvFree:   1,
	}
	if dst.srq != nil {
		p.srq, p.number = dst.srq, dst.cfg.Number
		p.recvs = make([]hw.WC, maxScratch)
	}
	switch {
	case src.cfg.ReadsOut == 0:
		p.canRead = hw.StatusLocalEP
	case dst.cfg.ReadsIn == 0:
		p.canRead = hw.StatusRemoteResponder
	}
	p.word.Store(held)
	return p
}

// side is which of the pipe's two places is the device's.
func (p *pipe) side(d *device) int {
	if p.from.qp.dev == d {
		return 0
	}
	return 1
}
