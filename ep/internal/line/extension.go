package line

import (
	"godat/hw"
	"godat/hw/event"
)

// extra is what the operations of DAT 2.0 and of its InfiniBand extension have beyond the plain
// ones. Posting one that the device can't execute is MODEL_NOT_SUPPORTED, which matches
// errors.ErrUnsupported.
type extra struct {
	imm uint32 // immediate data, or the key to invalidate
	operands
}

const atomicSize = 8

// PostExtra posts one of them. It takes the memory of p from Segments, and has no one-shot.
func PostExtra(b *Mailbox, p Post) error {
	x := extra{p.Immediate, operands{p.Operand, p.Compare}}
	return post(b, &work{op: p.Op, flags: p.Flags, cookie: p.Cookie, segs: p.Segments, remote: p.Remote, ext: &x}, nil)
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
