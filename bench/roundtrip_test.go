package main

import (
	"runtime"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// A round trip is 64 bytes there and back between two goroutines, each with an
// endpoint and a dispatcher of its own.

// tripPoll spins on Dequeue, and yields whenever the dispatcher is empty.
func tripPoll(r *rig) workload {
	return trip(r, dequeuing)
}

func dequeuing(d *evd.Dispatcher) func() event.Event {
	buf := make([]event.Event, 1)
	return func() event.Event {
		for {
			if m := must(d.Dequeue(buf)); m == 1 {
				return buf[0]
			}
			runtime.Gosched()
		}
	}
}

// tripChannel receives from the channels of the dispatchers.
func tripChannel(r *rig) workload {
	return trip(r, receiving)
}

func receiving(d *evd.Dispatcher) func() event.Event {
	return func() event.Event { return <-d.C() }
}

func trip(r *rig, consumer func(*evd.Dispatcher) func() event.Event) workload {
	return func(n int) {
		done := make(chan struct{})
		check(r.b.PostRecv(1, 0, r.lmr.Segment(half, messageSize)))
		check(r.a.PostRecv(1, 0, r.lmr.Segment(0, messageSize)))
		go func() {
			defer close(done)
			echo(r.b, r.lmr.Segment(half, messageSize), consumer(r.db), n, false)
		}()
		echo(r.a, r.lmr.Segment(0, messageSize), consumer(r.da), n, true)
		<-done
	}
}

// echo answers n messages, or asks and takes n answers. Sends are suppressed, so a
// round trip has one event at each end. One receive is always posted; the last message
// takes it.
func echo(e *ep.Endpoint, seg mem.Segment, next func() event.Event, n int, asks bool) {
	for i := range n {
		if asks {
			check(e.PostSend(0, hw.Suppress, seg))
		}
		ev := next()
		check(ev.Status.Err())
		if i < n-1 {
			check(e.PostRecv(1, 0, seg))
		}
		if !asks {
			check(e.PostSend(0, hw.Suppress, seg))
		}
	}
}
