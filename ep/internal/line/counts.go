package line

import (
	"iter"

	"godat/hw"
)

// Counts is what the posts of a queue came to, at one moment.
type Counts struct {
	Posted, Failed, Flushed uint64
	Outstanding             uint32
	Oldest                  uint32 // the ticket of the oldest outstanding post
	Unreported              bool   // all that are outstanding may have succeeded: the device reports nothing of them
}

// Counts counts. The caller holds [Cold.Mu].
func (q *Queue) Counts() Counts {
	t := q.tally()
	retired := q.retired.Load() // before the tail, which is not behind it
	tail := q.tail(q.box.Token.Load())
	return Counts{
		Posted: t.posts(tail), Failed: t.failures.Load(), Flushed: t.flushes.Load(),
		Outstanding: (tail - retired) & ticketMask, Oldest: retired,
		Unreported: q.plain == hw.OpSend && q.box.unreported.has(retired, tail),
	}
}

// Moved is what succeeded of one kind of operation.
type Moved struct{ Operations, Octets uint64 }

// Moved returns what succeeded, by the kind of operation: what the queue has most comes first.
func (q *Queue) Moved() iter.Seq2[hw.Op, Moved] {
	return func(yield func(hw.Op, Moved) bool) {
		m := &q.moved
		if n := m.operations.Load(); n > 0 && !yield(q.plain, Moved{n, m.octets.Load()}) {
			return
		}
		others := q.box.cold.others.Load()
		if others == nil {
			return
		}
		for i := range others {
			op, m := hw.Op(i), &others[i]
			n := m.operations.Load()
			recv := op == hw.OpRecvInvalidate || op == hw.OpRecvImm
			if n > 0 && recv == (q.plain == hw.OpRecv) && !yield(op, Moved{n, m.octets.Load()}) {
				return
			}
		}
	}
}

// Cookie is that of the post with a ticket, which is outstanding, or was lately.
func (q *Queue) Cookie(ticket uint32) uint64 {
	q.mu.Lock() // Grow replaces the slots under it
	defer q.mu.Unlock()
	return q.slot(ticket).cookie.Load()
}

// Depth is the most posts that may be outstanding; 0 before the first.
func (q *Queue) Depth() uint32 { return q.depth.Load() }
