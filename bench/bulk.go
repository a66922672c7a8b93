package main

import (
	"strconv"

	dat "godat/runtime"
)

// bulkWrite is an RDMA write of size bytes, whose completion is polled.
func bulkWrite(r *rig, size int) contestant {
	buf := make([]dat.Event, 4)
	return contestant{"RDMA write of " + strconv.Itoa(size>>10) + " KiB", func(n int) {
		for range n {
			check(r.a.PostRDMAWrite(1, 0, r.lmr.Remote(half, size), r.lmr.Segment(0, size)))
			dequeue(r.da, buf, 1)
		}
	}}
}

// rawCopy copies between the places that bulkWrite uses.
func rawCopy(r *rig, size int) contestant {
	mem := r.lmr.Bytes()
	return contestant{"copy of " + strconv.Itoa(size>>10) + " KiB", func(n int) {
		for range n {
			copy(mem[half:half+size], mem[:size])
		}
	}}
}
