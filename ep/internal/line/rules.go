package line

import (
	"math"
	"weak"

	"godat/evd"
	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/memory"
	"godat/mem"
)

// recvPhases and requestPhases are the phases in which posting is no error. The poster looks once, at
// a snapshot of the state; work that arrives after the state has moved on is flushed, never lost.
// What is posted in phase Over is flushed at once, or refused (Rules.EndIsLast). On receives in
// phase Bare, where there may be no zone, whyNot decides.
const (
	recvPhases    uint32 = 1<<Waiting | 1<<Up | 1<<Draining | 1<<Over
	requestPhases uint32 = 1<<Up | 1<<Over
)

// operation says how one kind of work may be posted.
type operation struct {
	call     string // for errors
	flags    hw.Flags
	local    hw.Privileges // what its local segments must allow
	rdma     bool          // it names remote memory, and MaxRDMASize bounds it
	atomic   bool          // it moves 8 bytes
	special  bool          // rdma or atomic
	extended bool          // it has an extra
}

// The flags of requests, and of those that take a receive of the peer.
const (
	requestFlags = hw.Suppress | hw.Unsignalled | hw.BarrierFence
	sendFlags    = requestFlags | hw.SolicitedWait
)

// operations are the operations that can be posted, by hw.Op; the others have no
// call.
var operations = [32]operation{
	hw.OpSend:           {call: "ep.PostSend", local: hw.LocalRead, flags: sendFlags},
	hw.OpWrite:          {call: "ep.PostRDMAWrite", local: hw.LocalRead, flags: requestFlags, rdma: true, special: true},
	hw.OpRead:           {call: "ep.PostRDMARead", local: hw.LocalWrite, flags: requestFlags, rdma: true, special: true},
	hw.OpReadToRMR:      {call: "ep.PostRDMAReadToRMR", flags: requestFlags}, // its sink is no segment
	hw.OpSendInvalidate: {call: "ep.PostSendInvalidate", local: hw.LocalRead, flags: sendFlags, extended: true},
	hw.OpWriteImm:       {call: "ep.PostRDMAWriteImmediate", local: hw.LocalRead, flags: sendFlags, rdma: true, special: true, extended: true},
	hw.OpFetchAdd:       {call: "ep.PostFetchAdd", local: hw.LocalWrite, flags: requestFlags, atomic: true, special: true, extended: true},
	hw.OpCompareSwap:    {call: "ep.PostCompareSwap", local: hw.LocalWrite, flags: requestFlags, atomic: true, special: true, extended: true},
	hw.OpBind:           {call: "ep.PostBind", flags: requestFlags, extended: true},
	hw.OpRecv:           {call: "ep.PostRecv", local: hw.LocalWrite, flags: hw.Unsignalled},
}

// CallOf names the call that posts op.
func CallOf(op hw.Op) string {
	if int(op) < len(operations) && operations[op].call != "" {
		return operations[op].call
	}
	return "ep.PostBatch"
}

// postable returns the operations that endpoints take on a device with these operations.
func postable(dev hw.OpSet) (s hw.OpSet) {
	for op, o := range operations {
		if o.call != "" && (dev.Has(hw.Op(op)) || hw.Op(op) == hw.OpRecv) {
			s |= hw.Ops(hw.Op(op))
		}
	}
	return s
}

// always is a bit beyond the flags that every post carries; it is illegal for an operation that
// can't be posted at all.
const always = 1 << 16

// SetFlags sets which flags are legal, for a device with these operations and an endpoint with these flags.
func (r *Rules) SetFlags(ops hw.OpSet, requests, recvs hw.Flags) {
	takes := postable(ops)
	for op, o := range operations {
		legal := o.flags &^ (hw.Unsignalled &^ requests)
		if hw.Op(op) == hw.OpRecv {
			legal = o.flags & recvs
		}
		r.illegal[op] = ^uint32(0)
		if takes.Has(hw.Op(op)) {
			r.illegal[op] = ^(always | uint32(legal))
		}
	}
}

// Rules are what posts to a queue are checked against. They are never changed, only
// replaced, so a post is checked against one set of them.
type Rules struct {
	PZ                *mem.PZ
	Zone              *memory.Zone         // the PZ's
	EVD               *evd.Dispatcher      // nil: completions of this direction are dropped
	Queues            *delivery.Dispatcher // what is behind EVD
	Shared            bool                 // receives come from a shared queue
	EndIsLast         bool                 // a post is refused behind the end of the connection
	timed             bool                 // how long the operations take is measured
	admits            uint32               // phases in which posting is no error, as bits
	IOV               int                  // segments
	ReadIOV, WriteIOV int
	Dev               *hw.Attr
	MaxMessage        uint64
	MaxRDMA           uint64

	longest     uint64                  // the most bytes of a message that goes the short way; 0 for none
	longestRDMA uint64                  // the most bytes of a write or read that goes the short way; 0 for none
	illegal     [len(operations)]uint32 // by operation: the bits that make posting it an error
}

// SetRules replaces the rules of the queue; timed says whether its operations are to be measured. One
// goroutine at a time calls it.
func (q *Queue) SetRules(r Rules, timed bool) {
	longest := uint64(math.MaxUint32)
	r.admits = recvPhases
	if q.plain == hw.OpSend {
		longest, r.admits = r.MaxMessage, requestPhases
	}
	if r.EndIsLast {
		r.admits &^= 1 << Over
	}
	if r.Shared {
		r.admits = 0
	}
	if r.timed = timed; timed {
		q.watched.Or(measured)
	} else {
		q.watched.And(^measured)
	}
	r.bound(longest)
	q.rules.Store(q.box.cold.crew.sharedRules(q.plain, &r))
}

// Rules are the present ones.
func (q *Queue) Rules() *Rules { return q.rules.Load() }

// Measures reports whether the operations are measured.
func (r *Rules) Measures() bool { return r.timed }

// bound says what goes the short way, given the most bytes of a message.
func (r *Rules) bound(longest uint64) {
	r.longest, r.longestRDMA = 0, 0
	if r.IOV > 0 && r.Queues != nil && r.admits>>Up&1 != 0 && !r.timed {
		r.longest = longest
		if min(r.ReadIOV, r.WriteIOV) > 0 {
			r.longestRDMA = r.MaxRDMA
		}
	}
}

// sharedRules returns the rules of the last mailbox of the crew that had the same ones, or a copy
// of r: the posts of many endpoints that are alike then read the same cache lines.
func (c *Crew) sharedRules(plain hw.Op, r *Rules) *Rules {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.rules[plain].Value()
	if last == nil || *last != *r {
		last = new(Rules)
		*last = *r
		c.rules[plain] = weak.Make(last)
	}
	return last
}
