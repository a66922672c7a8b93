package line

import "godat/hw"

// tally is the queue's.
func (q *Queue) tally() *tally {
	if q.plain == hw.OpSend {
		return &q.box.cold.tallies[0]
	}
	return &q.box.cold.tallies[1]
}

// count counts the success of an operation.
func (q *Queue) count(op hw.Op, octets uint32) {
	if op == q.plain {
		q.moved.add(1, uint64(octets))
	} else {
		q.box.cold.countOther(op, octets)
	}
}

// countOther is count of an operation that is not what its queue has most.
//
//go:noinline
func (c *Cold) countOther(op hw.Op, octets uint32) {
	others := &c.others
	if others.Load() == nil {
		others.CompareAndSwap(nil, new([operationNumbers]moved)) // the other queue's completer may be faster
	}
	others.Load()[op%operationNumbers].add(1, uint64(octets))
}

// countReport counts what the provider reports of an operation. What the device found wrong
// stands in the story, too.
func (q *Queue) countReport(op hw.Op, wc *hw.WC) {
	switch {
	case wc.Status == hw.StatusFlushed:
		q.tally().flushes.Add(1)
	case wc.Status != hw.StatusSuccess:
		q.tally().failures.Add(1)
		q.box.cold.owner.Refused(op, wc.Status)
	case q.plain == hw.OpRecv:
		q.count(wc.Op, wc.Len)
	default:
		q.count(op, wc.Len)
	}
}
