//go:build linux && cgo

package ibv

// #cgo noescape gd_poll
// #cgo nocallback gd_poll
// #include "shim.h"
import "C"

import (
	"unsafe"

	"godat/hw"
)

// ownCompletions is a queue's fixed room for completions of the provider's own, beside
// the half that NewCQ adds for those of the queue pairs.
const ownCompletions = 16

// completionQueue implements [hw.CQ].
type completionQueue struct {
	key   uint64
	depth int
	c     *C.struct_gd_cq
	users
}

// NewCQ implements [hw.Polled].
func (d *device) NewCQ(cfg hw.CQConfig) (hw.CQ, error) {
	const op = "ibv.NewCQ"
	if cfg.Depth <= 0 || cfg.Depth > d.attr.MaxCQDepth {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "depth %d, at most %d", cfg.Depth, d.attr.MaxCQDepth)
	}
	if err := d.adopt(op); err != nil {
		return nil, err
	}
	q := &completionQueue{users: users{dev: d}, depth: cfg.Depth}
	q.key = enlist(d, d.cqs, q)
	// The depth counts two places per queue pair for OpEnd, which takes no place in the
	// device's queue. The provider's own requests may use three per queue pair: half as
	// many places more are enough.
	size := cfg.Depth + (cfg.Depth+1)/2 + ownCompletions
	c, errno := C.gd_new_cq(d.c, C.int(size), C.uint64_t(q.key), C.uint32_t(cfg.Tag), C.bool(cfg.SolicitedOnly))
	if c == nil {
		q.drop()
		return nil, resourceError(op, hw.ResourceTEVD, errno)
	}
	q.c = c
	return q, nil
}

func (q *completionQueue) drop() {
	unlist(q.dev, q.dev.cqs, q.key)
	q.dev.disown()
}

func (q *completionQueue) Depth() int { return q.depth }

func (q *completionQueue) Close() error {
	const op = "ibv.CQ.Close"
	ended, err := q.close(op, &queues, func() error { return result(op, C.gd_close_cq(q.c)) })
	if ended {
		q.drop()
	}
	return err
}

// Poll implements [hw.Polled].
func (d *device) Poll(wcs []hw.WC) int {
	if len(wcs) == 0 {
		return 0
	}
	n := int(C.gd_poll(d.c, C.int(min(len(wcs), 1<<20))))
	if n > 0 {
		copy(wcs, unsafe.Slice((*hw.WC)(unsafe.Pointer(C.gd_out(d.c))), n))
	}
	return n
}

// Arm implements [hw.Polled].
func (d *device) Arm() error { return result("ibv.Arm", C.gd_arm(d.c)) }

// Wait implements [hw.Polled].
func (d *device) Wait() error { return result("ibv.Wait", C.gd_wait(d.c)) }

// Wake implements [hw.Polled].
func (d *device) Wake() { C.gd_wake(d.c) }
