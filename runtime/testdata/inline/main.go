// Command inline is what TestProgramsInlineTheShortMethods compiles.
package main

import dat "godat/runtime"

func main() { calls(nil, nil, nil) }

func calls(e *dat.Endpoint, d *dat.Dispatcher, b *dat.Buffer) {
	_ = e.PostSend(1, 0, b.Segment())
	_ = e.PostRecv(2, 0, b.Segment())
	_ = e.PostRDMAWrite(3, 0, dat.RemoteSegment{}, b.Segment())
	_ = e.PostRDMARead(4, 0, dat.RemoteSegment{}, b.Segment())
	_, _ = d.Dequeue(nil)
	<-d.C()
	for batch := range d.Batches() {
		_ = batch.Events()
		batch.Release()
	}
}
