package line

import (
	"sync"
	"sync/atomic"

	"godat/internal/release"
)

// Cold is what a mailbox has that most posts and completions do not touch.
type Cold struct {
	// Immutable.
	owner Owner
	crew  *Crew

	// others has the successes of the operations that are not what their queue has most. The
	// first of them makes it. Each operation belongs to one queue, whose completer is the writer.
	others  atomic.Pointer[[operationNumbers]moved]
	tallies [2]tally // of the requests, and of the receives

	Mu sync.Mutex
}

// tally is what is counted of one queue beside its successes.
//
// mu guards what the ring of tickets does not tell. A poster holds mu while its ticket wraps
// a tail, so a reader that holds it sees rounds and the tail that belongs to them.
type tally struct {
	rounds  uint64 // how often the tail has wrapped
	skipped uint64 // tickets that are not posts

	// Written by the queue's completer. failures and flushes count the operations that did
	// not succeed; keptOctets are the lengths of queue.keptOther.
	failures, flushes atomic.Uint64
	keptOctets        uint32
}

// posts returns how many posts there were, given the tail. The caller holds Mu.
func (t *tally) posts(tail uint32) uint64 {
	return t.rounds*(ticketMask+1) + uint64(tail) - t.skipped
}

// takeKept returns the lengths of the others that were kept, and counts from 0 again.
//
//go:noinline
func (t *tally) takeKept() (octets uint32) {
	octets, t.keptOctets = t.keptOctets, 0
	return octets
}

// operationNumbers is how many numbers there are for operations.
const operationNumbers = 32

// moved counts operations that succeeded, and the octets that they moved. The completer of
// their queue is the only writer. Both only grow.
type moved struct{ operations, octets atomic.Uint64 }

// add counts operations. Only the writer calls it.
func (m *moved) add(operations, octets uint64) {
	release.Count(&m.octets, octets)
	release.Count(&m.operations, operations)
}
