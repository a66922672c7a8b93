package runtime_test

import (
	"context"
	"fmt"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

// How long the sends of a connection take, for a while.
func ExampleIA_MeasureLatency() {
	ia, err := dat.Open(context.Background(), "loop")
	if err != nil {
		panic(err)
	}
	defer ia.Close()
	ln, err := ia.Listen(context.Background(), "", dat.ConnConfig{})
	if err != nil {
		panic(err)
	}
	client, err := ln.Dial(ln.Addr(), nil)
	if err != nil {
		panic(err)
	}
	if _, err = ln.Accept(ep.RequestOf(<-ln.Requests()), nil); err != nil {
		panic(err)
	}
	stop, err := ia.MeasureLatency()
	if err != nil {
		panic(err)
	}
	for ev := range ln.Events() {
		if ev.Number == event.Established && dat.ConnOf(ev) == client {
			err = client.SendBytes([]byte("hello"))
		}
		if err != nil || ev.Op == hw.OpRecv {
			break
		}
	}
	stop()
	if err = client.Close(); err != nil { // behind it, the send has completed
		panic(err)
	}
	now, err := ia.Snapshot()
	if err != nil {
		panic(err)
	}
	for _, d := range now.Dispatchers {
		if l := d.Latency; l != nil {
			fmt.Println(l.Count, "request; the median is above 0:", l.P50 > 0)
		}
	}
	// Output:
	// 1 request; the median is above 0: true
}

// What else takes time, in the snapshots of the adapter and so on the page of package inspect.
func ExampleNewHistogram() {
	ia, err := dat.Open(context.Background(), "loop", dat.WithLatency())
	if err != nil {
		panic(err)
	}
	defer ia.Close()
	writes := evd.NewHistogram()
	type disk struct{ Writes *evd.HistogramSnapshot }
	if _, err = ia.Report("disks", func() []any { return []any{disk{writes.Snapshot()}} }); err != nil {
		panic(err)
	}
	for i := range 100 {
		if ia.MeasuresLatency() { // else a program reads no clock
			writes.Record(time.Duration(i+1) * time.Millisecond) // in a program: time.Since(begin)
		}
	}
	now, err := ia.Snapshot()
	if err != nil {
		panic(err)
	}
	fmt.Println(now.Reports["disks"][0].(disk).Writes.Max)
	// Output:
	// 100ms
}

// All requests are measured, from the first one. These are the dispatchers of asynchronous errors
// and the program's.
func ExampleWithLatency() {
	ia, err := dat.Open(context.Background(), "loop", dat.WithLatency())
	if err != nil {
		panic(err)
	}
	defer ia.Close()
	if _, err = ia.NewDispatcher(evd.Config{QLen: 16}); err != nil {
		panic(err)
	}
	now, err := ia.Snapshot()
	if err != nil {
		panic(err)
	}
	for _, d := range now.Dispatchers {
		fmt.Println("room for", d.QLen, "events; no request yet:", d.Latency == nil)
	}
	// Unordered output:
	// room for 64 events; no request yet: true
	// room for 16 events; no request yet: true
}
