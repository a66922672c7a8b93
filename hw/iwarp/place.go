package iwarp

import (
	"sync/atomic"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
	"godat/internal/owner"
	"godat/internal/release"
	"godat/internal/yield"
)

// placer handles the segments that the peer sends: it checks them, places their payloads
// in memory, completes receives, and enqueues what the sender owes the peer. The
// receiver's owner owns it.
type placer struct {
	// Immutable.
	link *link
	mem  soft.View
	rq   *recvQueue // the poster fills it
	own  *owner.Tag // the receiver's
	sink hw.SeriesSink

	// Shared. touch is odd while the receiver touches memory.
	touch   atomic.Uint64
	present soft.Presence // in the set of accessors of the queue pair's zone

	// Owned by the receiver's owner.
	// The present message, which fills a receive.
	msn     uint32 // number of the message that is or was received last
	open    bool   // the message is not complete
	got     uint32 // octets of the message so far
	room    uint64 // octets of its receive, at most as many as a message may have
	msg     soft.Cursor
	wcs     []hw.WC // completions of receives that are not handed out, behind those that the sink keeps; nil until there is one
	n       int     // number of completions in wcs
	kept    bool    // the sink keeps completions until Flush
	more    bool    // consume has seen octets behind the FPDU, so that a message is likely to follow
	kickDue bool    // there is work for the sender
	probed  bool    // the peer has asked whether this end lives; see atRest

	// The peer's requests, and its responses to this end's.
	readMSN  uint32
	respMSN  uint32
	read     soft.Cursor // in the sink of this end's oldest read, once its response has begun
	readGot  uint32
	wrote    uint64 // octets of the write that is or was received last, until a message comes
	writing  bool   // in the middle of a write
	farewell bool   // the peer has sent a farewell

	// The target of the present segment.
	dst    *soft.Cursor // msg, read or remote
	remote soft.Cursor  // in a region that a write names
	one    [1]hw.SGE

	verdict verdict   // on this end's requests, by an error that the receiver has found
	failed  hw.Status // how the open receive fails, if it does
}

func (p *placer) init(l *link, mem soft.View, depth int, own *owner.Tag) {
	p.link, p.mem, p.rq, p.own = l, mem, newRecvQueue(depth, l.qp.srq), own
	p.sink = soft.SeriesSink(l.qp.Cfg.RecvSink)
	p.present.Init(l.qp.Zone, p, &l.attention, recvAbsent)
}

// arrive takes a segment with its payload.
func (p *placer) arrive(h *wire.Header, payload []byte) error {
	if !carries(h.Opcode) {
		return p.control(h, payload)
	}
	if err := p.begin(h, len(payload)); err != nil {
		return err
	}
	if !p.store(payload) {
		return p.storeFault(h.Opcode)
	}
	return p.finishSegment(h, len(payload))
}

// carries reports whether the payload of a message is placed in memory.
func carries(op wire.Opcode) bool {
	return op == wire.OpWrite || op == wire.OpReadResponse || op.Send()
}

// begin checks a segment of n octets and sets dst to their target.
func (p *placer) begin(h *wire.Header, n int) error {
	switch h.Opcode {
	case wire.OpWrite:
		return p.beginWrite(h, n)
	case wire.OpReadResponse:
		return p.beginReadResponse(h, n)
	default:
		return p.beginSend(h, n)
	}
}

// finishSegment records that a segment has been placed.
func (p *placer) finishSegment(h *wire.Header, n int) error {
	switch h.Opcode {
	case wire.OpWrite:
		p.finishWrite(h, n)
		return nil
	case wire.OpReadResponse:
		p.finishReadResponse(h, n)
		return nil
	default:
		return p.finishSend(h, n)
	}
}

// store copies octets to dst, which begin has set. It returns false if the key is dead.
func (p *placer) store(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	p.beginTouch()
	for len(b) > 0 {
		mem := p.mem.Next(p.dst, len(b))
		if mem == nil {
			p.endTouch()
			return false
		}
		yield.Point()
		n := copy(mem, b)
		p.dst.Off += uint32(n)
		b = b[n:]
	}
	p.endTouch()
	return true
}

// beginTouch says that the receiver is about to look keys up, and to touch their memory.
func (p *placer) beginTouch() {
	p.touch.Add(1)
	yield.Point()
	if p.link.attention.Load()&recvAbsent != 0 {
		p.present.Enter()
	}
}

// endTouch says that it touches none any more. A goroutine that waits for the access looks
// until the count has changed.
func (p *placer) endTouch() { release.Uint64(&p.touch, p.touch.Load()+1) }

// emit hands out the completions of receives, and kicks the token if there is work for
// the sender.
func (p *placer) emit() {
	p.own.Check()
	if p.n > 0 {
		p.handOut()
	}
	if p.kept {
		p.kept = false
		p.sink.Flush()
	}
	if p.kickDue {
		p.kickDue = false
		p.link.kick(byReceiver)
	}
}

// handOut hands out the completions in wcs, and so those that the sink keeps before them.
func (p *placer) handOut() {
	n := p.n
	p.n, p.kept = 0, false
	release.Uint64(&p.rq.freed, p.rq.head) // before a poster can see the completions
	p.sink.Complete(p.wcs[:n])
}

// flush completes the queue pair's receives with StatusFlushed; with a shared receive
// queue, only the one that a message has begun to fill. The token's holder calls it once
// idleRecv is set.
func (p *placer) flush() {
	p.own.Acquire()
	defer p.own.Release()
	q := p.rq
	if q.srq != nil && p.open {
		p.open = false
		p.sink.Complete([]hw.WC{{ID: q.drawn.ID, QP: p.link.qp.Cfg.Number, Status: hw.StatusFlushed, Op: hw.OpRecv}})
	}
	for q.head != q.tail.Load() {
		wcs := make([]hw.WC, min(q.tail.Load()-q.head, batch))
		for n := range wcs {
			wcs[n] = hw.WC{ID: q.slots[q.head&q.mask].ID, Status: hw.StatusFlushed, Op: hw.OpRecv}
			q.head++
		}
		q.freed.Store(q.head)
		p.sink.Complete(wcs)
	}
}
