package loop

import (
	"sync/atomic"
	"time"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/yield"
)

// A pipe carries what one queue pair, the source, does to another, the target.
// Its word says who may:
//
//	0                free
//	held             somebody executes
//	held|kicked      and somebody else left something to be looked at
//	held|queued      it waits for a worker; nobody executes
//
// and counts in the upper bits: by one when it is let go, and whenever a long
// hold is between two things. Only free → held takes the pipe, and only the
// holder leaves held. Who leaves something publishes it first and then looks at
// the word: so it becomes the holder itself, or its kick makes the release fail,
// or the holder clears an earlier kick and looks after that.
const (
	held   = 1 << 0
	kicked = 1 << 1
	queued = 1 << 2
	count  = 1 << 3
	flags  = count - 1
)

// attention is what the straight path must not overlook: with none of it a post
// may execute from the caller's array, and PostRecv need not look at the pipe.
const (
	stalled   = 1 << iota // the first send waits for a receive
	expired               // and has waited long enough
	draining              // the source asked for Down(ReasonDrained)
	broken                // flush
	failed                // broken, because an operation failed here
	lost                  // broken, because the peer broke it or the other pipe failed
	orderly               // broken by the peer in order
	srcClosed             // the source's owner called Break
	dstClosed             // the target's owner did
)

// What one hold may do before it hands over to a worker, and what a worker may
// do before it lets others see that it moved on. From 1 MiB on Go's copy goes
// around the caches: with chunks of 256 KiB a write of 1 MiB had 0.69 of its
// speed, with these 0.99. Deregister waits for 15 µs of it, 45 on slow memory.
const (
	maxOps     = 64
	maxInline  = 64 << 10
	maxChunk   = 1 << 20
	maxScratch = 64
)

// end is one side of a pipe as the data path sees it.
type end struct {
	soft.View
	sink hw.Sink
}

type pipe struct {
	// Immutable after newPipe, but for attention, which changes rarely: what
	// PostRecv reads is not on a line that the holder writes.
	attention  atomic.Uint32
	neverWaits bool      // NotReady is 0
	canRead    hw.Status // what reads and atomics fail with, or success
	segments   int       // the most a send may have
	src, dst   end
	sq         *soft.SendQueue
	rq         *recvQueue
	sends      []hw.WC // the holder's: completions not handed out yet
	recvs      []hw.WC
	from, to   *life
	reverse    *pipe
	places     [2]int       // in each device's list; their locks guard it
	srq        *sharedQueue // where receives come from, instead of rq
	number     uint32       // of the queue pair that takes from srq

	_ [soft.CacheLine]byte

	// word is shared. The rest of this part is the holder's.
	word               atomic.Uint64
	sendHead, recvHead uint64
	recvTail           uint64 // as last seen
	recvFree           uint64 // where slots are given back next
	sendFreed          uint64 // as last published
	nSends, nRecvs     int    // in use of sends and recvs
	ops                int    // what this hold may still do
	bytes              int64
	patient            bool // a worker holds it
	waiting            bool // the stalled bit is set
	saidDown, told     bool // Down was reported; the reverse pipe knows of a failure
	srcEnded, dstEnded bool // OpEnd was reported
	old                [wordLen]byte
	drawn              hw.RecvWR // taken from srq
	hasDrawn           bool
	lined              bool   // it may be in srq's line, or called
	killed             bool   // the first send has invalidated its key already
	scratch            []busy // of settle

	_ [soft.CacheLine]byte

	// Shared, off the data path.
	listed    atomic.Bool   // on the watch's list
	stalledAt atomic.Uint64 // position of the send that waits
	expiredAt atomic.Uint64 // position of the send that waited long enough
	failure   causes        // the holder's, and everybody's once attention says failed

	// The watch's.
	nextListed *pipe
	seenAt     uint64
	seenSince  time.Duration

	// The workers'.
	nextQueued *pipe

	// srq's lock guards these.
	ahead, behind *pipe // in the line
	place         place
}

// kick makes sure that somebody looks at the pipe after this.
func (p *pipe) kick() {
	for {
		w := p.word.Load()
		yield.Point()
		switch {
		case w&held == 0:
			if p.word.CompareAndSwap(w, w|held) {
				p.grant()
				p.run()
				return
			}
		case w&kicked != 0:
			return
		case p.word.CompareAndSwap(w, w|kicked):
			return
		}
	}
}

