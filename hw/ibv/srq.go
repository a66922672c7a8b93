//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"sync"
	"syscall"
	"unsafe"

	"godat/hw"
)

// sharing implements [hw.SharedReceiver] for a device that has shared receive queues.
type sharing struct{ dev *device }

// sharedQueue implements [hw.SRQ].
type sharedQueue struct {
	key  uint64
	zone *zone
	cfg  hw.SRQConfig
	c    *C.struct_gd_srq
	ring C.struct_gd_srq_ring

	users

	posts sync.Mutex // serializes posts and guards each use of c
	depth int        // guarded by posts
}

// mostGrowth bounds Resize: a shared queue may grow to mostGrowth times its first
// depth. NewSRQ makes the device's queue that large, since soft-iWARP can't resize it
// later.
const mostGrowth = 4

// NewSRQ implements [hw.SharedReceiver].
func (s sharing) NewSRQ(cfg hw.SRQConfig) (hw.SRQ, error) {
	const op = "ibv.NewSRQ"
	d := s.dev
	if cfg.Depth <= 0 || cfg.Depth > d.attr.MaxSRQDepth || cfg.Segments < 0 || cfg.Segments > d.attr.MaxSRQSegments {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "depth %d of %d segments, at most %d of %d",
			cfg.Depth, cfg.Segments, d.attr.MaxSRQDepth, d.attr.MaxSRQSegments)
	}
	z, err := d.adoptIn(op, cfg.Zone)
	if err != nil {
		return nil, err
	}
	q := &sharedQueue{users: users{dev: d}, zone: z, cfg: cfg, depth: cfg.Depth}
	q.key = enlist(d, d.srqs, q)
	q.posts.Lock()
	defer q.posts.Unlock()
	room := min(mostGrowth*cfg.Depth, d.attr.MaxSRQDepth)
	c, errno := C.gd_new_srq(d.c, z.pd, C.uint32_t(room), C.uint32_t(max(cfg.Segments, 1)), C.uint64_t(q.key))
	if c == nil {
		q.drop()
		return nil, resourceError(op, hw.ResourceSRQ, errno)
	}
	q.c, q.ring = c, C.gd_srq_ring_of(c)
	return q, nil
}

func (q *sharedQueue) drop() {
	unlist(q.dev, q.dev.srqs, q.key)
	q.zone.disown()
}

func (q *sharedQueue) PostRecv(wrs []hw.RecvWR) (n int, err error) {
	q.posts.Lock()
	defer q.posts.Unlock()
	if q.isClosed() {
		return 0, hw.Errorf(opPostRecv, hw.InvalidHandle, hw.HandleSRQ, "the shared queue is closed")
	}
	for n < len(wrs) && err == nil {
		most := min(C.GD_BATCH, len(wrs)-n, q.depth-q.outstanding())
		if most <= 0 || int(C.gd_stage_srq(q.c, C.uint32_t(most))) < most {
			return n, hw.Errorf(opPostRecv, hw.InsufficientResources, hw.ResourceSRQ, "the shared queue is full")
		}
		var k int
		for k < most && err == nil {
			if err = q.fill(k, &wrs[n+k]); err == nil {
				k++
			}
		}
		if k == 0 {
			break
		}
		var taken C.uint32_t
		errno := C.gd_post_srq(q.c, C.uint32_t(k), &taken)
		n += int(taken)
		if int(taken) < k {
			err = postError(opPostRecv, errno)
		}
	}
	return n, err
}

// fill writes a receive into the kth staged slot.
func (q *sharedQueue) fill(k int, wr *hw.RecvWR) error {
	i := uint32(unsafe.Slice(q.ring.staged, C.GD_BATCH)[k])
	s := (*C.struct_gd_slot)(unsafe.Add(unsafe.Pointer(q.ring.slots), uintptr(i)*C.sizeof_struct_gd_slot))
	return fillRecvSlot(s, segmentsOf(q.ring.sges, i, uint32(q.ring.segs)), wr, q.cfg.Segments)
}

func (q *sharedQueue) Arm(limit int) error {
	const op = "ibv.SRQ.Arm"
	q.posts.Lock()
	defer q.posts.Unlock()
	switch {
	case q.isClosed():
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleSRQ, "the shared queue is closed")
	case limit < 0 || limit > q.depth:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "limit %d of %d", limit, q.depth)
	}
	if errno := C.gd_arm_srq(q.c, C.uint32_t(limit)); errno != 0 {
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "limit %d: %w", limit, syscall.Errno(errno))
	}
	if C.gd_is_low(q.c) {
		q.dev.watcher.later(q.low)
	}
	return nil
}

// isLow reports whether the queue is open and has fewer receives left than its low
// watermark.
func (q *sharedQueue) isLow() bool {
	q.posts.Lock()
	defer q.posts.Unlock()
	return q.c != nil && !q.isClosed() && bool(C.gd_is_low(q.c))
}

// low calls OnLow, once for each Arm: the device and the C half's count may both have
// reported the same shortage.
func (q *sharedQueue) low() {
	q.posts.Lock()
	armed := q.c != nil && !q.isClosed() && bool(C.gd_disarm_srq(q.c))
	q.posts.Unlock()
	if armed && q.cfg.OnLow != nil {
		q.cfg.OnLow()
	}
}

// outstanding is how many posted receives no poll has handed on yet.
func (q *sharedQueue) outstanding() int { return int(C.gd_outstanding(q.c)) }

// Resize implements [hw.SRQ]. A queue grows to at most four times its first depth.
func (q *sharedQueue) Resize(depth int) error {
	const op = "ibv.SRQ.Resize"
	q.posts.Lock()
	defer q.posts.Unlock()
	if q.isClosed() {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleSRQ, "the shared queue is closed")
	}
	if most := min(mostGrowth*q.cfg.Depth, q.dev.attr.MaxSRQDepth); depth <= 0 || depth > most {
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "depth %d, at most %d", depth, most)
	}
	if n := q.outstanding(); depth < n {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "%d receives are outstanding", n)
	}
	q.depth = depth
	return nil
}

func (q *sharedQueue) Close() error {
	q.posts.Lock()
	defer q.posts.Unlock()
	const op = "ibv.SRQ.Close"
	ended, err := q.close(op, &shares, func() error { return result(op, C.gd_close_srq(q.c)) })
	if ended {
		q.drop()
	}
	return err
}
