package loop

import (
	"sync"
	"sync/atomic"

	"godat/hw"
	"godat/hw/internal/soft"
)

// phase is where the connection of a life stands.
type phase uint8

const (
	unconnected phase = iota
	connecting        // asked, or answering
	refusing          // Refused is being reported
	refused
	connected // the pipes have it from here on
	ended     // without ever having been connected
)

// life is what a queue pair is from NewQP or Reset to the OpEnd of both queues.
// Its queues are its own: the pipes of a life that is over may still flush the
// other end.
type life struct {
	// Immutable.
	qp    *queuePair
	facts hw.Facts
	sq    *soft.SendQueue
	rq    *recvQueue
	local Addr

	// mu settles who ends an attempt to connect: the answer, or Break. No
	// callback runs under it.
	mu     sync.Mutex
	phase  phase
	broken bool // Break was called

	ends atomic.Int32 // queues that have ended
}

func newLife(q *queuePair) *life {
	l := &life{
		qp:    q,
		facts: q.cfg.Facts,
		sq:    new(soft.SendQueue),
		rq:    newRecvQueue(q.recvDepth()),
	}
	l.sq.Init(q.cfg.SendDepth)
	return l
}

// begin starts an attempt to connect; there is one in a life.
func (l *life) begin(op string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != unconnected || l.broken {
		return hw.Errorf(op, hw.InvalidState, l.state(), "the queue pair is not new or reset")
	}
	l.phase = connecting
	return nil
}

// state is the endpoint state that comes nearest. The lock is held.
func (l *life) state() hw.Subtype {
	switch {
	case l.broken, l.phase == refusing, l.phase == refused:
		return hw.StateEPDisconnected
	case l.phase == connecting:
		return hw.StateEPActiveConnectionPending
	case l.phase == connected:
		return hw.StateEPConnected
	}
	return hw.StateEPUnconnected
}

// refuse ends an attempt that nothing has ended yet. A Break that comes while
// the fact is being reported leaves the rest to be done here: after the queues
// have ended nothing of this life may be reported.
func (l *life) refuse(why hw.Reason, private []byte, cause *hw.Cause) {
	l.mu.Lock()
	if l.phase != connecting {
		l.mu.Unlock()
		return
	}
	l.phase = refusing
	l.mu.Unlock()
	l.facts.Refused(why, private, cause)
	l.mu.Lock()
	l.phase = refused
	finish := l.broken
	if finish {
		l.phase = ended
	}
	l.mu.Unlock()
	if finish {
		l.finish()
	}
}

// breakUp notes Break. It reports whether there are pipes to break.
func (l *life) breakUp() (piped bool) {
	l.mu.Lock()
	again := l.broken
	l.broken = true
	was := l.phase
	if was != refusing && was != connected {
		l.phase = ended
	}
	l.mu.Unlock()
	switch {
	case again:
		return false
	case was == connected:
		return true
	case was != refusing:
		l.finish()
	}
	return false
}

// finish flushes and ends the queues of a life that had no pipes. Nobody else
// touches them: an answer that comes now finds the phase ended.
func (l *life) finish() {
	cfg := &l.qp.cfg
	wcs := make([]hw.WC, 0, maxScratch)
	for head, tail := uint64(0), l.rq.tail.Load(); head != tail; head++ {
		wr := &l.rq.slots[head&l.rq.mask]
		wcs = append(wcs, hw.WC{ID: wr.ID, Status: hw.StatusFlushed, Op: hw.OpRecv})
		if len(wcs) == cap(wcs) || head+1 == tail {
			cfg.RecvSink.Complete(wcs)
			wcs = wcs[:0]
		}
	}
	l.end(cfg.RecvSink, wcs[:1], cfg.RecvEnd)
	l.end(cfg.SendSink, wcs[:1], cfg.SendEnd)
}

// end reports a queue's last completion. The owner may reset or close the queue
// pair as soon as it has both.
func (l *life) end(sink hw.Sink, scratch []hw.WC, id uint64) {
	l.ends.Add(1)
	scratch[0] = hw.WC{ID: id, Op: hw.OpEnd}
	sink.Complete(scratch[:1])
}

// over reports whether both queues have ended.
func (l *life) over() bool { return l.ends.Load() == 2 }

// pristine reports whether the life has not begun to connect.
func (l *life) pristine() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase == unconnected
}