// grant gives the holder a poster's budget.
func (p *pipe) grant() { p.ops, p.bytes = maxOps, maxInline }

// run does what there is to do and lets go. The pipe is held.
func (p *pipe) run() {
	for {
		if p.drain() {
			p.handOver()
			return
		}
		if p.release() {
			return
		}
	}
}

// release lets go, unless there is a kick, which it clears.
func (p *pipe) release() bool {
	for {
		w := p.word.Load()
		yield.Point()
		if w&kicked != 0 {
			p.word.And(^uint64(kicked))
			return false
		}
		if p.word.CompareAndSwap(w, w-held+count) {
			return true
		}
	}
}

// step tells who waits for what the holder was doing that it is done.
func (p *pipe) step() {
	p.word.Add(count)
	yield.Point()
}

// movedOn reports whether what was in progress when the word was w has ended.
func (p *pipe) movedOn(w uint64) bool {
	now := p.word.Load()
	return now&^flags != w&^flags || now&(held|queued) != held
}

// drain executes what is queued until nothing is left that can be done, and
// reports whether it stopped for its budget instead.
func (p *pipe) drain() (more bool) {
	for {
		if p.attention.Load()&broken != 0 {
			p.flush()
			return false
		}
		if p.sendHead == p.sq.Tail.Load() {
			p.emit()
			p.drained()
			return false
		}
		if p.ops == 0 {
			p.emit()
			return true
		}
		p.ops--
		wr := &p.sq.Slots[p.sendHead&p.sq.Mask]
		switch p.execute(wr) {
		case done:
			p.sendHead++
			p.proceed()
		case noReceive:
			if p.stall(wr) {
				p.emit()
				return false
			}
		case tooLong:
			p.emit()
			return true
		case failure:
			p.sendHead++
		case cut:
		}
	}
}

// proceed notes that a request is done: none waits now, and a worker hands out
// what it has after each that was long.
func (p *pipe) proceed() {
	if p.waiting {
		p.waiting = false
		p.attention.And(^uint32(stalled | expired))
	}
	if p.patient && p.bytes < maxChunk-maxInline {
		p.emit()
		p.step()
		p.bytes = maxChunk
	}
}

// drained settles what the attention word asks for when no send is left: the end
// of an orderly drain is reported, once, and an expiry came too late. A send that
// was not even queued leaves nothing behind.
func (p *pipe) drained() {
	p.leaveLine()
	p.killed = false
	a := p.attention.Load()
	if a&expired != 0 {
		p.attention.And(^uint32(expired))
	}
	if a&draining != 0 && !p.saidDown {
		p.saidDown = true
		p.from.facts.Down(hw.ReasonDrained, nil)
	}
}

// stall leaves the first send waiting for a receive, and reports false if there
// is something to do after all.
func (p *pipe) stall(wr *hw.SendWR) bool {
	at := p.sendHead
	if p.neverWaits || p.attention.Load()&expired != 0 && p.expiredAt.Load() == at {
		p.fail(wr, hw.StatusReceiverNotReady)
		p.sendHead++
		return false
	}
	if !p.waiting {
		p.waiting = true
		p.stalledAt.Store(at)
		yield.Point()
		p.attention.Or(stalled)
		yield.Point()
		// A receive posted before the bit was set kicked nobody: look again.
		// After that whoever posts one sees the bit, and kicks. Whoever posts to
		// a shared queue finds the pipe in its line.
		if p.ready() {
			return false
		}
	}
	p.from.qp.dev.watch.add(p)
	return true
}

// full reports whether an operation might find no room for its completions.
func (p *pipe) full() bool { return p.nSends == len(p.sends) || p.nRecvs == len(p.recvs) }

// emit hands out the completions gathered. Slots are given back first: the owner
// may post as soon as it sees them.
func (p *pipe) emit() {
	if p.sendHead != p.sendFreed || p.recvHead >= p.recvFree {
		p.giveBack()
	}
	if n := p.nRecvs; n > 0 {
		p.nRecvs = 0
		p.dst.sink.Complete(p.recvs[:n])
	}
	if n := p.nSends; n > 0 {
		p.nSends = 0
		p.src.sink.Complete(p.sends[:n])
	}
}

// giveBack gives back the slots of both queues that are done with.
func (p *pipe) giveBack() {
	p.sendFreed = p.sendHead
	p.sq.Freed.Store(p.sendHead)
	p.recvFree = p.rq.free(p.recvHead)
}
