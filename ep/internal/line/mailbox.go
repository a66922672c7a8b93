package line

import (
	"sync/atomic"

	"godat/hw"
	"godat/internal/token"
)

// Mailbox is where posts and inputs wait for the token's holder, and what the
// holder hands to the provider: the word, both queues, and the step.
//
// A poster checks a post (check.go), takes a ticket and fills its slot (admit.go, plain.go,
// batch.go). The holder drains the slots into the queue pair (step.go). Only the
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
	bothEnded bool // both queues have ended, and the owner has not said that it knows
	broke     bool // Break was called since the mailbox was made or renewed
	_         [1]byte
	recvWRs   []hw.RecvWR // as sendWRs

	unreported unreported

	// Shared; see token.go and package token. They begin a cache line, with the 8 bytes that the allocator
	// puts before an endpoint.
	Token  token.Token   // with the tails of the queues
	state  atomic.Uint32 // State; the owner writes it
	inputs atomic.Uint32 // what the step has been told; Tell*

	// Owned by the token's holder.
	unsignaled int
	called     bool        // a control call waits until everything posted before it is published
	sendWRs    []hw.SendWR // scratch for one call to the provider
	nextInList *Mailbox    // guarded by the workers' lock

	Requests, Recvs Queue
}

// Config says what a mailbox is made with. It does not change.
type Config struct {
	Source any   // what the events of its posts are about
	Owner  Owner // what the mailbox belongs to
	Crew   *Crew
	Prompt bool // a receive is with the provider when its post returns; see awaitHanded

	// The most posts outstanding, and their segments, which Change makes more of.
	RequestDepth, RequestIOV int
	RecvDepth, RecvIOV       int
}

// Init makes a mailbox in phase Waiting, which has no queue pair. cold is the part of it that its owner
// keeps elsewhere.
func (b *Mailbox) Init(cold *Cold, cfg Config) {
	b.source, b.cold = cfg.Source, cold
	cold.owner, cold.crew = cfg.Owner, cfg.Crew
	b.Requests.init(b, cfg.RequestDepth, cfg.RequestIOV)
	b.Requests.plain = hw.OpSend
	b.Requests.tailShift, b.Requests.endInput = requestShift, tellRequestEnd
	b.Recvs.init(b, cfg.RecvDepth, cfg.RecvIOV)
	b.Recvs.plain = hw.OpRecv
	b.Recvs.tailShift, b.Recvs.endInput = recvShift, tellRecvEnd
	b.Recvs.prompt = cfg.Prompt
}

// IDs are the ids of the mailbox's work requests, which its owner makes unlike all others of the device.
type IDs struct {
	Request, Recv       uint64 // of slot 0
	RequestEnd, RecvEnd uint64
	Mark                uint64
}

// SetIDs sets the ids, before there is a queue pair.
func (b *Mailbox) SetIDs(ids IDs) {
	b.Requests.id, b.Requests.endID = ids.Request, ids.RequestEnd
	b.Recvs.id, b.Recvs.endID = ids.Recv, ids.RecvEnd
	b.unreported.id = ids.Mark
}

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

// Tell records an input and kicks the step, so that a holder handles the input. It
// never blocks.
func (b *Mailbox) Tell(what uint32) {
	b.inputs.Or(what)
	b.kickStep()
}
