package line

import (
	"godat/hw"
	"godat/hw/event"
	"godat/internal/door"
)

// explain adds the cause of the connection's end to the event of a flush.
func (b *Mailbox) explain(ev *event.Event) {
	if cause := b.cold.owner.Why(); cause != nil && ev.Data == nil {
		ev.Data = cause
	}
}

// received adds to a receive's event what it may have beyond its length. It makes
// the event silent if only solicited receives wake waiters and this one is not.
func (q *Queue) received(ev *event.Event, wc *hw.WC) {
	ev.Op = wc.Op
	ev.Key = wc.Imm
	if wc.Op == hw.OpRecvImm {
		ev.Number = event.IBDTOEvent
	}
	if wc.Flags&hw.WCSolicited != 0 {
		ev.Flags |= event.Solicited
	} else if q.watched.Load()&solicitedOnly != 0 {
		ev.Flags |= event.Silent
	}
	if wc.Flags&hw.WCImm != 0 {
		ev.Flags |= event.HasImm
	}
	if wc.Flags&hw.WCInvalidated != 0 {
		ev.Flags |= event.Invalidated
	}
}

// extendedEvent sets the number and the operation that DAT has for the event of an operation
// beyond the plain ones, and tells a window that its bind has ended.
func (q *Queue) extendedEvent(ev *event.Event, slot uint32) {
	switch ev.Op {
	case hw.OpBind:
		bind := q.binds.of(slot)
		bind.end(ev.Status)
		ev.Number, ev.Data = event.BindCompletion, bind.rmr
	case hw.OpSendInvalidate:
		ev.Op = hw.OpSend
	case hw.OpReadToRMR:
		ev.Op = hw.OpRead
	default:
		ev.Number = event.IBDTOEvent
	}
}

// end tells the window that its bind has completed.
func (p *pendingBind) end(status hw.Status) {
	p.rmr.Window(door.Key{}).EndBind(&p.to, p.Key, status == hw.StatusSuccess)
}
