package iwarp

import "godat/hw"

// mark is what Mark asks for: a completion with that id, when the requests before a position of
// the send queue have completed.
type mark struct {
	id uint64
	at uint64
}

// Mark implements [hw.Marker].
func (q *queuePair) Mark(id uint64) bool {
	c := q.conn
	if c == nil || !c.up.Load() {
		return false
	}
	if c.send.mark == nil {
		c.send.mark = new(mark)
	}
	*c.send.mark = mark{id, c.send.sq.Tail.Load()}
	c.attention.Or(marked)
	c.kick(byPoster)
	return true
}

// reportMark completes the mark. The owner may ask for another one as soon as it sees this one.
func (s *sender) reportMark() {
	s.link.token.Check()
	s.marking = false
	s.wc[0] = hw.WC{ID: s.mark.id, Op: hw.OpMark}
	s.sink.Complete(s.wc[:])
}
