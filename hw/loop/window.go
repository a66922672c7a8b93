package loop

import (
	"godat/hw"
	"godat/hw/internal/soft"
)

// bind binds the window, or unbinds it. The requests behind the bind in the queue
// execute after it, so they find it done.
func (x *executor) bind(wr *hw.SendWR) verdict {
	b := wr.Bind
	w, q := b.Window.(*soft.Window), x.pipe.from.qp // see CheckBind
	ok, used, own := w.BeginBind(&q.QP, b)
	if used && !x.quiesce(q, own) {
		return tooLong
	}
	if !ok || !w.EndBind(&q.QP, b) {
		w.Forget(b.Key)
		return x.fail(wr, hw.StatusBindFailed)
	}
	return x.sent(wr, 0)
}

// invalidate invalidates a key of the target's on the source's behalf, before the
// message is moved: it unbinds a window, and takes the remote privileges from a region's
// key. Unless the verdict is done, the caller does not move the message.
func (x *executor) invalidate(wr *hw.SendWR) verdict {
	if !x.invalidated {
		if !x.pipe.to.qp.dev.Invalidate(&x.pipe.to.qp.QP, wr.Imm) {
			return x.fail(wr, hw.StatusRemoteAccess)
		}
		x.invalidated = true
	}
	if !x.quiesce(x.pipe.to.qp, false) {
		return tooLong
	}
	x.invalidated = false
	return done
}

// sentInvalidate completes a send that has invalidated a key.
func (x *executor) sentInvalidate(wr *hw.SendWR, n uint32) verdict {
	x.dst.received(n, hw.OpRecvInvalidate, hw.WCInvalidated|solicited(wr), wr.Imm)
	at := x.src.n
	v := x.sent(wr, n)
	if x.src.n > at {
		x.src.wcs[at].Op = hw.OpSend
	}
	return v
}

// quiesce waits until no other pipe has an access in progress through a key of the queue
// pair's zone that died before the call. If own, the key was of the queue pair's own window,
// and only the pipe towards it can have one. A poster may not wait: for a poster quiesce
// returns false if a pipe may have such an access.
func (x *executor) quiesce(q *queuePair, own bool) bool {
	wait := x.others[:0]
	if !own {
		wait = q.Zone.InProgress(x.pipe, wait)
	} else if in := q.in.Load(); in != nil && in != x.pipe {
		if a, busy := soft.Now(in); busy {
			wait = append(wait, a)
		}
	}
	x.others = wait
	defer clear(wait) // keep no pipe alive
	return soft.AwaitBeside(wait, x.byWorker, &x.pipe.token)
}
