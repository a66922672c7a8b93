//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"godat/hw"
)

// alarmKind says what an alarm waits for. Each kind has one delay, so its alarms go off
// in the order in which they were set.
type alarmKind int

const (
	alarmTold     alarmKind = iota // the byte of an orderly end has not completed, or the peer does not disconnect
	alarmToldBusy                  // the byte has not completed, behind requests that may be stuck
	alarmAsked                     // the read of the peer's byte has not completed
	alarmFlushed                   // a request was flushed, and no event has named a cause
	alarmForce                     // the device has not flushed all requests
	alarmShared                    // no event says that the device takes no more shared receives
	alarmKinds
)

var alarmDelays = [alarmKinds]time.Duration{
	alarmTold:     2 * time.Second,
	alarmToldBusy: 500 * time.Millisecond,
	alarmAsked:    500 * time.Millisecond,
	alarmFlushed:  time.Second,
	alarmForce:    5 * time.Second,
	alarmShared:   200 * time.Millisecond,
}

// alarm belongs to one life of a queue pair.
type alarm struct {
	at   time.Time
	qp   *queuePair
	life uint64
}

func (d *device) setAlarm(kind alarmKind, q *queuePair, life uint64) {
	d.mu.Lock()
	d.alarms[kind] = append(d.alarms[kind], alarm{time.Now().Add(alarmDelays[kind]), q, life})
	d.mu.Unlock()
	C.gd_wake_events(d.c)
}

// watchFlush sets the alarms that end a dead queue pair's queues when the device does
// not.
func (d *device) watchFlush(q *queuePair, life uint64) {
	if q.srq != nil {
		d.setAlarm(alarmShared, q, life)
	}
	if !d.siw {
		d.setAlarm(alarmForce, q, life)
	}
}

// later makes the goroutine watch call f.
func (d *device) later(f func()) {
	d.mu.Lock()
	d.errands = append(d.errands, f)
	d.mu.Unlock()
	C.gd_wake_events(d.c)
}

// watch is the goroutine that takes the events of the connection manager and of the
// device until the device is closed.
func (d *device) watch() {
	defer close(d.done)
	fds := []unix.PollFd{
		{Fd: int32(d.fds.cm), Events: unix.POLLIN},
		{Fd: int32(d.fds.async), Events: unix.POLLIN},
		{Fd: int32(d.fds.notice), Events: unix.POLLIN},
	}
	var buf C.struct_gd_event
	for {
		if _, err := unix.Poll(fds, d.patience()); err != nil && !errors.Is(err, unix.EINTR) {
			d.async(hw.AsyncEvent{Kind: hw.AsyncProviderError, Err: err})
			return
		}
		C.gd_quiet_events(d.c)
		for C.gd_cm_next(d.c, &buf) == 0 {
			d.dispatch(&buf)
		}
		// watch counts before it takes the device's events, so that OnLow is called once
		// when both report one shortage: the device's event is there by then.
		low := d.lowQueues()
		d.takeAsync()
		d.takeNotices()
		for _, q := range low {
			q.low()
		}
		if d.runErrands() {
			return
		}
		d.ring()
	}
}

// patience is how many milliseconds poll may wait: until the next alarm, or without
// end (-1) when none is set.
func (d *device) patience() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || len(d.errands) > 0 {
		return 0
	}
	next := -1
	for _, as := range d.alarms {
		if len(as) > 0 {
			ms := int(time.Until(as[0].at)/time.Millisecond) + 1
			if ms = max(ms, 0); next < 0 || ms < next {
				next = ms
			}
		}
	}
	return next
}

// runErrands calls the functions that other goroutines left for watch, and reports
// whether the device is closed.
func (d *device) runErrands() bool {
	d.mu.Lock()
	todo, closed := d.errands, d.closed
	d.errands = nil
	d.mu.Unlock()
	for _, f := range todo {
		f()
	}
	return closed
}

// dispatch hands an event of the connection manager to its listener or its conn.
func (d *device) dispatch(buf *C.struct_gd_event) {
	e := event{
		id: buf.id, key: uint64(buf.key), parent: uint64(buf.parent), kind: buf.event, status: int(buf.status),
		readsIn: int(buf.reads_in), readsOut: int(buf.reads_out),
	}
	for _, b := range buf.data[:buf.len] {
		e.private = append(e.private, byte(b))
	}
	d.mu.Lock()
	c, l := d.conns[e.key], d.ears[e.parent]
	d.mu.Unlock()
	switch {
	case e.kind == C.GC_EVENT_CONNECT_REQUEST && l != nil:
		l.arrive(e)
	case e.kind == C.GC_EVENT_CONNECT_REQUEST:
		rejectAsProvider(e.id) // the listener has just been closed
		C.gd_cm_destroy(e.id)
	case c != nil:
		c.deliver(e)
	case e.kind == C.GC_EVENT_DEVICE_REMOVAL: // a listener's, or the sentry's
		d.removed()
	}
}

// takeNotices handles the notices that the C half left about queue pairs.
func (d *device) takeNotices() {
	const most = 64
	var keys [most]C.uint64_t
	var bits [most]C.uint32_t
	for {
		n := int(C.gd_take_notices(d.c, &keys[0], &bits[0], most))
		for i := range n {
			d.mu.Lock()
			q := d.qps[uint64(keys[i])]
			d.mu.Unlock()
			if q != nil {
				q.noticed(uint32(bits[i]))
			}
		}
		if n < most {
			return
		}
	}
}

