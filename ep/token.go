package ep

import (
	"runtime"

	"godat/internal/token"
	"godat/internal/yield"
)

// The user's bits of the endpoint's token (package token) are the tails of both
// directions. So an uncontended post takes its ticket and the token in one swap:
//
//	guard:1 | request tail:24 | guard:1 | receive tail:24
//
// A guard catches the carry of the tail below it when the tail wraps. The poster
// that wraps a tail clears the guard in the same swap, and counts the wrap. In the word of
// a sealed endpoint (seal) both guards are set, and no poster takes a ticket.
//
// A poster takes a ticket, and the token too if it is free. With the token it fills the
// slot and runs the step. Without, it fills the slot, publishes it, and kicks. So the
// published slot is the work that it leaves to the holder.
//
// Why nothing is overtaken: tickets of one poster grow, and the drain stops at the first
// slot that is not published; the poster with that ticket kicks the step after it has
// published the slot.
//
// While the token is held no user code runs and nothing blocks.
const (
	requestShift = 25
	recvShift    = 0

	guards uint64 = 1<<(requestShift+24) | 1<<(recvShift+24)
)

// budget is the most posts a holder executes before it leaves the rest to the
// adapter's workers, so that no poster works for others without end.
const budget = 64

// claimTicket claims the next ticket of q, if there is room, and the token if it is free.
// mine reports whether it took the token.
func (b *mailbox) claimTicket(q *queue) (ticket uint32, ok, mine bool) {
	yield.Point()
	shift := q.tailShift & 63
	for {
		w := b.token.Load()
		ticket = uint32(w>>shift) & ticketMask
		depth := q.depth.Load()
		if (ticket-q.retired.Load())&ticketMask >= depth {
			if b.changes(q, w, depth) {
				continue
			}
			return 0, false, false
		}
		word := (w + 1<<shift) | token.Held
		if word&guards != 0 {
			if sealed(w) {
				return 0, false, false
			}
			if word &^= guards; b.goRound(q, w, word) {
				return ticket, true, w&token.Held == 0
			}
		} else if b.token.Swap(w, word) {
			return ticket, true, w&token.Held == 0
		}
	}
}

// seal lets no post take a ticket from now on. It changes the word, so a post that has
// loaded the word before, and still found a place, fails in its swap and looks again.
func (b *mailbox) seal() {
	b.token.Check()
	for w := b.token.Load(); !sealed(w) && !b.token.Swap(w, w|guards); {
		w = b.token.Load()
	}
}

// unseal undoes seal.
func (b *mailbox) unseal() {
	b.token.Check()
	for w := b.token.Load(); sealed(w) && !b.token.Swap(w, w&^guards); {
		w = b.token.Load()
	}
}

// sealed reports whether a word is that of a sealed endpoint. A tail that wraps sets one
// guard, and only in a word that no poster stores.
func sealed(word uint64) bool { return word&guards == guards }

// whyNoTicket is why a post got no ticket.
func (b *mailbox) whyNoTicket(call string) error {
	if sealed(b.token.Load()) {
		return stateError(call, b.State())
	}
	return wrap(call, errNoSlot)
}

// goRound swaps in a word in which the tail of q has wrapped.
//
//go:noinline
func (b *mailbox) goRound(q *queue, from, to uint64) bool {
	b.cold.mu.Lock()
	defer b.cold.mu.Unlock()
	if !b.token.Swap(from, to) {
		return false
	}
	q.tally().rounds++
	return true
}

// letGo ends the short way of a post. If the word is still the one with which the post
// took its ticket and the token, no post or kick has come since, and letGo releases the
// token. Otherwise it returns false, and the caller runs the step.
func (b *mailbox) letGo(word uint64) bool {
	yield.Point()
	return b.token.ReleaseIf(word)
}

// submit publishes n filled slots from ticket on, and runs the step or kicks its
// holder.
func (b *mailbox) submit(q *queue, ticket, n uint32, mine bool) {
	if mine {
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

func (q *queue) publish(ticket, n uint32) {
	for ; n > 0; n-- {
		q.slot(ticket).seq.Store(ticket + 1)
		ticket = (ticket + 1) & ticketMask
	}
}

// kickStep makes the step run once more after this call began: the caller runs it, or
// the holder does.
func (b *mailbox) kickStep() {
	if b.token.TakeOrKick() {
		b.run(false)
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
			if b.token.Release() {
				return
			}
			continue
		}
		switch {
		case byWorker && b.cold.workers.Idle():
			runtime.Gosched()
		case b.handOver():
			return
		}
		left = budget
	}
}

// handOver leaves the token, still held, to a worker of the adapter: a poster that has
// executed a budget's worth of posts leaves the rest, so that no poster works for others
// without end. An endpoint has nothing for a worker most of the time. It fails if the endpoint is
// closed, because the workers end when all endpoints are.
func (b *mailbox) handOver() bool {
	b.token.Check()
	if b.State() == closed {
		return false
	}
	b.token.Leave()
	b.cold.workers.Add(b)
	return true
}

// serveLeft is a worker's turn with a mailbox that was left to it.
func serveLeft(b *mailbox) {
	b.token.Resume()
	b.run(true)
}
