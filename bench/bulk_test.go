package main

import (
	"fmt"

	dat "godat/runtime"
)

// bulkWrites is RDMA writes of size bytes, depth of them outstanding, whose completions
// are polled.
func bulkWrites(r *rig, size, depth int) contestant {
	buf := make([]dat.Event, depth)
	from, to := r.lmr.Segment(0, size), r.lmr.Remote(half, size)
	return contestant{fmt.Sprintf("RDMA write of %d KiB, %d outstanding", size>>10, depth), func(n int) {
		for left := n; left > 0; left -= depth {
			posted := min(left, depth)
			for range posted {
				check(r.a.PostRDMAWrite(1, 0, to, from))
			}
			dequeue(r.da, buf, posted)
		}
	}}
}

// rawCopy copies between the places that bulkWrites uses.
func rawCopy(r *rig, size int) contestant {
	mem := r.lmr.Bytes()
	return contestant{fmt.Sprintf("copy of %d KiB", size>>10), func(n int) {
		for range n {
			copy(mem[half:half+size], mem[:size])
		}
	}}
}
