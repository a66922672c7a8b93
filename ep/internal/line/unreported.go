package line

import "godat/hw"

// Settle has the device tell which requests have succeeded, if all that are outstanding are not
// signaled, so that no completion will. The answer may come later. It never blocks.
func (b *Mailbox) Settle() {
	retired := b.Requests.retired.Load() // before the tail, which is not behind it
	tail := b.Requests.tail(b.Token.Load())
	if tail != retired && b.up() && !b.unreported.marking.Load() && b.unreported.has(retired, tail) {
		b.Tell(tellMark)
	}
}

// passMark retires, from ticket r on, the requests that a mark tells of, and returns the new value
// of retired. A later request may have completed before the mark.
func (u *unreported) passMark(q *Queue, r uint32) uint32 {
	if before(r, u.marked) {
		r = q.passTo(r, u.marked)
	}
	u.marking.Store(false)
	return r
}

// mark is the holder's part of Settle.
func (b *Mailbox) mark() {
	b.Token.Check()
	u := &b.unreported
	if !b.up() || u.marking.Load() {
		return
	}
	if qp, ok := b.qp.(hw.Marker); ok {
		u.marked = b.Requests.next
		u.marking.Store(true)
		if !qp.Mark(u.id) {
			u.marking.Store(false)
		}
	}
}
