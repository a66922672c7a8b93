package line

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
// A holder waits for no other holder, and for no consumer. It runs functions of the program's only where these say so:
// evd.Config.Func, which must not block, and the hooks of a Conn, for which it waits some seconds at most. Grow spins
// until posters have published what they have tickets for.
const (
	requestShift = 25
	recvShift    = 0

	guards uint64 = 1<<(requestShift+24) | 1<<(recvShift+24)
)

// budget is the most posts a holder executes before it leaves the rest to the
// adapter's workers, so that no poster works for others without end.
const budget = 64

// claimTicket is stage 3: it claims the next ticket of q, if there is room, and the token if it is free.
// mine reports whether it took the token.
func (b *Mailbox) claimTicket(q *Queue) (ticket uint32, ok, mine bool) {
	yield.Point()
	shift := q.tailShift & 63
	for {
		w := b.Token.Load()
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
		} else if b.Token.Swap(w, word) {
			return ticket, true, w&token.Held == 0
		}
	}
}

// changes reports whether a poster that found no ticket should look again: Modify is replacing the
// slots, there were none yet, or the word or the depth has changed.
func (b *Mailbox) changes(q *Queue, word uint64, depth uint32) bool {
	if b.changing.Load() {
		runtime.Gosched()
		return true
	}
	return depth == 0 && q.open() || q.depth.Load() != depth || b.Token.Load() != word
}

// seal lets no post take a ticket from now on. It changes the word, so a post that has
// loaded the word before, and still found a place, fails in its swap and looks again.
func (b *Mailbox) seal() {
	b.Token.Check()
	for w := b.Token.Load(); !sealed(w) && !b.Token.Swap(w, w|guards); {
		w = b.Token.Load()
	}
}

// unseal undoes seal.
func (b *Mailbox) unseal() {
	b.Token.Check()
	for w := b.Token.Load(); sealed(w) && !b.Token.Swap(w, w&^guards); {
		w = b.Token.Load()
	}
}

// sealed reports whether a word is that of a sealed endpoint. A tail that wraps carries into one guard of the sum, which
// goRound clears before the swap.
func sealed(word uint64) bool { return word&guards == guards }

// whyNoTicket is why a post got no ticket.
func (b *Mailbox) whyNoTicket(call string) error {
	if sealed(b.Token.Load()) {
		return b.cold.owner.NotIn(call, b.State())
	}
	return Wrap(call, errNoSlot)
}

// goRound swaps in a word in which the tail of q has wrapped.
//
//go:noinline
func (b *Mailbox) goRound(q *Queue, from, to uint64) bool {
	b.cold.Mu.Lock()
	defer b.cold.Mu.Unlock()
	if !b.Token.Swap(from, to) {
		return false
	}
	q.tally().rounds++
	return true
}

// letGo ends the short way of a post. If the word is still the one with which the post
// took its ticket and the token, no post or kick has come since, and letGo releases the
// token. Otherwise it returns false, and the caller runs the step.
func (b *Mailbox) letGo(word uint64) bool {
	yield.Point()
	return b.Token.ReleaseIf(word)
}

// submit publishes n filled slots from ticket on, and runs the step or kicks its
// holder.
func (b *Mailbox) submit(q *Queue, ticket, n uint32, mine bool) {
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

func (q *Queue) publish(ticket, n uint32) {
	for ; n > 0; n-- {
		q.slot(ticket).seq.Store(ticket + 1)
		ticket = (ticket + 1) & ticketMask
	}
}

// kickStep makes the step run once more after this call began: the caller runs it, or
// the holder does.
func (b *Mailbox) kickStep() {
	if b.Token.TakeOrKick() {
		b.run(false)
	}
}

// run is the holder's loop. It ends by releasing the token, or by leaving it to the
// adapter's workers. A worker's budget is renewed as long as no other endpoint waits
// for a worker.
func (b *Mailbox) run(byWorker bool) {
	left := budget
	for {
		left = b.step(left)
		if left > 0 {
			yield.Point()
			if b.Token.Release() {
				return
			}
			continue
		}
		switch {
		case byWorker && b.cold.crew.workers.Idle():
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
func (b *Mailbox) handOver() bool {
	b.Token.Check()
	if b.State().Phase() == Gone {
		return false
	}
	b.Token.Leave()
	b.cold.crew.workers.Add(b)
	return true
}

// serveLeft is a worker's turn with a mailbox that was left to it.
func serveLeft(b *Mailbox) {
	b.Token.Resume()
	b.run(true)
}

// Tell records an input and kicks the step, so that a holder handles the input. It
// never blocks.
func (b *Mailbox) Tell(what uint32) {
	b.inputs.Or(what)
	b.kickStep()
}
