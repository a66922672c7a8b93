package line

import (
	"sync/atomic"

	"godat/hw"
	"godat/internal/release"
	"godat/internal/token"
)

// Mailbox is where posts and inputs wait for the token's holder, and what the
// holder hands to the provider: the word, both queues, and the step.
//
// A poster checks a post (check.go), takes a ticket (token.go) and fills its slot (admit.go, plain.go,
// admit_run.go). The holder drains the slots into the queue pair (step.go). Only the
// holder touches the connection machine, by its calls of the Owner.
type Mailbox struct {
	source any   // immutable: what its events are about
	cold   *Cold // immutable

	// Owned by the holder.
	qp          hw.QP     // nil without a zone
	runner      hw.Runner // qp, if it takes plain requests in runs
	signalEvery int       // suppressed requests between two signaled ones

	// The holder writes it while Modify replaces the slots of a queue; posters read
	// it.
	changing atomic.Bool
	reserves bool // a connection has the cookies whose highest bit is set; immutable after Reserve
	// Owned by the holder.
	bothEnded bool // both queues have ended, and the Owner has not said that it knows
	broke     bool // Break was called since the mailbox was made or renewed
	_         [1]byte
	recvWRs   []hw.RecvWR // as sendWRs

	unreported unreported

	// Shared; see token.go and package token. They begin a cache line, with the 8 bytes that the allocator
	// puts before an endpoint.
	Token  token.Token   // with the tails of the queues
	state  atomic.Uint32 // State; the holder writes it, by the Owner
	inputs atomic.Uint32 // what the step has been told; Tell*

	// Owned by the token's holder.
	unsignaled int
	called     bool        // a control call waits until everything posted before it is published
	sendWRs    []hw.SendWR // scratch for one call to the provider
	nextInList *Mailbox    // guarded by the workers' lock

	Requests, Recvs Queue
}

// scratchWRs is the most work requests handed to a provider in one call.
const scratchWRs = 64

// SetQP sets the queue pair that posts go to; its sinks are Requests and Recvs. The holder calls it, or
// who makes the mailbox.
func (b *Mailbox) SetQP(qp hw.QP) {
	b.qp = qp
	b.runner, _ = qp.(hw.Runner)
}

// QP is the queue pair; nil without one.
func (b *Mailbox) QP() hw.QP { return b.qp }

// SetSignals has one of so many suppressed requests in a row signaled.
func (b *Mailbox) SetSignals(every int) { b.signalEvery = every }

// Reserve keeps the cookies whose highest bit is set for own posts; see [OwnSend].
func (b *Mailbox) Reserve() { b.reserves = true }

// Inputs that others tell the step, one bit for each kind: a second input of a kind adds nothing
// before the step has read the first. The step orders them.
const (
	TellEstablished uint32 = 1 << iota
	TellFirstData          // data came before the provider reported the connection
	TellRefused
	TellDown
	TellTimeout
	TellControl // a control call is pending
	TellAsked   // a request has come for a reserved endpoint
	TellOverrun // more receives were taken than the hard watermark allows

	tellRequestEnd // the provider has completed all requests
	tellRecvEnd
	tellMark // somebody asks whether the suppressed requests have succeeded
)

// State is the owner's state now.
func (b *Mailbox) State() State { return State(b.state.Load()) }

// SetState changes the state. The holder calls it, or who makes the mailbox.
func (b *Mailbox) SetState(s State) {
	b.state.Store(uint32(s))
	b.cold.crew.handings.changed()
}

// up reports whether posts of all kinds go to the provider.
func (b *Mailbox) up() bool { return Phase(b.state.Load()) == Up }

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
