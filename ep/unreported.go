package ep

import (
	"sync/atomic"

	"godat/internal/release"
)

// unreported has the last requests in a row that are not signaled, for Snapshot, which can't
// read their slots: the first ticket, and the ticket behind them. The token's holder writes it.
type unreported struct{ word atomic.Uint64 }

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
