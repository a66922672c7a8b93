package ep

import (
	"runtime"

	"godat/internal/yield"
)

// The endpoint's word is the token, its mark (kick) and the tails of both
// directions, so that an uncontended post takes its ticket and the token in one
// swap:
//
//	held:1 | kick:1 | guard:1 | request tail:30 | guard:1 | receive tail:30
//
// A guard catches the carry of the tail below it when the tail wraps. The poster
// that wraps a tail clears the guard in the same swap, and counts the wrap.
//
// Nobody holds the token of an idle endpoint. The protocol:
//
//	post  take a ticket, and the token too if it is free.
//	      With the token: fill the slot, run. Without: fill the slot, publish it, kick.
//	kick  free → take it and run; held → set the mark, unless it is set.
//	run   drain what is published. Then release the token by swapping the word that
//	      was read: that fails if a mark (or a ticket) came since. If a mark came,
//	      clear it and drain again.
//
// Why nothing is lost: a poster publishes before it reads the word, so either it
// becomes the holder, or its mark makes the release fail and the holder drains
// again after it has cleared the mark. Why nothing is overtaken: tickets of one
// poster grow, and the drain stops at the first slot that is not published; the
// poster with that ticket kicks the step after it has published the slot.
//
// While the token is held no user code runs and nothing blocks.
const (
	held uint64 = 1 << 63
	kick uint64 = 1 << 62

	guards uint64 = 1<<61 | 1<<30

	requestShift = 31
	recvShift    = 0
)

// budget is the most posts a holder executes before it leaves the rest to the
// adapter's workers, so that no poster works for others without end.
const budget = 64

// takeTickets takes n consecutive tickets of q, or as many as there is room for,
// and the token if it is free. word is the word that it stored; mine reports
// whether it took the token.
func (b *mailbox) takeTickets(q *queue, n uint32) (ticket, got uint32, word uint64, mine bool) {
	yield.Point()
	shift := q.tailShift & 63
	for {
		w := b.word.Load()
		ticket = uint32(w>>shift) & ticketMask
		out, depth := (ticket-q.retired.Load())&ticketMask, q.depth.Load()
		if out >= depth {
			if b.changes(q, w, depth) {
				continue
			}
			return 0, 0, 0, false
		}
		got = min(n, depth-out)
		word = w + uint64(got)<<shift | held
		if word&guards != 0 {
			if word &^= guards; b.goRound(q, w, word) {
				return ticket, got, word, w&held == 0
			}
		} else if b.word.CompareAndSwap(w, word) {
			return ticket, got, word, w&held == 0
		}
	}
}

// goRound swaps in a word in which the tail of q has wrapped.
//
//go:noinline
func (b *mailbox) goRound(q *queue, from, to uint64) bool {
	b.e.counted.mu.Lock()
	defer b.e.counted.mu.Unlock()
	if !b.word.CompareAndSwap(from, to) {
		return false
	}
	q.rounds++
	return true
}

// letGo ends the short way of a post. If the word is still what takeTickets stored,
// no post or kick has come since, and letGo releases the token; otherwise it runs
// the step.
func (b *mailbox) letGo(word uint64) {
	yield.Point()
	b.own.Release()
	if !b.word.CompareAndSwap(word, word&^held) {
		b.own.Acquire()
		b.run(false)
	}
}

// submit publishes n filled slots from ticket on, and runs the step or kicks its
// holder.
func (b *mailbox) submit(q *queue, ticket, n uint32, mine bool) {
	if mine {
		b.own.Acquire()
		if q.ready == ticket {
			q.ready = (ticket + n) & ticketMask
		} else {
			q.publish(ticket, n) // another poster has an earlier ticket and is still filling its slot
		}
		b.run(false)
	} else {
		yield.Point()
		q.publish(ticket, n)
		yield.Point()
		b.kickStep()
	}
	if q.prompt {
		q.awaitHanded((ticket + n) & ticketMask)
	}
}

// awaitHanded waits until the provider has all posts before that ticket. The
// token's holder hands them over; the wait takes as long as the holder's calls to
// the provider. A program whose PostRecv has returned may tell the peer to send:
// where a send does not wait for its receive, a receive that is still on its way to
// the device breaks the connection.
func (q *queue) awaitHanded(ticket uint32) {
	for before(q.handed.Load(), ticket) {
		if s := q.e.box.State(); s == Disconnected || s == closed {
			return // it is flushed
		}
		runtime.Gosched()
	}
}

func (q *queue) publish(ticket, n uint32) {
	for ; n > 0; n-- {
		q.slot(ticket).seq.Store(ticket + 1)
		ticket = (ticket + 1) & ticketMask
	}
}

// kickStep makes the step run once more after this call began: the caller runs it, or
// the holder does.
func (b *mailbox) kickStep() {
	for {
		w := b.word.Load()
		switch {
		case w&held == 0:
			if b.word.CompareAndSwap(w, w|held) {
				b.own.Acquire()
				b.run(false)
				return
			}
		case w&kick != 0:
			return
		default:
			if b.word.CompareAndSwap(w, w|kick) {
				return
			}
		}
	}
}

// run is the holder's loop. It ends by releasing the token, or by leaving it to the
// adapter's workers. A worker's budget is renewed as long as no other endpoint waits
// for a worker.
func (b *mailbox) run(byWorker bool) {
	left := budget
	for {
		left = b.step(left)
		if left > 0 {
			yield.Point()
			if b.release() {
				return
			}
			continue
		}
		switch {
		case byWorker && b.e.adapter.workers.idle():
			runtime.Gosched()
		case b.handOver():
			return
		}
		left = budget
	}
}

// release releases the token. It fails, and clears the mark, if another goroutine
// set the mark.
func (b *mailbox) release() bool {
	b.own.Release()
	for {
		w := b.word.Load()
		if w&kick == 0 {
			if b.word.CompareAndSwap(w, w&^held) {
				return true
			}
			continue
		}
		if b.word.CompareAndSwap(w, w&^kick) {
			b.own.Acquire()
			return false
		}
	}
}

// handOver leaves the token, still held, to a worker. It fails if the endpoint is
// closed, because the workers end when all endpoints are.
func (b *mailbox) handOver() bool {
	b.own.Check()
	if b.State() == closed {
		return false
	}
	b.own.Release()
	b.e.adapter.workers.add(b)
	return true
}
