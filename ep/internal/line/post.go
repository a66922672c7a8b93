package line

import (
	"unsafe"

	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// Post is an operation of a batch. ep.DTO, which is the same, says what its fields mean.
type Post struct {
	Op               hw.Op
	Flags            hw.Flags
	Cookie           uint64
	Segments         []mem.Segment
	Segment          mem.Segment
	Remote           mem.RemoteSegment
	Immediate        uint32
	Operand, Compare uint64
	OneShot          *evd.OneShot // OwnShot for a connection's own
}

// batchPosts is the most operations admitted at a time.
const batchPosts = scratchWRs

// list is the local memory. The caller stores the result into a work of its own: if
// list stored it through a pointer, escape analysis would move d to the heap.
func (d *Post) list() []mem.Segment {
	if d.Segments == nil && d.Segment.Len != 0 {
		return unsafe.Slice(&d.Segment, 1)
	}
	return d.Segments
}

// shot is the one-shot that takes the completion; nil if none does.
func (d *Post) shot() *evd.OneShot {
	if d.OneShot == OwnShot {
		return nil
	}
	return d.OneShot
}

// single returns the only segment of d; nil if there are none or several.
func (d *Post) single() *mem.Segment {
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
func (d *Post) work(q *Queue, w *work) {
	w.op, w.flags, w.cookie, w.own = d.Op, d.Flags, d.Cookie, d.OneShot == OwnShot
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
