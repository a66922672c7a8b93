//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"errors"
	"syscall"

	"godat/hw"
)

// takeAsync takes the device's asynchronous events.
func (w *watcher) takeAsync() {
	w.own.Check()
	d := w.dev
	var a C.struct_gd_async
	for C.gd_get_async(d.c, &a) == 0 {
		q, cq, srq := lookup(d, d.qps, a.handle), lookup(d, d.cqs, a.handle), lookup(d, d.srqs, a.handle)
		switch a._type {
		case C.GV_EVENT_CQ_ERR:
			if cq != nil {
				d.async(hw.AsyncEvent{Kind: hw.AsyncCQOverrun, CQ: cq, Err: errOverrun})
				w.failUsersOf(cq)
			}
		case C.GV_EVENT_QP_FATAL, C.GV_EVENT_QP_REQ_ERR, C.GV_EVENT_QP_ACCESS_ERR:
			if q != nil {
				w.qpError(q, a.qp_num, a._type)
			}
		case C.GV_EVENT_COMM_EST:
			if q != nil {
				q.heard()
			}
		case C.GV_EVENT_QP_LAST_WQE_REACHED:
			if q != nil {
				q.force(alarmShared, w.lifeOf(q, a.qp_num))
			}
		case C.GV_EVENT_SRQ_LIMIT_REACHED:
			if srq != nil {
				srq.low()
			}
		case C.GV_EVENT_SRQ_ERR:
			if srq != nil {
				d.async(hw.AsyncEvent{Kind: hw.AsyncSRQError, SRQ: srq, Err: errDevice})
			}
		case C.GV_EVENT_PORT_ERR:
			d.async(hw.AsyncEvent{Kind: hw.AsyncPortDown, Err: syscall.ENETDOWN})
		case C.GV_EVENT_DEVICE_FATAL:
			w.removed()
		}
	}
}

var (
	errOverrun = errors.New("ibv: a completion queue overran")
	errDevice  = errors.New("ibv: the device reports an error")
	errRemoved = errors.New("ibv: the device was removed or has failed")
)

// qpError reports an error of a queue pair to Async and ends the connection for which it had
// the device's queue pair of that number. On iWARP it leaves out IBV_EVENT_QP_FATAL: soft-iWARP
// raises it also when one of the queue pair's own requests fails, and that request has a
// completion.
func (w *watcher) qpError(q *queuePair, number C.uint32_t, kind C.int) {
	life := w.lifeOf(q, number) // before Async, in which the program may end this life
	if kind != C.GV_EVENT_QP_FATAL || !w.dev.transport.iwarp {
		w.dev.async(hw.AsyncEvent{Kind: hw.AsyncQPError, QP: q, Err: errDevice})
	}
	q.failed(life, &hw.Cause{Layer: hw.LayerVerbs, Code: int(kind), Text: asyncNames[kind], Err: errDevice})
}

// failUsersOf ends the connections that use a completion queue which overran, since
// their completions may be lost.
func (w *watcher) failUsersOf(cq *completionQueue) {
	for _, q := range listed(w.dev, w.dev.qps) {
		if q.parts.send == cq || q.parts.recv == cq {
			q.failed(q.currentLife(), localCause(errOverrun.Error(), errOverrun))
		}
	}
}

// removed reports once, to Async, that the device is gone, and ends its connections. Any
// goroutine may call it.
func (w *watcher) removed() {
	if w.fatal.Swap(true) {
		return
	}
	w.dev.async(hw.AsyncEvent{Kind: hw.AsyncDeviceFatal, Err: errRemoved})
	for _, q := range listed(w.dev, w.dev.qps) {
		q.failed(q.currentLife(), localCause(errRemoved.Error(), errRemoved))
	}
}
