package loop

import (
	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/yield"
)

// ending records what a pipe has reported of its end. The pipe's holder owns it.
type ending struct {
	downReported       bool // Down was reported to the source
	reverseTold        bool // the reverse pipe was told of a failure here
	srcEnded, dstEnded bool // OpEnd was reported
}

// fail breaks the connection after its executor's operation failed. Completions of
// the requests before the failed one are handed out in order with it, and the
// requests behind it are flushed.
func (p *pipe) fail() {
	p.token.Check()
	p.causes = p.causesOf(p.exec.failed)
	p.attention.Or(broken | ownFailed)
}

// flush ends the pipe: it reports the reason, flushes both queues, and ends each queue
// whose owner has called Break. It runs again when an owner calls Break or posts.
func (p *pipe) flush() {
	p.token.Check()
	// The load comes before the look at the queues: an owner posts nothing after
	// Break, so the queues then hold all that it posted.
	why := p.attention.Load()
	x, e := &p.exec, &p.ending
	x.emit()
	x.dst.leaveLine()
	if why&ownFailed != 0 && !e.reverseTold {
		e.reverseTold = true
		p.reverse.attention.Or(broken | lost)
		p.reverse.kick()
	}
	if why&srcClosed == 0 {
		p.reportDown(reason(why), p.cause(why))
	}
	if !e.srcEnded {
		x.flushSends()
	}
	if !e.dstEnded {
		x.flushRecvs()
	}
	x.emit()
	yield.Point()
	ended := e.srcEnded && e.dstEnded
	if why&srcClosed != 0 && !e.srcEnded {
		e.srcEnded = true
		p.from.end(x.src.sink, p.from.qp.Cfg.SendEnd)
	}
	if why&dstClosed != 0 && !e.dstEnded {
		e.dstEnded = true
		p.to.end(x.dst.sink, p.to.qp.Cfg.RecvEnd)
	}
	if !ended && e.srcEnded && e.dstEnded {
		p.leave()
	}
}

// reportDown reports Down to the source, once.
func (p *pipe) reportDown(why hw.Reason, cause *hw.Cause) {
	if !p.ending.downReported {
		p.ending.downReported = true
		p.from.facts.Down(why, cause)
	}
}

// reason is the reason that Down reports to the source.
func reason(why uint32) hw.Reason {
	if why&orderly != 0 && why&(ownFailed|lost) == 0 {
		return hw.ReasonPeer
	}
	return hw.ReasonBroken
}

// flushSends completes the requests of the queue with StatusFlushed.
func (x *executor) flushSends() {
	for !x.src.empty() {
		if x.full() {
			x.makeRoom()
		}
		x.src.wcs[x.src.n] = flushedSend(x.src.first())
		x.src.n++
		x.src.head++
	}
}

// flushedSend is the completion of a request of the send queue that is flushed.
func flushedSend(wr *hw.SendWR) hw.WC {
	if wr.Op == hw.OpBind {
		wr.Bind.Window.(*soft.Window).Forget(wr.Bind.Key)
	}
	return hw.WC{ID: wr.ID, Status: hw.StatusFlushed, Op: wr.Op}
}

// flushRecvs completes the queue pair's receives with StatusFlushed; with a shared
// queue, only the receive that was taken for a send and not used.
func (x *executor) flushRecvs() {
	for x.dst.hasDrawn || x.dst.available() {
		if x.full() {
			x.makeRoom()
		}
		x.dst.fail(hw.StatusFlushed)
	}
}
