package loop

import (
	"sync/atomic"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/token"
	"godat/internal/yield"
)

// The bits of the attention word, which say what the inline path must not overlook:
// while the word is 0, a post may execute from the caller's array; while it has no bits but
// those of absent, PostRecv need not look at the pipe.
const (
	stalled   = 1 << iota // the first send waits for a receive
	expired               // the send at expiredAt has waited long enough
	draining              // the source asked for Down(ReasonDrained)
	broken                // the connection is over; the pipe flushes
	ownFailed             // broken, because an operation failed here
	lost                  // broken, because the peer broke it or the other pipe failed
	orderly               // broken by the peer in order
	srcClosed             // the source's owner called Break
	dstClosed             // the target's owner called Break
	srcAbsent             // the pipe is not in the set of accessors of the source's zone
	dstAbsent             // nor of the target's, which is another one
	marked                // the source's owner asked for a mark; see Mark
)

// absent has the bits of a pipe that enters its zones' sets before it looks keys up; see
// [soft.Presence]. They are the business of the pipe's holder alone.
const absent = srcAbsent | dstAbsent

// The budgets: a poster moves up to pipe.budget bytes in one hold, with maxOps
// operations, and then hands the pipe over to a worker. A worker moves maxChunk bytes,
// with maxOps operations, before it steps, and hands out its completions when it has
// moved maxUnseen. From 1 MiB on Go's copy bypasses the caches: with chunks of 256 KiB a
// write of 1 MiB had 0.69 of a copy's speed, with chunks of 1 MiB it has 0.99. Deregister
// waits 15 µs for such a chunk, 45 µs on slow memory; a poster's budget is no longer, so
// that it waits no longer for a poster.
const (
	maxOps    = 64
	maxChunk  = 1 << 20
	maxUnseen = 64 << 10
)

// pipe carries the operations of one queue pair, the source, on another, the target.
// Only the holder of the pipe's token takes from both queues, moves bytes, completes,
// flushes and ends. The pipe's executor executes the operations; the pipe decides when, and whether
// the connection breaks.
type pipe struct {
	// Shared; it changes rarely. PostRecv reads it, so it lies on a cache line that the
	// holder does not write. What follows on the line is immutable after newPipe, or
	// guarded by the locks of the devices and of the workers.
	attention  atomic.Uint32
	budget     uint32 // bytes that a poster may move in one hold, at most maxChunk
	from, to   *connection
	reverse    *pipe
	present    *presence
	nextQueued *pipe
	neverWaits bool // NotReady is 0
	_          [15]byte

	// A plain request needs the next three cache lines: the token, and the executor's two
	// ends. Deregister waits for the accesses that the token counts (memory.go).
	token token.Counted

	// Owned by the token's holder.
	exec    executor
	ops     int32 // how many operations this hold may still do
	waiting bool  // the stalled bit is set
	ending  ending

	// Shared, off the data path.
	watched   watched
	expiredAt atomic.Uint64 // position of the send that waited long enough
	stalledAt atomic.Uint64 // position of the send that waits
	causes    causes        // the holder writes it before it sets ownFailed
}

// newPipe makes a pipe, whose token the caller holds.
func newPipe(from, to *connection) *pipe {
	src, dst := from.qp, to.qp
	p := &pipe{from: from, to: to, neverWaits: src.Cfg.NotReady == 0, budget: src.dev.handover}
	p.exec = executor{
		pipe: p,
		src: source{
			end:   end{View: src.View(), sink: soft.SeriesSink(src.Cfg.SendSink)},
			queue: from.sq,
		},
		dst: target{
			end:    end{View: dst.View(), sink: soft.SeriesSink(dst.Cfg.RecvSink)},
			queue:  to.rq,
			pipe:   p,
			freeAt: 1,
		},
	}
	if dst.srq != nil {
		p.exec.dst.srq, p.exec.dst.number = dst.srq, dst.Cfg.Number
	}
	switch {
	case src.Cfg.ReadsOut == 0:
		p.exec.canRead = hw.StatusLocalEP
	case dst.Cfg.ReadsIn == 0:
		p.exec.canRead = hw.StatusRemoteResponder
	}
	p.initPresence()
	_, _ = p.token.TryTake() // no other goroutine knows it yet
	return p
}

// kick makes sure that a holder looks at the pipe after this call: the present one, or
// the caller.
//
// Nobody waits for a pipe: a goroutine that finds it held leaves its mark and goes on. So two
// queue pairs that are connected with each other, and are broken or reset at the same time,
// break each other's pipes and wait for nothing.
func (p *pipe) kick() {
	if p.token.TakeOrKick() {
		p.goOn()
	}
}

