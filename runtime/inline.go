package runtime

import (
	"godat/ep"
	"godat/evd"
	"godat/hw/event"
	"godat/mem"
)

// A program that imports this package alone can inline a short method of another package
// only if this package inlines it, too: the compiler writes no other bodies into what it
// exports. So here are calls of those that programs call for each operation or event. It
// saves them a call for each.
var _ = func(e *ep.Endpoint, local, sink mem.Segment, target mem.RemoteSegment, d *evd.Dispatcher, buf []event.Event, r *evd.Route, o *evd.OneShot, buffer *mem.Buffer) {
	_ = e.PostSend(0, 0, local)
	_ = e.PostRecv(0, 0, sink)
	_ = e.PostRDMAWrite(0, 0, target, local)
	_ = e.PostRDMARead(0, 0, target, sink)
	_, _ = d.Dequeue(buf)
	_, _, _ = d.C(), r.C(), o.C()
	for b := range d.Batches() {
		_ = b.Events()
		b.Release()
	}
	_ = buffer.Segment()
}
