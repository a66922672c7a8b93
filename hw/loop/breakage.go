package loop

import (
	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/yield"
)

// fail completes a request with an error, and breaks the connection. What was
// done before and after it on this pipe is handed out and flushed in order.
func (p *pipe) fail(wr *hw.SendWR, status hw.Status) verdict {
	return p.failWith(wr, status, hw.StatusSuccess)
}

func (p *pipe) failWith(wr *hw.SendWR, status, atReceiver hw.Status) verdict {
	p.sends[p.nSends] = hw.WC{ID: wr.ID, Status: status, Op: wr.Op}
	p.nSends++
	p.failure = p.blame(wr.Op, status, atReceiver)
	p.attention.Or(broken | failed)
	return failure
}

// failBoth fails a request together with the receive that it has taken.
func (p *pipe) failBoth(wr *hw.SendWR, status, atReceiver hw.Status) verdict {
	rr := p.take()
	p.recvs[p.nRecvs] = hw.WC{ID: rr.ID, QP: p.number, Status: atReceiver, Op: hw.OpRecv}
	p.nRecvs++
	return p.failWith(wr, status, atReceiver)
}

// flush ends the pipe: it says what is to be said, flushes both queues, and ends
// each whose owner has called Break. It runs again when one does, or posts.
func (p *pipe) flush() {
	// Before the queues are looked at: an owner posts nothing after Break, so
	// what is there now is all of it.
	why := p.attention.Load()
	p.emit()
	p.leaveLine()
	if why&failed != 0 && !p.told {
		p.told = true
		p.reverse.attention.Or(broken | lost)
		p.reverse.kick()
	}
	if why&srcClosed == 0 && !p.saidDown {
		p.saidDown = true
		p.from.facts.Down(reason(why), p.cause(why))
	}
	if !p.srcEnded {
		p.flushSends()
	}
	if !p.dstEnded {
		p.flushRecvs()
	}
	p.emit()
	yield.Point()
	ended := p.srcEnded && p.dstEnded
	if why&srcClosed != 0 && !p.srcEnded {
		p.srcEnded = true
		p.from.end(p.src.sink, p.sends, p.from.qp.cfg.SendEnd)
	}
	if why&dstClosed != 0 && !p.dstEnded {
		p.dstEnded = true
		p.to.end(p.dst.sink, p.recvs, p.to.qp.cfg.RecvEnd)
	}
	if !ended && p.srcEnded && p.dstEnded {
		p.retire()
	}
}

// reason is what Down tells the source.
func reason(why uint32) hw.Reason {
	if why&orderly != 0 && why&(failed|lost) == 0 {
		return hw.ReasonPeer
	}
	return hw.ReasonBroken
}

func (p *pipe) flushSends() {
	for p.sendHead != p.sq.Tail.Load() {
		if p.full() {
			p.emit()
		}
		wr := &p.sq.Slots[p.sendHead&p.sq.Mask]
		if wr.Op == hw.OpBind {
			wr.Bind.Window.(*soft.Window).Forget(wr.Bind.Key)
		}
		p.sends[p.nSends] = hw.WC{ID: wr.ID, Status: hw.StatusFlushed, Op: wr.Op}
		p.nSends++
		p.sendHead++
	}
}

// flushRecvs flushes what the queue pair has of receives: of a shared queue only
// the one that was taken for a send and not used.
func (p *pipe) flushRecvs() {
	for p.hasDrawn || p.available() {
		if p.full() {
			p.emit()
		}
		rr := p.take()
		p.recvs[p.nRecvs] = hw.WC{ID: rr.ID, QP: p.number, Status: hw.StatusFlushed, Op: hw.OpRecv}
		p.nRecvs++
	}
}

// retire takes the pipe from its devices: neither side's memory or queues are
// reached through it any more.
func (p *pipe) retire() {
	p.from.qp.dev.dropPipe(p)
	if p.to.qp.dev != p.from.qp.dev {
		p.to.qp.dev.dropPipe(p)
	}
}
