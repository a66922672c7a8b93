package ep

import (
	"runtime"

	"godat/internal/yield"
)

// The endpoint's word is the token, its mark and both directions' tails at once,
// so that an uncontended post takes its ticket and the token in one step:
//
//	held:1 | kick:1 | guard:1 | request tail:30 | guard:1 | receive tail:30
//
// A guard takes a tail's carry when it goes round, which is counted and undone in the
// same step.
//
// Nobody holds the token of an idle endpoint. The protocol:
//
//	post  take a ticket, and the token too if it is free.
//	      With the token: fill the slot, run. Without: fill the slot, publish it, poke.
//	poke  free → take it and run; held → set the mark, unless it is set.
//	run   drain what is published. Then let go by swapping the word that was read:
//	      that fails when a mark (or a ticket) came since; a mark is cleared, and
//	      the drain is done again.
//
// Why nothing is lost: a poster publishes before it reads the word, so it either
// becomes the holder, or its mark makes the release fail and the holder drains
// after clearing it. Why nothing is overtaken: tickets of one poster grow, and the
// drain stops at the first slot that is not published; whoever has that ticket
// pokes after publishing.
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
// endpoint's goroutine: a poster does not work for others without end.
const budget = 64

// takeTickets gets consecutive tickets of q, n of them or as many as there is room for,
// and the token if it was free. word is what it left behind.
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

// goRound is the swap of a word in which the tail of q has gone round.
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

// letGo ends the short way of a post: it releases the token if the word is still
// what take left, so that nobody has come since, and otherwise runs the step.
func (b *mailbox) letGo(word uint64) {
	yield.Point()
	b.own.Release()
	if !b.word.CompareAndSwap(word, word&^held) {
		b.own.Acquire()
		b.run(false)
	}
}

// submit hands n filled slots from ticket on to the endpoint's step.
func (b *mailbox) submit(q *queue, ticket, n uint32, mine bool) {
	if mine {
		b.own.Acquire()
		if q.ready == ticket {
			q.ready = (ticket + n) & ticketMask
		} else {
			q.publish(ticket, n) // somebody has an earlier ticket and is still filling
		}
		b.run(false)
	} else {
		yield.Point()
		q.publish(ticket, n)
		yield.Point()
		b.poke()
	}
	if q.prompt {
		q.awaitHanded((ticket + n) & ticketMask)
	}
}

// awaitHanded waits until the provider has all before that ticket. Whoever holds the
// token hands it on; that takes as long as the calls to the provider take. A program
// whose PostRecv has returned may tell the peer to send: where a send does not wait
// for its receive, one that is still on its way to the device breaks the connection.
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

// poke makes somebody run the step after this call began: the caller, or the
// holder once more.
func (b *mailbox) poke() {
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

// run is the holder's loop. It ends by letting go of the token, or by leaving it
// to the endpoint's goroutine, which runs it patiently: its budget is renewed.
func (b *mailbox) run(patient bool) {
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
		case patient:
			runtime.Gosched()
		case b.handOver():
			return
		}
		left = budget
	}
}

// release lets go of the token. It fails when somebody left a mark.
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

// handOver leaves the token, still held, to the endpoint's goroutine, if there is
// one: it ends with Close. An endpoint without one has nothing to do but queue
// receives and flush.
func (b *mailbox) handOver() bool {
	b.own.Check()
	if !b.e.worker.serving || b.State() == closed {
		return false
	}
	b.own.Release()
	b.inherited.Store(true)
	b.e.worker.wake()
	return true
}

// inherit runs the step if a poster left it.
func (b *mailbox) inherit() {
	if b.inherited.CompareAndSwap(true, false) {
		b.own.Acquire()
		b.run(true)
	}
}
