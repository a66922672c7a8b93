package ep

import (
	"unsafe"

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

	own bool // a connection's, whose cookie is reserved
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
		return 0, nilEndpoint(op)
	case len(dtos) == 0:
		return 0, alive(callOf(op), e)
	case op == hw.OpRecv:
		return e.box.postBatch(&e.box.recvs, dtos)
	}
	return e.box.postBatch(&e.box.requests, dtos)
}

// batchDTOs is the most operations admitted at a time.
const batchDTOs = scratchWRs

func (b *mailbox) postBatch(q *queue, dtos []DTO) (n int, err error) {
	if len(dtos) == 1 && (q == &b.recvs || dtos[0].Op <= hw.OpRead) {
		if err = b.postOne(q, &dtos[0]); err != nil {
			return 0, err
		}
		return 1, nil
	}
	for n < len(dtos) && err == nil {
		some := dtos[n:min(len(dtos), n+batchDTOs)]
		if b.postRun(q, some) {
			n += len(some)
			continue
		}
		var took int
		took, err = b.postSome(q, some)
		n += took
	}
	return n, err
}

// postSome posts up to batchDTOs operations one after the other, and steps behind the last.
func (b *mailbox) postSome(q *queue, dtos []DTO) (n int, err error) {
	var (
		w      work
		x      extra
		ticket uint32
		mine   bool
	)
	for ; n < len(dtos); n++ {
		d := &dtos[n]
		d.work(q, &w)
		w.segs, w.ext = d.list(), nil
		if operations[w.op&31].extended {
			x = extra{d.Immediate, operands{d.Operand, d.Compare}}
			w.ext = &x
		}
		at, took, fail := b.admitOne(q, &w, d.OneShot)
		if fail != nil {
			err = fail
			break
		}
		q.publish(at, 1)
		ticket, mine = at, mine || took
	}
	switch {
	case mine:
		b.run(false)
	case n > 0:
		b.kickStep()
	}
	if q.prompt && n > 0 {
		q.awaitHanded((ticket + 1) & ticketMask)
	}
	return n, err
}

// list is the local memory. The caller stores the result into a work of its own: if
// list stored it through a pointer, escape analysis would move d to the heap.
func (d *DTO) list() []mem.Segment {
	if d.Segments == nil && d.Segment.Len != 0 {
		return unsafe.Slice(&d.Segment, 1)
	}
	return d.Segments
}

// single returns the only segment of d; nil if there are none or several.
func (d *DTO) single() *mem.Segment {
	switch {
	case d.Segments == nil:
		return &d.Segment
	case len(d.Segments) == 1:
		return &d.Segments[0]
	}
	return nil
}

// work puts into w what d asks of q, except its memory; describe in complete.go
// says why field by field.
func (d *DTO) work(q *queue, w *work) {
	w.op, w.flags, w.cookie, w.own = d.Op, d.Flags, d.Cookie, d.own
	w.remote.Addr, w.remote.Len, w.remote.Context = d.Remote.Addr, d.Remote.Len, d.Remote.Context
	if q.plain == hw.OpRecv {
		w.op = hw.OpRecv
	} else if mayBeRequests>>w.op&1 == 0 {
		w.op = hw.OpEnd
	}
}

// mayBeRequests are the operations with a number below 32 that PostBatch does not
// refuse by number alone.
const mayBeRequests = ^uint32(1<<hw.OpRecv | 1<<hw.OpBind | 1<<hw.OpReadToRMR)
