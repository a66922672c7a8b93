package loop

import (
	"runtime"
	"time"

	"godat/hw"
	"godat/hw/internal/soft"
)

// NewWindow makes a window for a zone, or for one queue pair of that zone: only
// pipes towards it have its scope.
func (d *device) NewWindow(h hw.Zone, qp hw.QP) (hw.Window, error) {
	if qp == nil {
		return d.Device.NewWindow(h, nil)
	}
	q, ok := qp.(*queuePair)
	if !ok || q == nil || q.dev != d || q.life == nil {
		return nil, hw.Errorf("loop.NewWindow", hw.InvalidHandle, hw.HandleEP, "not a queue pair of this device")
	}
	return d.Device.NewWindow(h, &q.QP)
}

// bind binds the window, or unbinds it. What follows in the queue is executed
// after it, so it finds it done.
func (p *pipe) bind(wr *hw.SendWR) verdict {
	b := wr.Bind
	w, q := b.Window.(*soft.Window), p.from.qp // see CheckBind
	ok, used, own := w.BeginBind(&q.QP, b)
	var scope *queuePair
	if own {
		scope = q
	}
	if used && !p.settle(q.dev, scope) {
		return tooLong
	}
	if !ok || !w.EndBind(&q.QP, b) {
		w.Forget(b.Key)
		return p.fail(wr, hw.StatusBindFailed)
	}
	return p.sent(wr, 0)
}

// invalidate kills a key of the target's on the source's behalf, before a message
// is moved. A window is unbound; a region's key has no remote rights any more.
// With another verdict than done nothing is to be moved.
func (p *pipe) invalidate(wr *hw.SendWR) verdict {
	d := p.to.qp.dev
	if !p.killed {
		if !d.Invalidate(&p.to.qp.QP, wr.Imm) {
			return p.fail(wr, hw.StatusRemoteAccess)
		}
		p.killed = true
	}
	if !p.settle(d, nil) {
		return tooLong
	}
	p.killed = false
	return done
}

// invalidated completes a send that has invalidated a key.
func (p *pipe) invalidated(wr *hw.SendWR, n uint32) verdict {
	p.received(n, hw.OpRecvInvalidate, hw.WCInvalidated|solicited(wr), wr.Imm)
	at := p.nSends
	v := p.sent(wr, n)
	if p.nSends > at {
		p.sends[at].Op = hw.OpSend
	}
	return v
}

// settle waits until no other pipe is in the middle of an access through a key
// that was dead before; all that is towards one queue pair if scope is set. It
// reports false if that can't be had at once and the pipe's holder, who is no
// worker, may not wait. What waits touches no memory and says so, for two that
// wait for each other.
func (p *pipe) settle(d *device, scope *queuePair) bool {
	wait := p.scratch[:0]
	if scope == nil {
		wait = d.inProgress(p, wait)
	} else if in := scope.in.Load(); in != nil && in != p {
		wait = append(wait, busy{in, in.word.Load()})
	}
	p.scratch = wait
	defer clear(wait) // they may end
	for _, b := range wait {
		for spin := 0; !b.p.movedOn(b.w); spin++ {
			if !p.patient {
				return false
			}
			p.step()
			rest(spin)
		}
	}
	return true
}

// rest passes the time of who waits for a copy.
func rest(spin int) {
	if spin < 100 {
		runtime.Gosched()
	} else {
		time.Sleep(20 * time.Microsecond)
	}
}
