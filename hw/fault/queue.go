package fault

import (
	"time"

	"godat/hw"
)

// direction is one of a queue pair's queues.
type direction uint8

const (
	sending direction = iota
	receiving
)

// queue is one queue of a wrapped queue pair: the outstanding requests with the owner's
// ids, and the completions on their way to the owner. It is the inner queue pair's sink.
// qp.mu guards all fields but the immutable ones.
type queue struct {
	// Immutable.
	qp   *queuePair
	dir  direction
	sink hw.Sink          // the owner's; nil on a polled device
	cq   *completionQueue // where completions wait for a poll; nil with a sink

	entries   []entry // outstanding requests, the oldest first
	first     uint32  // number of the oldest
	completed uint64

	innerEnd bool // the inner queue has ended
	ended    bool // this queue has ended
	failed   bool // a completion failed

	out        []hw.WC // completions to hand on, in order
	spare      []hw.WC
	held       time.Time // nothing in out is handed on before; zero: no limit
	swapped    bool      // swap goes behind the next completion
	swap       hw.WC
	delivering bool   // a goroutine is in progress's loop
	handed     uint64 // completions handed on; of the goroutine in that loop
}

// entry is an outstanding request.
type entry struct {
	id       uint64
	local    bool // kept back from the inner queue pair
	poisoned bool
	delay    bool
}

// push appends a request and returns its number.
func (s *queue) push(e entry) uint32 {
	s.entries = append(s.entries, e)
	return s.first + uint32(len(s.entries)-1)
}

// pop removes the last n requests, which the inner queue pair refused.
func (s *queue) pop(n int) { s.entries = s.entries[:len(s.entries)-n] }

func (s *queue) reset() {
	s.entries, s.out = s.entries[:0], s.out[:0]
	s.first, s.innerEnd, s.ended, s.failed, s.swapped = 0, false, false, false, false
	s.held = time.Time{}
}

// Complete implements [hw.Sink].
func (s *queue) Complete(wcs []hw.WC) {
	for _, wc := range wcs {
		s.take(wc)
	}
	s.progress()
}

// take accounts for a completion of the inner queue, and emits it under the owner's id.
func (s *queue) take(wc hw.WC) {
	q := s.qp
	q.mu.Lock()
	defer q.mu.Unlock()
	switch number := uint32(wc.ID); wc.ID >> idKindShift {
	case idEnd:
		s.innerEnd = true
		return
	case idSRQ:
		wc.ID = wrapped(q.cfg.SRQ).restore(number)
		wc.QP = q.cfg.Number
	default:
		i := int(number - s.first)
		if i < 0 || i >= len(s.entries) {
			break // not a posted request's: the owner gets the bad id and can notice
		}
		e := s.entries[i]
		s.entries = append(s.entries[:0], s.entries[i+1:]...)
		s.first = number + 1
		wc.ID = e.id
		if e.poisoned && wc.Status != hw.StatusSuccess && wc.Status != hw.StatusFlushed {
			wc.Status = q.dev.fault.cfg.Status
		}
		if e.delay {
			s.held = time.Now().Add(q.dev.fault.cfg.Delay)
			q.dev.worker.at(s.held, task{qp: q, life: q.life})
		}
	}
	if wc.Status == hw.StatusSuccess {
		q.up = true // data may tell the owner so before Established does
	}
	if q.broken && !s.ended && q.dev.fault.hits(EndEarly, q.number, s.completed) {
		s.end()
	}
	s.emit(s.lossOf(wc))
}

// lossOf turns the first flushed send of a connection that lost its peer into one that
// failed with StatusTransport.
func (s *queue) lossOf(wc hw.WC) hw.WC {
	if wc.Status == hw.StatusFlushed && !s.failed && s.dir == sending && s.qp.lost && s.qp.severed {
		wc.Status = hw.StatusTransport
	}
	s.failed = s.failed || wc.Status != hw.StatusSuccess
	return wc
}

// emit appends a completion to out, unless a fault drops, doubles or swaps it.
func (s *queue) emit(wc hw.WC) {
	f, q := s.qp.dev.fault, s.qp
	s.completed++
	when := s.completed<<1 | uint64(s.dir)
	if s.swapped {
		s.swapped = false
		s.out = append(s.out, wc, s.swap)
		return
	}
	switch {
	case f.hits(DropCompletion, q.number, when):
	case f.hits(DoubleCompletion, q.number, when):
		s.out = append(s.out, wc, wc)
	case f.hits(SwapCompletions, q.number, when):
		s.swapped, s.swap = true, wc
	default:
		s.out = append(s.out, wc)
	}
}

// advance flushes the requests that were kept back from the inner queue pair, and ends
// the queue, as soon as the inner queue has ended.
func (s *queue) advance() {
	q := s.qp
	if !s.innerEnd {
		return
	}
	for _, e := range s.entries {
		if e.local {
			s.emit(s.lossOf(hw.WC{ID: e.id, Status: hw.StatusFlushed}))
		}
	}
	s.first += uint32(len(s.entries))
	s.entries = s.entries[:0]
	if q.broken && !s.ended && !q.telling {
		s.end()
	}
}

func (s *queue) isHeld() bool { return !s.held.IsZero() && time.Now().Before(s.held) }

func (s *queue) end() {
	s.ended = true
	id := s.qp.cfg.SendEnd
	if s.dir == receiving {
		id = s.qp.cfg.RecvEnd
	}
	s.emit(hw.WC{ID: id, Op: hw.OpEnd})
}

// progress hands on the completions that are due. One goroutine at a time does so, with
// no lock held during Complete; a goroutine that calls progress meanwhile leaves its
// completions to that one.
func (s *queue) progress() {
	q := s.qp
	q.mu.Lock()
	defer q.mu.Unlock()
	s.advance()
	for len(s.out) > 0 && !s.delivering && !s.isHeld() {
		if s.cq != nil {
			s.cq.add(s.out)
			s.out = s.out[:0]
			return
		}
		batch := s.out
		s.out, s.spare = s.spare[:0], nil
		s.delivering = true
		q.mu.Unlock()
		s.handOn(batch)
		q.mu.Lock()
		s.delivering, s.spare = false, batch
		s.advance()
	}
}