// goOn runs the pipe with a poster's budget.
func (p *pipe) goOn() {
	p.grant()
	p.run()
}

// grant gives the holder a poster's budget.
func (p *pipe) grant() { p.ops, p.exec.bytes = maxOps, int64(p.budget) }

// inline executes requests from the caller's array up to the first that it can't
// execute now, and returns how many are done.
func (p *pipe) inline(wrs []hw.SendWR) int {
	p.token.Check()
	x := &p.exec
	for n := range wrs {
		if n%maxOps == maxOps-1 {
			p.token.Step()
		}
		wr := &wrs[n]
		if wr.Op == hw.OpSend && x.fastSend(wr) || wr.Op != hw.OpSend && x.fast(wr) {
			continue
		}
		if p.from.qp.CheckSend(wr, sendable) != nil {
			return n
		}
		if v := x.execute(wr); v == failure {
			p.fail()
			p.token.Step() // so that PostSend's ReleaseIf fails, and it runs the pipe
			return n + 1
		} else if v != done {
			return n
		}
	}
	return len(wrs)
}

// rest enqueues the requests that inline has not done, and runs the pipe.
func (p *pipe) rest(n int, wrs []hw.SendWR) (int, error) {
	k, err := p.from.qp.enqueue(wrs[n:])
	p.run()
	return n + k, err
}

// run drains the pipe and releases it, or hands it over to a worker.
func (p *pipe) run() {
	for { // no Check here: drain has one
		if p.drain() {
			p.handOver()
			return
		}
		if p.token.Release() {
			return
		}
	}
}

// drain executes queued requests until none is left that can be done now. It returns
// true if it stopped earlier because its budget was used up.
func (p *pipe) drain() (more bool) {
	p.token.Check()
	x := &p.exec
	for {
		a := p.attention.Load()
		if a&broken != 0 {
			p.flush()
			return false
		}
		if a&marked != 0 && x.src.head >= p.from.mark.at {
			p.reportMark()
		}
		if x.src.empty() {
			x.emit()
			p.drained()
			return false
		}
		if a&absent != 0 {
			p.enter()
		}
		if p.ops == 0 {
			x.emit()
			return true
		}
		p.ops--
		wr := x.src.first()
		switch x.execute(wr) {
		case done:
			x.src.head++
			p.proceed()
		case noReceive:
			if p.stall(wr) {
				x.emit()
				return false
			}
		case tooLong:
			x.emit()
			return true
		case failure:
			x.src.head++
			p.fail()
		case cut:
		}
	}
}

// proceed records that the first request is done, so that no send waits now. A worker
// that has moved maxUnseen bytes hands out the completions.
func (p *pipe) proceed() {
	if p.waiting {
		p.waiting = false
		p.attention.And(^uint32(stalled | expired))
	}
	if x := &p.exec; x.byWorker && x.bytes < maxChunk-maxUnseen {
		x.emit()
		p.token.Step()
		x.bytes = maxChunk
	}
}

// drained acts on the attention word when no send is left. It reports the end of a
// Drain, once, unless sends have been posted since the queue was found empty: the kick
// of their poster makes the holder come again. It clears an expired bit that came too
// late. It also leaves the line of the shared queue and clears invalidated: a send that
// inline began, and for which the send queue then had no room, may have left both behind.
func (p *pipe) drained() {
	p.exec.dst.leaveLine()
	p.exec.invalidated = false
	yield.Point()
	a := p.attention.Load()
	if a&expired != 0 {
		p.attention.And(^uint32(expired))
	}
	if a&draining != 0 && p.exec.src.empty() {
		p.reportDown(hw.ReasonDrained, nil)
	}
}

// stall leaves the first send waiting for a receive. It returns false if the caller is
// to go on: the send has failed, or a receive has come.
func (p *pipe) stall(wr *hw.SendWR) bool {
	x := &p.exec
	at := x.src.head
	if p.neverWaits || p.attention.Load()&expired != 0 && p.expiredAt.Load() == at {
		x.fail(wr, hw.StatusReceiverNotReady)
		x.src.head++
		p.fail()
		return false
	}
	if !p.waiting {
		p.waiting = true
		p.stalledAt.Store(at)
		yield.Point()
		p.attention.Or(stalled)
		yield.Point()
		// Before the bit was set the poster of a receive did not kick, so look again. From
		// now on it sees the bit and kicks. A poster to a shared queue finds the target in
		// the queue's line instead.
		if x.dst.ready() {
			return false
		}
	}
	p.from.qp.dev.watch.add(p)
	return true
}
