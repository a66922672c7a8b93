package ep

import (
	"godat/internal/delivery"
	"godat/internal/token"
	"godat/internal/yield"
)

// A connected endpoint leases places of its dispatchers, many at a time. The endpoint's
// word counts them, so a post takes its place in the swap that takes its ticket.
//
//   - The token's holder leases places when a post has left none, adds them to the word,
//     and only then releases the token. It enters the list of the dispatcher's lessees when
//     the connection begins, and gives back what is left when it ends.
//   - A poster that finds the dispatcher full, on any endpoint, has the lessees give back
//     their places (GiveBack), and looks again. So an idle endpoint keeps no other from
//     posting.
//
// Why a place is the right dispatcher's: a poster loads the word, and after that the
// lender. Places come into the word only behind a post, in the hold that took its ticket,
// and not while the tail stays. So if the swap finds the word unchanged, with places in it,
// these have been there since the load; and the lender changes only while there are none.
//
// Why no place is overlooked: while places are on their way between the dispatcher and
// the word, moving is not 0. See [delivery.Lessee].

const (
	placeMask = 1<<placeBits - 1

	// leaseSize is the most that leaseAt lets an endpoint have: as many posts later
	// the tail is again one behind which it may lease.
	leaseSize = 48
	// leaseAt has the bits of a tail that are 0 where an endpoint without places asks for
	// some: an attempt that fails is not made again at once.
	leaseAt = 15
)

// lease adds places of to to the word, if to lends some, and returns the word. The caller
// holds the token, and has posted the last ticket.
func (b *mailbox) lease(q *queue, to *delivery.Queue, word uint64) uint64 {
	b.token.Check()
	if q.lender.Load() != to {
		return word
	}
	q.moving.Add(1)
	yield.Point()
	if to.Lessees().Lend(leaseSize) {
		yield.Point()
		leased := word + leaseSize<<(q.tailShift-placeBits)
		if b.token.Swap(word|token.Held, leased|token.Held) {
			word = leased
		} else {
			to.Release(leaseSize) // another post or a kick has come
		}
	}
	yield.Point()
	q.moving.Add(-1)
	return word
}

// GiveBack implements [delivery.Lessee].
func (q *queue) GiveBack() {
	t, shift := &q.e.box.token, q.tailShift-placeBits
	q.moving.Add(1)
	yield.Point()
	for {
		w := t.Load()
		n := w >> shift & placeMask
		to := q.lender.Load()
		if n == 0 || to == nil {
			break
		}
		if t.Swap(w, w-n<<shift) {
			yield.Point()
			to.Release(int(n))
			break
		}
	}
	q.moving.Add(-1)
}

// Settled implements [delivery.Lessee].
func (q *queue) Settled() bool { return q.moving.Load() == 0 }

// leaseWhileConnected makes the queues lessees of their dispatchers when the connection
// has begun, and ends that when the connection has. No post takes the short way in
// another state, so none leases then.
func (b *mailbox) leaseWhileConnected() {
	b.token.Check()
	for _, q := range []*queue{&b.requests, &b.recvs} {
		d, lender := q.rules.Load().evd, q.lender.Load()
		switch {
		case b.State() == Connected:
			if lender == nil && d != nil && b.direct != nil && q.srq == nil && wiring(d).Main().Lessees().Add(q) {
				q.lender.Store(wiring(d).Main())
			}
		case lender != nil:
			q.GiveBack()
			lender.Lessees().Remove(q)
			q.lender.Store(nil)
		}
	}
}
