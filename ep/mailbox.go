package ep

import (
	"sync/atomic"

	"godat/hw"
	"godat/internal/token"
)

// mailbox is where posts and inputs wait for the token's holder, and what the
// holder hands to the provider: the word, both queues, and the step.
//
// A poster checks a post (check.go), takes a ticket and fills its slot (post.go,
// batch.go). The holder drains the slots into the queue pair (step.go). Only the
// holder touches the connection machine.
type mailbox struct {
	source any   // immutable: what its events are about
	cold   *cold // immutable

	// Owned by the holder.
	device
	signalEvery int // suppressed requests between two signaled ones

	// The holder writes it while Modify replaces the slots of a queue; posters read
	// it.
	changing atomic.Bool
	reserves bool // a connection has the cookies whose highest bit is set; immutable after Reserve
	// Owned by the holder: both queues have ended, and the owner has not said that it knows.
	bothEnded bool
	_         [2]byte

	// Shared; see token.go and package token. They begin a cache line, with the 8 bytes that the allocator
	// puts before an endpoint.
	token  token.Token   // with the tails of the queues
	state  atomic.Uint32 // State, written by become alone
	inputs atomic.Uint32 // what the step has been told; tell*

	// Owned by the token's holder.
	unsignaled int
	called     bool        // a control call waits until everything posted before it is published
	sendWRs    []hw.SendWR // scratch for one call to the provider
	nextInList *mailbox    // guarded by the workers' lock

	requests, recvs queue

	recvWRs    []hw.RecvWR // as sendWRs
	unreported unreported
}

// Inputs that others tell the step, one bit for each kind: a second input of a kind adds nothing
// before the step has read the first. The step orders them.
const (
	tellEstablished uint32 = 1 << iota
	tellFirstData          // data came before the provider reported the connection
	tellRefused
	tellDown
	tellTimeout
	tellRequestEnd // the provider has completed all requests
	tellRecvEnd
	tellControl // a control call is pending
	tellAsked   // a request has come for a reserved endpoint
	tellMark    // somebody asks whether the suppressed requests have succeeded
	tellOverrun // more receives were taken than the hard watermark allows
)

// State is the endpoint's state now.
func (b *mailbox) State() State { return State(b.state.Load()) }

// tell records an input and kicks the step, so that a holder handles the input. It
// never blocks.
func (b *mailbox) tell(what uint32) {
	b.inputs.Or(what)
	b.kickStep()
}
