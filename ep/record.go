package ep

import (
	"sync"
	"sync/atomic"
	"time"

	"godat/hw"
	"godat/internal/release"
)

// record is what an endpoint remembers for those who look at it, by [Endpoint.Snapshot] and
// [Endpoint.Counters]. The successes of sends and receives do not touch it: their queues
// count them.
type record struct {
	made time.Time // immutable

	connects, disconnects counter
	requests, receives    counter // posts; under mu

	// others has the successes of the other operations. The first of them makes it. Each
	// operation belongs to one queue, whose completer is the writer.
	others atomic.Pointer[[operationNumbers]moved]
	// failures and flushes count the operations that did not succeed, of requests and of
	// receives. The completer of the queue is the writer.
	failures, flushes [2]atomic.Uint64

	mu      sync.Mutex
	since   time.Time // when the last connection was established
	story   story
	tickets [2]tickets // of the requests, and of the receives
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

// count counts the success of an operation.
func (q *queue) count(op hw.Op, octets uint32) {
	if op == q.plain {
		q.moved.add(1, uint64(octets))
	} else {
		q.countOther(op, octets)
	}
}

// countOther is count of an operation that is not what the queue has most.
//
//go:noinline
func (q *queue) countOther(op hw.Op, octets uint32) {
	others := &q.e.record.others
	if others.Load() == nil {
		others.CompareAndSwap(nil, new([operationNumbers]moved)) // the other queue's completer may be faster
	}
	others.Load()[op%operationNumbers].add(1, uint64(octets))
}

// tally counts what the provider reports of an operation.
func (q *queue) tally(op hw.Op, wc *hw.WC) {
	switch {
	case wc.Status != hw.StatusSuccess:
		q.countFailure(op, wc.Status)
	case q.plain == hw.OpRecv:
		q.count(wc.Op, wc.Len)
	default:
		q.count(op, wc.Len)
	}
}

// length is how many octets a request moved that succeeded and was suppressed.
func (q *queue) length(ticket uint32, s *slot) (octets uint32) {
	for _, sge := range q.segments(ticket, int(s.nseg)) {
		octets += sge.Len
	}
	return octets
}

// countFailure counts an operation that did not succeed. What the device found wrong stands
// in the story, too.
func (q *queue) countFailure(op hw.Op, status hw.Status) {
	r := q.e.record
	if status == hw.StatusFlushed {
		r.flushes[q.index()].Add(1)
		return
	}
	r.failures[q.index()].Add(1)
	r.note(chapter{what: whatFailed, op: op, status: status})
}

// tickets is what a ring of tickets does not tell of a queue; record.mu guards it. A poster
// holds mu while its ticket wraps a tail, so a reader that holds it sees rounds and the tail
// that belongs to them.
type tickets struct {
	rounds  uint64 // how often the tail has wrapped
	skipped uint64 // tickets that are not posts
	look    look

	keptOctets uint32 // the completer's: the lengths of queue.keptOther
}

func (q *queue) tickets() *tickets { return &q.e.record.tickets[q.index()] }

// index is where the record has what belongs to the queue.
func (q *queue) index() int {
	if q.plain == hw.OpSend {
		return 0
	}
	return 1
}
