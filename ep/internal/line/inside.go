package line

import (
	"slices"

	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/memory"
	"godat/internal/owner"
	"godat/mem"
)

// Inside is a mailbox as the tests of whole endpoints see it: they stop a poster between two of its stages, and
// let tickets wrap. Nothing else uses it.
type Inside struct{ b *Mailbox }

// What tests count with.
const (
	TicketMask  = ticketMask
	Budget      = budget
	MaxKept     = maxKept
	HandedEvery = handedEvery
	BatchPosts  = batchPosts
)

// Inside returns the mailbox for a test.
func (b *Mailbox) Inside() Inside { return Inside{b} }

// Check checks an operation without segments, flags and cookie.
func (i Inside) Check(op hw.Op) error {
	w := work{op: op}
	_, err := i.b.check(i.b.Requests.rules.Load(), &w)
	return err
}

// Claim takes a ticket, and the token if it is free.
func (i Inside) Claim(q *Queue) (ticket uint32, ok, mine bool) { return i.b.claimTicket(q) }

// NoTicket is why a post gets no ticket.
func (i Inside) NoTicket() error { return i.b.whyNoTicket("test") }

// Fill fills the slot of a ticket with an operation without segments; a place for it is reserved in to.
func (i Inside) Fill(q *Queue, ticket uint32, op hw.Op, cookie uint64, to *delivery.Queue) {
	q.fill(ticket, &work{op: op, cookie: cookie}, to, 0)
}

// Submit publishes n filled slots, and runs the step or kicks its holder.
func (i Inside) Submit(q *Queue, ticket, n uint32, mine bool) { i.b.submit(q, ticket, n, mine) }

// Publish is Submit of one slot that does not wait until the provider has the post.
func (i Inside) Publish(q *Queue, ticket uint32) {
	q.publish(ticket, 1)
	i.b.kickStep()
}

// Bind is PostBind in any state, behind a holder of the token.
func (i Inside) Bind(windows *memory.Owner, cookie uint64, rmr *mem.RMR, to mem.Binding) error {
	q := &i.b.Requests
	r := q.rules.Load()
	p, err := prepareBind(r, windows, rmr, to)
	if err != nil {
		return err
	}
	ticket, mine, err := i.b.take(q, r, &work{op: hw.OpBind, cookie: cookie}, nil, 0)
	if err != nil {
		return err
	}
	*q.bind(ticket) = p
	i.b.submit(q, ticket, 1, mine)
	return nil
}

// Run is the work of the token's holder.
func (i Inside) Run() { i.b.run(false) }

// Told reports whether the step is told an input that it has not read.
func (i Inside) Told(input uint32) bool { return i.b.inputs.Load()&input != 0 }

// Open makes the slots of a queue.
func (i Inside) Open(q *Queue) bool { return q.open() }

// Age has a queue without outstanding posts go on with a ticket.
func (i Inside) Age(q *Queue, first uint32) {
	for w := i.b.Token.Load(); !i.b.Token.Swap(w, w&^(ticketMask<<q.tailShift)|uint64(first)<<q.tailShift); {
		w = i.b.Token.Load()
	}
	q.next, q.ready = first, first
	q.retired.Store(first)
}

// Skip counts no posts for so many tickets.
func (i Inside) Skip(q *Queue, tickets uint64) { q.tally().skipped = tickets }

// Next is the first ticket that the provider does not have.
func (i Inside) Next(q *Queue) uint32 { return q.next }

// Handed is what a prompt queue notes of it.
func (i Inside) Handed(q *Queue) uint32 { return q.handed.Load() }

// Published is how many slots look published.
func (i Inside) Published(q *Queue) (n int) {
	for s := range q.slots {
		if q.slots[s].seq.Load() != 0 {
			n++
		}
	}
	return n
}

// Posted is the time of the post in a slot; 0 if it is not measured.
func (i Inside) Posted(q *Queue, slot uint32) int64 { return q.slots[slot].posted }

// Redirect has a post complete to another queue, in which a place is reserved.
func (i Inside) Redirect(q *Queue, ticket uint32, to *delivery.Queue) {
	s := q.slot(ticket)
	s.to.Release(1)
	s.to = to
}

// ShortWays reports whether the short ways of posts and of completions are free.
func (i Inside) ShortWays(q *Queue) (posts, completions bool) {
	return q.rules.Load().longest != 0, q.watched.Load() == 0
}

// Completer is the owner of what the completer of a queue writes.
func (i Inside) Completer(q *Queue) *owner.Tag { return &q.completer }

// ID is the id of a ticket's work request.
func (i Inside) ID(q *Queue, ticket uint32) uint64 { return q.id | uint64(ticket&q.mask) }

// Signals is what SetSignals was given.
func (i Inside) Signals() int { return i.b.signalEvery }

// Marking reports whether the device is asked which suppressed requests have succeeded.
func (i Inside) Marking() bool { return i.b.unreported.marking.Load() }

// Sleepers is how many posters of the crew sleep, or are about to.
func (i Inside) Sleepers() int32 { return i.b.cold.crew.handings.n.Load() }

// PostLong posts an operation the long way.
func (i Inside) PostLong(q *Queue, p Post) error {
	_, err := i.b.postSome(q, []Post{p})
	return err
}

// Tail is the next ticket.
func (i Inside) Tail(q *Queue) uint32 { return q.tail(i.b.Token.Load()) }

// Slot is what a post has filled in.
type Slot struct {
	Op       hw.Op
	Flags    hw.Flags
	Cookie   uint64
	To       *delivery.Queue
	Segments []hw.SGE
	Addr     uint64 // of a write or read, as Key
	Key      uint32
}

// Slot is the slot of a ticket.
func (i Inside) Slot(q *Queue, ticket uint32) Slot {
	s := q.slot(ticket)
	image := Slot{Op: s.op, Flags: s.flags, Cookie: s.cookie.Load(), To: s.to, Segments: slices.Clone(q.segments(ticket, int(s.nseg)))}
	if operations[s.op&31].special {
		image.Addr, image.Key = s.addr, s.rkey
	}
	return image
}
