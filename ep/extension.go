package ep

import (
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// extra is what the operations of DAT 2.0 and of its InfiniBand extension have beyond the plain
// ones. Posting one that the device can't execute is MODEL_NOT_SUPPORTED, which matches
// errors.ErrUnsupported.
type extra struct {
	imm uint32 // immediate data, or the key to invalidate
	operands
}

const atomicSize = 8

// PostSendInvalidate is PostSend that also invalidates a context of the peer before
// the peer's receive completes; the event of that receive names the context.
// It answers to dat_ep_post_send_with_invalidate.
func (e *Endpoint) PostSendInvalidate(cookie uint64, flags hw.Flags, context uint32, segments ...mem.Segment) error {
	return postExtra(e, work{op: hw.OpSendInvalidate, flags: flags, cookie: cookie, segs: segments}, extra{imm: context})
}

// PostRDMAWriteImmediate is PostRDMAWrite that also consumes a receive of the peer;
// the event of that receive, of OpRecvImm, carries immediate and the length of the
// write, whose bytes are not in the receive's memory. SolicitedWait is legal. The events
// of both sides have number IB_DTO.
// It answers to dat_ib_post_rdma_write_immed.
func (e *Endpoint) PostRDMAWriteImmediate(cookie uint64, flags hw.Flags, immediate uint32, remote mem.RemoteSegment, segments ...mem.Segment) error {
	return postExtra(e, work{op: hw.OpWriteImm, flags: flags, cookie: cookie, segs: segments, remote: remote}, extra{imm: immediate})
}

// PostFetchAdd adds to the 8-byte number at remote, in the peer's byte order, in one indivisible
// step, and puts the old value into local. Both are 8 bytes long; remote needs RemoteAtomic, local
// LocalWrite. The number's address in the peer's memory must be a multiple of 8, which only the
// peer can tell of an offset into a zero-based window: else the atomic fails with REMOTE_RESPONDER,
// and the connection breaks. The event has number IB_DTO.
// It answers to dat_ib_post_fetch_and_add.
func (e *Endpoint) PostFetchAdd(cookie uint64, flags hw.Flags, add uint64, remote mem.RemoteSegment, local mem.Segment) error {
	w := work{op: hw.OpFetchAdd, flags: flags, cookie: cookie, segs: []mem.Segment{local}, remote: remote}
	return postExtra(e, w, extra{operands: operands{operand: add}})
}

// PostCompareSwap stores swap in the 8 bytes at remote if they equal compare, and
// puts the old value into local; see PostFetchAdd.
// It answers to dat_ib_post_cmp_and_swap.
func (e *Endpoint) PostCompareSwap(cookie uint64, flags hw.Flags, compare, swap uint64, remote mem.RemoteSegment, local mem.Segment) error {
	w := work{op: hw.OpCompareSwap, flags: flags, cookie: cookie, segs: []mem.Segment{local}, remote: remote}
	return postExtra(e, w, extra{operands: operands{swap, compare}})
}

func postExtra(e *Endpoint, w work, x extra) error {
	w.ext = &x
	return post(e.mailbox(), &w, nil)
}

// extendedEvent sets the number and the operation that DAT has for the event of an operation
// beyond the plain ones, and tells a window that its bind has ended.
func (q *queue) extendedEvent(ev *event.Event, slot uint32) {
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