func (q *queuePair) noticed(bits uint32) {
	q.mu.Lock()
	life := q.life
	q.mu.Unlock()
	if bits&C.GD_NOTICE_TOLD != 0 {
		q.toldPeer(life)
	}
	if bits&C.GD_NOTICE_ASKED != 0 {
		q.answered(life)
	}
	if bits&C.GD_NOTICE_FAILED != 0 {
		q.failed(life, localCause("the device was not told of a request", errDevice))
	}
	if bits&C.GD_NOTICE_DRAINED != 0 {
		q.drained(life)
	}
	if bits&C.GD_NOTICE_FLUSHED != 0 {
		q.dev.setAlarm(alarmFlushed, q, life) // an event of the connection manager should name the cause
	}
}

// ring sets off the alarms that are due.
func (d *device) ring() {
	now := time.Now()
	for kind := range alarmKinds {
		for {
			d.mu.Lock()
			as := d.alarms[kind]
			if len(as) == 0 || as[0].at.After(now) {
				d.mu.Unlock()
				break
			}
			a := as[0]
			d.alarms[kind] = as[1:]
			if len(as) == 1 {
				d.alarms[kind] = nil
			}
			d.mu.Unlock()
			a.qp.alarm(kind, a.life)
		}
	}
}

func (q *queuePair) alarm(kind alarmKind, life uint64) {
	switch kind {
	case alarmTold:
		q.toldPeer(life)
	case alarmToldBusy:
		q.unheard(life)
	case alarmAsked:
		q.answered(life)
	case alarmFlushed:
		q.mu.Lock()
		up := q.life == life && q.at() == phaseUp
		q.mu.Unlock()
		if up {
			q.failed(life, localCause("requests were flushed, and nobody said why", errDevice))
		}
	case alarmForce, alarmShared, alarmKinds:
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.life == life && !q.closed {
			q.force(kind)
		}
	}
}

// force makes the C half stop waiting for the device, with mu held.
func (q *queuePair) force(kind alarmKind) {
	if kind == alarmShared {
		C.gd_last_wqe(q.c)
		return
	}
	C.gd_force(q.c)
}

// takeAsync takes the device's asynchronous events.
func (d *device) takeAsync() {
	var a C.struct_gd_async
	for C.gd_get_async(d.c, &a) == 0 {
		d.mu.Lock()
		q, cq, srq := d.qps[uint64(a.handle)], d.cqs[uint64(a.handle)], d.srqs[uint64(a.handle)]
		d.mu.Unlock()
		switch a._type {
		case C.GV_EVENT_CQ_ERR:
			if cq != nil {
				d.async(hw.AsyncEvent{Kind: hw.AsyncCQOverrun, CQ: cq, Err: errOverrun})
				d.failAll(cq)
			}
		case C.GV_EVENT_QP_FATAL, C.GV_EVENT_QP_REQ_ERR, C.GV_EVENT_QP_ACCESS_ERR:
			if q != nil {
				d.qpError(q, a._type)
			}
		case C.GV_EVENT_COMM_EST:
			if q != nil {
				q.heard()
			}
		case C.GV_EVENT_QP_LAST_WQE_REACHED:
			if q != nil {
				q.alarm(alarmShared, q.currentLife())
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
			d.removed()
		}
	}
}

var (
	errOverrun = errors.New("ibv: a completion queue overran")
	errDevice  = errors.New("ibv: the device reports an error")
	errRemoved = errors.New("ibv: the device was removed or has failed")
)

func (q *queuePair) currentLife() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.life
}

// qpError reports an error of a queue pair to Async and ends its connection. On iWARP
// it leaves out IBV_EVENT_QP_FATAL: soft-iWARP raises it also when one of the queue
// pair's own requests fails, and that request has a completion.
func (d *device) qpError(q *queuePair, kind C.int) {
	if kind != C.GV_EVENT_QP_FATAL || !d.transport.iwarp {
		d.async(hw.AsyncEvent{Kind: hw.AsyncQPError, QP: q, Err: errDevice})
	}
	q.failed(q.currentLife(), asyncCause(kind))
}

// heard tells the connection manager (rdma_notify) that data arrived before its event
// that the connection is established.
func (q *queuePair) heard() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.conn != nil && q.at() == phaseConnecting {
		q.conn.with(func(id *C.struct_gc_id) { C.gd_cm_notify(id) })
	}
}

// failAll ends the connections that use a completion queue which overran, since their
// completions may be lost.
func (d *device) failAll(cq *completionQueue) {
	d.mu.Lock()
	var hit []*queuePair
	for _, q := range d.qps {
		if q.send == cq || q.recv == cq {
			hit = append(hit, q)
		}
	}
	d.mu.Unlock()
	for _, q := range hit {
		q.failed(q.currentLife(), localCause(errOverrun.Error(), errOverrun))
	}
}

// removed reports once, to Async, that the device is gone, and ends its connections.
func (d *device) removed() {
	d.mu.Lock()
	first := !d.fatal
	d.fatal = true
	var all []*queuePair
	for _, q := range d.qps {
		all = append(all, q)
	}
	d.mu.Unlock()
	if !first {
		return
	}
	d.async(hw.AsyncEvent{Kind: hw.AsyncDeviceFatal, Err: errRemoved})
	for _, q := range all {
		q.failed(q.currentLife(), localCause(errRemoved.Error(), errRemoved))
	}
}
