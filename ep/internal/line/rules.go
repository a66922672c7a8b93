package line

import (
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
