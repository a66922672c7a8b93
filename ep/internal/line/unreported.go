package line

import (
	"sync/atomic"

	"godat/hw"
	"godat/internal/release"
)

// unreported has the last requests in a row that are not signaled, for Snapshot, which can't
// read their slots: the first ticket, and the ticket behind them. The token's holder writes it.
//
// A device that can (hw.Marker) tells which of them have succeeded, when somebody asks.
type unreported struct {
	word atomic.Uint64
	id   uint64 // of marks; immutable

	// A mark is under way. The holder sets it, and writes marked before; the completer clears it.
	marking atomic.Bool
	marked  uint32 // the mark says that the requests before this ticket have succeeded
}

// add notes that n requests are not signaled.
func (u *unreported) add(ticket, n uint32) {
	w := u.word.Load()
	first := uint32(w >> 32)
	if (ticket-first)&ticketMask > (uint32(w)-first)&ticketMask { // a request before it is signaled
		first = ticket
	}
	release.Relaxed(&u.word, uint64(first)<<32|uint64((ticket+n)&ticketMask))
}

// has reports whether it has all requests from the oldest one to the tail.
func (u *unreported) has(oldest, tail uint32) bool {
	w := u.word.Load()
	first := uint32(w >> 32)
	return uint32(w) == tail && (tail-oldest)&ticketMask <= (tail-first)&ticketMask
}

// Settle has the device tell which requests have succeeded, if all that are outstanding are not
// signaled, so that no completion will. The answer may come later. It never blocks.
func (b *Mailbox) Settle() {
	retired := b.Requests.retired.Load() // before the tail, which is not behind it
	tail := b.Requests.tail(b.Token.Load())
	if tail != retired && b.up() && !b.unreported.marking.Load() && b.unreported.has(retired, tail) {
		b.Tell(tellMark)
	}
}

// passMark retires, from ticket r on, the requests that a mark tells of, and returns the new value
// of retired. A later request may have completed before the mark.
func (u *unreported) passMark(q *Queue, r uint32) uint32 {
	if before(r, u.marked) {
		r = q.passTo(r, u.marked)
	}
	u.marking.Store(false)
	return r
}

// mark is the holder's part of Settle.
func (b *Mailbox) mark() {
	b.Token.Check()
	u := &b.unreported
	if !b.up() || u.marking.Load() {
		return
	}
	if qp, ok := b.qp.(hw.Marker); ok {
		u.marked = b.Requests.next
		u.marking.Store(true)
		if !qp.Mark(u.id) {
			u.marking.Store(false)
		}
	}
}
