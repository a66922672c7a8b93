package line

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/memory"
	"godat/internal/owner"
	"godat/internal/release"
	"godat/internal/yield"
	"godat/mem"
)

// Queue is one direction of an endpoint: a ring of slots that is its mailbox, its
// admission and its bookkeeping at once. Each post has a number, its ticket; its
// slot is the ticket modulo the ring, and tickets wrap at 2^24.
//
//	retired ≤ next ≤ tail ≤ retired + depth
//
// Posters move tail (in the endpoint's word), the token's holder moves next, and
// the completer moves retired; doc.go says who that is.
//
// Its first three cache lines are what posts and completions touch, by writer.
type Queue struct {
	// Read by posters and completers. Modify changes rules and depth while posters read
	// them, and slots and mask while no poster has an unpublished ticket and none gets a
	// ticket. The first post makes slots and then sets depth, so only who has read a depth
	// above 0 may read slots. The rest is immutable but for watched.
	rules   atomic.Pointer[Rules]
	slots   []slot
	box     *Mailbox
	id      uint64        // of slot 0
	depth   atomic.Uint32 // the most tickets outstanding; 0 until there are slots, and while Modify replaces them
	mask    uint32        // of slots
	watched atomic.Uint32 // what completions must not overlook; the holder writes it, but for measured
	plain   hw.Op         // OpSend or OpRecv
	prompt  bool          // a post returns only when the provider has it; see awaitHanded

	// Owned by the token's holder.
	next   uint32 // first ticket that the provider does not have yet
	ready  uint32 // tickets before it are known to be published
	last   uint32 // tail at Break, or when the mailbox was sealed
	before uint32 // tail when the step read that a control call waits
	// Written by the token's holder: the provider has all tickets before it, or
	// they were flushed. Posters of a prompt queue read it. Posts that go the short
	// way move it rarely, but before it is 2^23 tickets behind, which would look like
	// 2^23 tickets ahead.
	handed atomic.Uint32
	ended  bool // the provider has nothing of this queue any more

	// Immutable.
	endID     uint64
	endInput  uint32
	asked     uint32 // depth once there are slots; but Modify changes it under mu
	tailShift uint8  // where tail is in the endpoint's word
	_         [7]byte

	near memory.Near // shared: the regions that the last posts named

	// Owned by the completer; posters read retired.
	completer owner.Tag
	retired   atomic.Uint32
	kept      uint32          // completions kept from retired on; see keep.go
	keptBytes uint32          // their lengths together
	keptOther uint32          // how many of them the record has counted
	keptFor   *delivery.Queue // it gets those kept; nil: none are
	lane      delivery.Lane   // its way into a channel
	moved     moved           // the successes of plain; the record has others

	// What few posts have beyond their slot. Modify changes it as the slots.
	sges     annex[hw.SGE] // iov of them for each slot
	operands annex[operands]
	binds    annex[pendingBind]
	iov      int    // segments per slot
	shared   Shared // the queue that receives come from, in place of the slots; or nil

	mu      sync.Mutex
	waiting []hw.WC // under mu: what has taken the detour
}

const ticketMask = 1<<24 - 1

// The bits of queue.watched. While it is 0, the success of a plain operation goes the
// short way.
const (
	detour        uint32 = 1 << iota // completions wait until ESTABLISHED is announced
	solicitedOnly                    // receives notify only when solicited; Modify changes it while nothing can complete
	measured                         // requests are measured; SetRules changes it
)

// slot is one post. Its poster fills it and publishes it by seq, unless the poster
// runs the step itself.
//
// It is as long as a cache line. The allocator puts 8 bytes before most arrays of
// slots, so the end of a slot, which is used while requests are measured, lies on the next line.
type slot struct {
	seq    atomic.Uint32 // ticket+1 once the slot is filled; 0 once the holder knows it
	op     hw.Op
	nseg   uint8
	flags  hw.Flags
	cookie atomic.Uint64
	to     *delivery.Queue // where the completion goes; room is reserved there
	sge    [1]hw.SGE       // the segment, if there is one; several are in the annex
	addr   uint64          // remote address
	rkey   uint32
	imm    uint32 // of operations that have it
	posted int64  // when, by clock, while it is measured; 0: nobody measures
}

