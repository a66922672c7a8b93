// Command inline is what TestProgramsInlineTheShortMethods compiles.
package main

import (
	"godat/ep"
	"godat/evd"
	"godat/mem"
)

func main() { calls(nil, nil, nil) }

func calls(e *ep.Endpoint, d *evd.Dispatcher, b *mem.Buffer) {
	_ = e.PostSend(1, 0, b.Segment())
	_ = e.PostRecv(2, 0, b.Segment())
	_ = e.PostRDMAWrite(3, 0, mem.RemoteSegment{}, b.Segment())
	_ = e.PostRDMARead(4, 0, mem.RemoteSegment{}, b.Segment())
	_, _ = d.Dequeue(nil)
	<-d.C()
	for batch := range d.Batches() {
		_ = batch.Events()
		batch.Release()
	}
}
