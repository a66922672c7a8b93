package loop

import "godat/hw"

// mark is what Mark asks for: a completion with that id, when the requests before a position of
// the send queue are done.
type mark struct {
	id uint64
	at uint64
}

// Mark implements [hw.Marker]. While the bit is set every request goes through the send queue,
// so what is posted behind the mark is not done before it.
func (q *queuePair) Mark(id uint64) bool {
	p := q.out.Load()
	if p == nil {
		return false
	}
	if p.from.mark == nil {
		p.from.mark = new(mark)
	}
	*p.from.mark = mark{id, p.from.sq.Tail.Load()}
	// A pipe that waits for a receive has not come so far, and what wakes it sees the bit.
	if p.attention.Or(marked)&stalled == 0 {
		p.kick()
	}
	return true
}

// reportMark completes the mark, behind the completions that are gathered. The owner may ask
// for another one as soon as it sees this one.
func (p *pipe) reportMark() {
	p.token.Check()
	x := &p.exec
	x.emit()
	id := p.from.mark.id
	p.attention.And(^uint32(marked))
	x.src.sink.Complete([]hw.WC{{ID: id, Op: hw.OpMark}})
}
