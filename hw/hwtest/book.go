package hwtest

import (
	"fmt"

	"godat/hw"
)

// direction is one of a queue pair's queues.
type direction uint8

const (
	sendQueue direction = iota
	recvQueue
)

// book records the requests that were posted to one queue of a queue pair, in order, and
// checks each completion against them: none may be lost, doubled, out of order or after
// OpEnd, and none may succeed behind one that failed.
type book struct {
	queue   string // "send" or "receive", for reports
	endID   uint64
	entries []entry
	head    int  // index of the oldest request that is not accounted for
	failed  bool // a request failed: all later ones must fail, too
	ended   bool

	markID    uint64 // of Mark's completion; 0 if none is due
	markAfter int    // the entries before this index were posted before the mark
}

// entry is one request.
type entry struct {
	id       uint64
	op       hw.Op  // the Op that its completion must have
	length   uint32 // of a send queue's request: the number of bytes it moves
	signaled bool
	done     bool  // it completed with wc
	silent   bool  // it succeeded without a completion
	wc       hw.WC // valid when done
}

// post records requests and returns the index of the first. The caller calls it before
// it posts them, since completions may come from inside the post.
func (b *book) post(es ...entry) int {
	b.entries = append(b.entries, es...)
	return len(b.entries) - len(es)
}

// unpost removes the last n requests, which the provider refused. It returns a violation
// or "".
func (b *book) unpost(n int) string {
	keep := len(b.entries) - n
	for _, e := range b.entries[keep:] {
		if e.done {
			return fmt.Sprintf("%s queue: request %#x was refused and completed", b.queue, e.id)
		}
	}
	b.entries = b.entries[:keep]
	return ""
}

// complete records one completion, and returns a violation or "". broken says that Break
// was called.
func (b *book) complete(wc hw.WC, broken bool) string {
	if b.ended {
		return fmt.Sprintf("%s queue: completion %#x (%v) after the queue's end", b.queue, wc.ID, wc.Status)
	}
	if wc.ID == b.endID {
		return b.end(wc, broken)
	}
	if b.markID != 0 && wc.ID == b.markID {
		return b.mark(wc)
	}
	i := b.head
	for i < len(b.entries) && b.entries[i].id != wc.ID {
		i++
	}
	if i == len(b.entries) {
		return fmt.Sprintf("%s queue: completion %#x (%v) is of no outstanding request: doubled, swapped or made up", b.queue, wc.ID, wc.Status)
	}
	bad := b.skip(i)
	e := &b.entries[i]
	e.done, e.wc = true, wc
	b.head = i + 1
	switch {
	case bad != "":
	case wc.Status != hw.StatusSuccess:
		b.failed = true
	case b.failed:
		bad = fmt.Sprintf("%s queue: request %#x succeeded behind one that failed", b.queue, wc.ID)
	case !e.signaled:
		bad = fmt.Sprintf("%s queue: request %#x succeeded and was not signaled, and has a completion", b.queue, wc.ID)
	case e.op != hw.OpRecv && wc.Op != e.op:
		bad = fmt.Sprintf("%s queue: request %#x completes as %v, not %v", b.queue, wc.ID, wc.Op, e.op)
	case e.op != hw.OpRecv && wc.Len != e.length:
		bad = fmt.Sprintf("%s queue: request %#x has moved %d bytes, not %d", b.queue, wc.ID, wc.Len, e.length)
	}
	return bad
}

// skip accounts for the requests before i, since a later one has completed: those that
// were not signaled succeeded; the completions of the others were lost or swapped.
func (b *book) skip(i int) (bad string) {
	for ; b.head < i; b.head++ {
		e := &b.entries[b.head]
		e.silent = true
		if (e.signaled || b.failed) && bad == "" {
			bad = fmt.Sprintf("%s queue: request %#x was overtaken: lost or swapped", b.queue, e.id)
		}
	}
	return bad
}

// end records the queue's OpEnd, and returns a violation or "".
func (b *book) end(wc hw.WC, broken bool) string {
	b.ended = true
	bad := b.skip(len(b.entries))
	switch {
	case bad != "":
		return "at the end: " + bad
	case !broken:
		return b.queue + " queue: ended before Break"
	case wc.Op != hw.OpEnd:
		return fmt.Sprintf("%s queue: the end's Op is %v", b.queue, wc.Op)
	}
	return ""
}

// mark records the completion of Mark, and returns a violation or "". Requests behind the mark
// may have completed before it.
func (b *book) mark(wc hw.WC) string {
	b.markID = 0
	bad := b.skip(max(b.head, b.markAfter))
	switch {
	case bad != "":
		return "at a mark: " + bad
	case wc.Op != hw.OpMark || wc.Status != hw.StatusSuccess:
		return fmt.Sprintf("%s queue: a mark completes as %v with %v", b.queue, wc.Op, wc.Status)
	case b.failed:
		return b.queue + " queue: a mark behind a request that failed"
	}
	return ""
}

// statuses lists the requests' statuses, for assertions. A request without a completion
// has StatusSuccess.
func (b *book) statuses() []hw.Status {
	out := make([]hw.Status, len(b.entries))
	for i, e := range b.entries {
		out[i] = e.wc.Status
	}
	return out
}