// annex is an array with a place for each slot of a queue. The first post that needs
// it makes it, since most endpoints never do. A poster touches only the place of a
// slot whose ticket it has.
type annex[T any] struct{ array atomic.Pointer[[]T] }

// made returns the annex, which has n places, and makes it on first use.
func (a *annex[T]) made(n int) []T {
	if p := a.array.Load(); p != nil {
		return *p
	}
	array := make([]T, n)
	a.array.CompareAndSwap(nil, &array)
	return *a.array.Load()
}

// of returns the place of slot i. A post has made the annex.
func (a *annex[T]) of(i uint32) *T { return &(*a.array.Load())[i] }

// take empties the annex and returns what it held.
func (a *annex[T]) take() []T {
	if p := a.array.Swap(nil); p != nil {
		return *p
	}
	return nil
}

// operands are the numbers of an atomic.
type operands struct{ operand, compare uint64 }

// pendingBind is what a slot holds beside its fields when its operation is a bind.
type pendingBind struct {
	hw.Bind
	rmr *mem.RMR
	to  memory.Binding
}

func (q *Queue) init(b *Mailbox, depth, iov int) {
	q.box = b
	q.size(depth, iov)
	if depth == 0 {
		q.slots = make([]slot, 1) // for completions of a shared queue's receives, which no slot has posted
	}
}

// size says how many slots the queue is to have.
func (q *Queue) size(depth, iov int) {
	q.asked, q.mask, q.iov = uint32(depth), 0, iov
	if depth > 1 {
		q.mask = 1<<bits.Len(uint(depth-1)) - 1
	}
}

// open makes the slots and lets posters in. The first post calls it, since the requests of
// many an endpoint never come. It returns false if there are slots already.
func (q *Queue) open() bool {
	yield.Point()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.slots != nil {
		return false
	}
	q.slots = make([]slot, q.mask+1)
	q.depth.Store(q.asked)
	return true
}

func (q *Queue) slot(ticket uint32) *slot { return &q.slots[ticket&q.mask] }

// segments returns the segments of a post that has n.
func (q *Queue) segments(ticket uint32, n int) []hw.SGE {
	if n <= 1 {
		return q.slots[ticket&q.mask].sge[:n]
	}
	return q.several(ticket, n)
}

// several is segments of a post that has more than one.
func (q *Queue) several(ticket uint32, n int) []hw.SGE {
	at := int(ticket&q.mask) * q.iov
	return q.sges.made(len(q.slots) * q.iov)[at : at+n : at+n]
}

// publishedNext reports whether the post with ticket q.next is published, so that
// the holder may take it.
func publishedNext(q *Queue) bool {
	if q.next != q.ready {
		return true
	}
	if q.depth.Load() == 0 {
		return false // there are no slots yet
	}
	t := q.next
	seq := &q.slot(t).seq
	if seq.Load() != t+1 {
		return false
	}
	release.Uint32(seq, 0) // or, 2^24 tickets later, an unfilled slot would look published
	q.ready = (t + 1) & ticketMask
	return true
}

// tail returns the next ticket, given the word.
func (q *Queue) tail(word uint64) uint32 { return uint32(word>>q.tailShift) & ticketMask }

// published reports whether all tickets before that one are published, whether the
// provider has them or not. ticket is at most a queue's length from next.
func (q *Queue) published(ticket uint32) bool {
	q.box.Token.Check()
	if q.reached(ticket) {
		return true
	}
	for t := q.next; t != ticket; t = (t + 1) & ticketMask {
		if (t-q.ready)&ticketMask <= ticketMask/2 && q.slot(t).seq.Load() != t+1 {
			return false
		}
	}
	return true
}

// reached reports whether next has come to ticket. ticket is at most a queue's
// length from next, in either direction.
func (q *Queue) reached(ticket uint32) bool { return !before(q.next, ticket) }

// before reports whether a ticket comes before another.
func before(a, b uint32) bool { return (a-b)&ticketMask > ticketMask/2 }

// Outstanding is how many posts have not completed.
func (q *Queue) Outstanding() uint32 {
	retired := q.retired.Load() // before the tail, which is not behind it
	return (q.tail(q.box.Token.Load()) - retired) & ticketMask
}

var errNoSlot = &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceCredits, Text: "as many operations are outstanding as the endpoint allows"}
