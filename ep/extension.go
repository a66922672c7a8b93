package ep

import (
	"godat/ep/internal/line"
	"godat/hw"
	"godat/mem"
)

// PostSendInvalidate is PostSend that also invalidates a context of the peer before
// the peer's receive completes; the event of that receive names the context.
// It answers to dat_ep_post_send_with_invalidate.
func (e *Endpoint) PostSendInvalidate(cookie uint64, flags hw.Flags, context uint32, segments ...mem.Segment) error {
	return line.PostExtra(e.mailbox(), line.Post{Op: hw.OpSendInvalidate, Flags: flags, Cookie: cookie, Segments: segments, Immediate: context})
}

// PostRDMAWriteImmediate is PostRDMAWrite that also consumes a receive of the peer;
// the event of that receive, of OpRecvImm, carries immediate and the length of the
// write, whose bytes are not in the receive's memory. SolicitedWait is legal. The events
// of both sides have number IB_DTO.
// It answers to dat_ib_post_rdma_write_immed.
func (e *Endpoint) PostRDMAWriteImmediate(cookie uint64, flags hw.Flags, immediate uint32, remote mem.RemoteSegment, segments ...mem.Segment) error {
	return line.PostExtra(e.mailbox(), line.Post{Op: hw.OpWriteImm, Flags: flags, Cookie: cookie, Segments: segments, Remote: remote, Immediate: immediate})
}

// PostFetchAdd adds to the 8-byte number at remote, in the peer's byte order, in one indivisible
// step, and puts the old value into local. Both are 8 bytes long; remote needs RemoteAtomic, local
// LocalWrite. The number's address in the peer's memory must be a multiple of 8, which only the
// peer can tell of an offset into a zero-based window: else the atomic fails with REMOTE_RESPONDER,
// and the connection breaks. The event has number IB_DTO.
// It answers to dat_ib_post_fetch_and_add.
func (e *Endpoint) PostFetchAdd(cookie uint64, flags hw.Flags, add uint64, remote mem.RemoteSegment, local mem.Segment) error {
	return line.PostExtra(e.mailbox(), line.Post{
		Op: hw.OpFetchAdd, Flags: flags, Cookie: cookie, Segments: []mem.Segment{local}, Remote: remote, Operand: add,
	})
}

// PostCompareSwap stores swap in the 8 bytes at remote if they equal compare, and
// puts the old value into local; see PostFetchAdd.
// It answers to dat_ib_post_cmp_and_swap.
func (e *Endpoint) PostCompareSwap(cookie uint64, flags hw.Flags, compare, swap uint64, remote mem.RemoteSegment, local mem.Segment) error {
	return line.PostExtra(e.mailbox(), line.Post{
		Op: hw.OpCompareSwap, Flags: flags, Cookie: cookie, Segments: []mem.Segment{local}, Remote: remote, Operand: swap, Compare: compare,
	})
}
