package iwarp

import (
	"godat/hw"
	"godat/hw/internal/soft"
)

// bind binds a window, or unbinds it. It returns false if the bind has to wait, or fails.
// The sender begins the requests behind the bind after it. The bind completes when all
// octets before it are written, so that nothing is read through the old key any more.
func (s *sender) bind(wr *hw.SendWR) bool {
	s.link.token.Check()
	b := wr.Bind
	w, q := b.Window.(*soft.Window), &s.link.qp.QP // see CheckBind
	ok, used, _ := w.BeginBind(q, b)
	if used && !s.awaitUsers() {
		s.bindWaits = true
		return false
	}
	if !ok || !w.EndBind(q, b) {
		w.Forget(b.Key)
		s.fail(hw.StatusBindFailed)
		return false
	}
	i := s.next & s.sq.Mask
	s.sq.reads[i], s.sq.ends[i] = 0, s.out.queued
	s.next++
	return true
}

// unbind reverts the oldest request, a bind that is flushed; or, if the bind was not
// executed, gives up its key.
func (s *sender) unbind(b *hw.Bind) {
	w := b.Window.(*soft.Window)
	if s.head < s.next {
		w.Undo(b)
	} else {
		w.Forget(b.Key)
	}
}
