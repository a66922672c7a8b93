//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"godat/hw"
	"godat/internal/labels"
	"godat/internal/owner"
)

// watcher is the part of a device that waits for what happens to it. Its goroutine, run,
// takes the events of the connection manager and of the device and the notices of the C
// half, handles the alarms that are due, and calls what other goroutines deferred to it.
type watcher struct {
	// Immutable after start.
	dev  *device
	fds  C.struct_gd_fds
	done chan struct{} // closed when run has ended

	own owner.Tag // run's goroutine

	fatal atomic.Bool // Async was called with AsyncDeviceFatal

	// Guarded by mu, which any goroutine may take. Its holder takes no other lock.
	mu       sync.Mutex
	deferred []func() // run calls them
	alarms   [alarmKinds][]alarm
	closed   bool // run is to end
}

// start starts the goroutine.
func (w *watcher) start(d *device) {
	w.dev, w.fds, w.done = d, C.gd_watch_fds(d.c), make(chan struct{})
	go w.run()
}

// stop ends the goroutine, after the calls that were deferred to it.
func (w *watcher) stop() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wake()
	<-w.done
}

func (w *watcher) wake() { C.gd_wake_events(w.dev.c) }

// later makes run call f. Any goroutine may call it.
func (w *watcher) later(f func()) {
	w.mu.Lock()
	w.deferred = append(w.deferred, f)
	w.mu.Unlock()
	w.wake()
}

var watcherLabel = labels.Of("ibv: events of the device")

func (w *watcher) run() {
	watcherLabel.Set()
	defer close(w.done)
	w.own.Acquire()
	defer w.own.Release()
	fds := []unix.PollFd{
		{Fd: int32(w.fds.cm), Events: unix.POLLIN},
		{Fd: int32(w.fds.async), Events: unix.POLLIN},
		{Fd: int32(w.fds.notice), Events: unix.POLLIN},
	}
	var buf C.struct_gd_event
	for {
		if _, err := unix.Poll(fds, w.timeout()); err != nil && !errors.Is(err, unix.EINTR) {
			w.dev.async(hw.AsyncEvent{Kind: hw.AsyncProviderError, Err: err})
			return
		}
		C.gd_quiet_events(w.dev.c)
		for C.gd_cm_next(w.dev.c, &buf) == 0 {
			w.dispatch(&buf)
		}
		// run counts before it takes the device's events, so that OnLow is called once
		// when both report one shortage: the device's event is there by then.
		low := w.lowQueues()
		w.takeAsync()
		w.takeNotices()
		for _, q := range low {
			q.low()
		}
		if w.runDeferred() {
			return
		}
		w.runAlarms()
	}
}

// timeout is how many milliseconds poll may wait; -1 means without end.
func (w *watcher) timeout() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.deferred) > 0 {
		return 0
	}
	return w.untilAlarm()
}

// runDeferred calls the functions that other goroutines deferred, and reports whether
// the watcher is stopped.
func (w *watcher) runDeferred() (stopped bool) {
	w.own.Check()
	w.mu.Lock()
	calls, stopped := w.deferred, w.closed
	w.deferred = nil
	w.mu.Unlock()
	for _, f := range calls {
		f()
	}
	return stopped
}

// dispatch hands an event of the connection manager to its listener or its conn.
func (w *watcher) dispatch(buf *C.struct_gd_event) {
	w.own.Check()
	d := w.dev
	e := event{
		id: buf.id, kind: buf.event, status: int(buf.status),
		readsIn: int(buf.reads_in), readsOut: int(buf.reads_out),
	}
	e.private = append(e.private, unsafe.Slice((*byte)(&buf.data[0]), buf.len)...)
	c, l := lookup(d, d.conns, buf.key), lookup(d, d.listeners, buf.parent)
	switch {
	case e.kind == C.GC_EVENT_CONNECT_REQUEST && l != nil:
		l.arrive(e)
	case e.kind == C.GC_EVENT_CONNECT_REQUEST:
		rejectAsProvider(e.id) // the listener has just been closed
		C.gd_cm_destroy(e.id)
	case c != nil:
		c.deliver(e)
	case e.kind == C.GC_EVENT_DEVICE_REMOVAL: // a listener's, or the sentry's
		w.removed()
	}
}

// takeNotices handles the notices that the C half left about queue pairs.
func (w *watcher) takeNotices() {
	w.own.Check()
	var key C.uint64_t
	var number C.uint32_t
	for bits := C.gd_next_notice(w.dev.c, &key, &number); bits != 0; bits = C.gd_next_notice(w.dev.c, &key, &number) {
		if q := lookup(w.dev, w.dev.qps, key); q != nil {
			w.noticed(q, number, uint32(bits))
		}
	}
}

// lowQueues are the shared queues with fewer receives left than their low watermark.
func (w *watcher) lowQueues() (low []*sharedQueue) {
	w.own.Check()
	for _, q := range listed(w.dev, w.dev.srqs) {
		if q.isLow() {
			low = append(low, q)
		}
	}
	return low
}
