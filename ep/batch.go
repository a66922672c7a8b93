package ep

import (
	"unsafe"

	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// DTO is one data transfer operation for PostBatch and PostRecvBatch. Neither call
// keeps the array of DTOs, so a program that must not allocate can use the same
// array for every batch.
type DTO struct {
	Op     hw.Op    // of a request; PostRecvBatch ignores it
	Flags  hw.Flags // completion flags
	Cookie uint64   // opaque; comes back in the event
	// Segments are the local memory, of the endpoint's zone. The array is copied;
	// the memory belongs to the operation until it completes.
	Segments []mem.Segment
	// Segment is the local memory if Segments is nil, so that one segment needs no
	// array. A Segment of length 0 is no memory at all.
	Segment mem.Segment
	// Remote is the peer's memory, for RDMA. A read reads all of it; a write
	// fills as much of it as the local segments hold.
	Remote mem.RemoteSegment
	// Immediate is the immediate data of OpWriteImm, and the peer's context that
	// OpSendInvalidate invalidates.
	Immediate uint32
	// Operand and Compare are those of atomics: see PostFetchAdd and
	// PostCompareSwap.
	Operand, Compare uint64
	// OneShot, if set, takes the completion in place of the dispatcher.
	OneShot *evd.OneShot
}

// PostBatch posts requests in order and returns how many it posted; err says why it
// did not post the next one. It costs less than one post each, because the endpoint
// steps once for up to 64 of them.
func (e *Endpoint) PostBatch(dtos []DTO) (n int, err error) {
	return postAll(e, hw.OpEnd, dtos)
}

// PostRecvBatch is PostBatch for receives.
func (e *Endpoint) PostRecvBatch(dtos []DTO) (n int, err error) {
	return postAll(e, hw.OpRecv, dtos)
}

// postAll posts receives, or with OpEnd requests.
func postAll(e *Endpoint, op hw.Op, dtos []DTO) (n int, err error) {
	switch {
	case e == nil:
		return 0, line.NilEndpoint(op)
	case len(dtos) == 0:
		return 0, alive(line.CallOf(op), e)
	case op == hw.OpRecv:
		return e.box.PostBatch(&e.box.Recvs, posts(dtos))
	}
	return e.box.PostBatch(&e.box.Requests, posts(dtos))
}

// posts are the operations as the mailbox has them, in place. That a pointer to one converts says that both types are
// the same.
func posts(dtos []DTO) []line.Post {
	_ = (*line.Post)((*DTO)(nil))
	return *(*[]line.Post)(unsafe.Pointer(&dtos))
}
