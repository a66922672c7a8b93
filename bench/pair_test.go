package main

import (
	"context"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// workload does n operations. Functions that make one are not renamed lightly: instructions.sh
// finds those of pairs by their names.
type workload func(n int)

// A pair is the smallest whole exchange: one receive posted, one send posted,
// 64 bytes copied, two completions consumed, by one goroutine.

func (r *rig) postPair() {
	check(r.b.PostRecv(1, 0, r.lmr.Segment(half, messageSize)))
	check(r.a.PostSend(2, 0, r.lmr.Segment(0, messageSize)))
}

// pairPoll consumes by Dequeue.
func pairPoll(r *rig) workload {
	buf := make([]event.Event, 32)
	return func(n int) {
		for range n {
			r.postPair()
			dequeue(r.da, buf, 2)
		}
	}
}

// pairBatch posts 16 pairs at a time, and counts each pair.
func pairBatch(r *rig) workload {
	buf := make([]event.Event, 32)
	recvs, sends := r.batch(16)
	return func(n int) {
		for range (n + 15) / 16 {
			must(r.b.PostRecvBatch(recvs))
			must(r.a.PostBatch(sends))
			dequeue(r.da, buf, 32)
		}
	}
}

func (r *rig) batch(n int) (recvs, sends []ep.DTO) {
	for range n {
		recvs = append(recvs, ep.DTO{Segments: []mem.Segment{r.lmr.Segment(half, messageSize)}})
		sends = append(sends, ep.DTO{Op: hw.OpSend, Segments: []mem.Segment{r.lmr.Segment(0, messageSize)}})
	}
	return recvs, sends
}

// pairChannel receives each event from a channel.
func pairChannel(r *rig) workload {
	return func(n int) {
		for range n {
			r.postPair()
			receive(r.da, 2)
		}
	}
}

// pairBatches posts 16 pairs at a time and receives their events as batches.
func pairBatches(r *rig) workload {
	recvs, sends := r.batch(16)
	return func(n int) {
		for range (n + 15) / 16 {
			must(r.b.PostRecvBatch(recvs))
			must(r.a.PostBatch(sends))
			for left := 32; left > 0; {
				b := <-r.da.Batches()
				for i := range b.Events() {
					check(b.Events()[i].Status.Err())
				}
				left -= len(b.Events())
				b.Release()
			}
		}
	}
}

// pairOneShot has a channel for each single operation.
func pairOneShot(r *rig) workload {
	recvs, sends := r.batch(1)
	recvs[0].OneShot, sends[0].OneShot = r.db.NewOneShot(), r.da.NewOneShot()
	return func(n int) {
		for range n {
			must(r.b.PostRecvBatch(recvs))
			must(r.a.PostBatch(sends))
			check((<-recvs[0].OneShot.C()).Err())
			check((<-sends[0].OneShot.C()).Err())
		}
	}
}

// pairWait consumes by Wait.
func pairWait(r *rig) workload {
	ctx := context.Background()
	return func(n int) {
		for range n {
			r.postPair()
			for range 2 {
				ev, _, err := r.da.Wait(ctx, 1)
				check(err)
				check(ev.Status.Err())
			}
		}
	}
}
