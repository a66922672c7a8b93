//go:build linux && cgo

package ibv

// #cgo CFLAGS: -O2
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"godat/hw"
)

// device is an opened device of the verbs library.
type device struct {
	// Immutable after open.
	c         *C.struct_gd_device
	params    params
	name      string
	attr      hw.Attr
	addresses []netip.Addr // the device's own; the first is the default
	transport transport
	siw       bool       // soft-iWARP
	access    C.uint32_t // verbs' access flags of its queue pairs: what peers may do
	async     func(hw.AsyncEvent)
	sentry    *C.struct_gc_id // bound to the device, so that its removal always raises an event

	watcher watcher
	sleeper sleeper
	dials   sync.WaitGroup // the goroutines of attempts to connect
	answers sync.WaitGroup // to connection requests, under way; none begins once closed is set

	foundGID foundGID

	// Guarded by mu.
	mu        sync.Mutex
	lastKey   uint64
	qps       map[uint64]*queuePair
	cqs       map[uint64]*completionQueue
	srqs      map[uint64]*sharedQueue
	conns     map[uint64]*conn
	listeners map[uint64]*listener
	children  int // zones, regions, windows, queues, queue pairs and listeners
	closed    bool
}

var (
	_ hw.Polled         = (*device)(nil)
	_ hw.Sleeper        = (*device)(nil)
	_ hw.SharedReceiver = sharing{}
	_ hw.Binder         = binding{}
)

// public wraps the device in a type that implements the optional interfaces which
// its attributes promise, and no others.
func (d *device) public() hw.Device {
	shares, binds := d.attr.MaxSRQs > 0, d.attr.MaxWindows > 0
	switch {
	case shares && binds:
		return struct {
			*device
			sharing
			binding
		}{d, sharing{d}, binding{d}}
	case shares:
		return struct {
			*device
			sharing
		}{d, sharing{d}}
	case binds:
		return struct {
			*device
			binding
		}{d, binding{d}}
	}
	return d
}

// Attr implements [hw.Device].
func (d *device) Attr() hw.Attr { return d.attr }

// enlist puts an object into one of the device's tables, and returns the number by which C and
// the kernel know it.
func enlist[O any](d *device, table map[uint64]O, o O) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastKey++
	table[d.lastKey] = o
	return d.lastKey
}

// unlist undoes enlist.
func unlist[O any](d *device, table map[uint64]O, key uint64) {
	d.mu.Lock()
	delete(table, key)
	d.mu.Unlock()
}

// lookup is the object of a number in one of the device's tables, or nil.
func lookup[O any](d *device, table map[uint64]O, key C.uint64_t) O {
	d.mu.Lock()
	defer d.mu.Unlock()
	return table[uint64(key)]
}

// listed are the objects of one of the device's tables.
func listed[O any](d *device, table map[uint64]O) []O {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(table))
}

// adopt counts a new object of the device's, unless the device is closed.
func (d *device) adopt(op string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the device is closed")
	}
	d.children++
	return nil
}

// disown undoes adopt, when the object is gone.
func (d *device) disown() {
	d.mu.Lock()
	d.children--
	d.mu.Unlock()
}

// adoptIn counts a new object of the device's and as a user of its zone; the zone's disown undoes it.
func (d *device) adoptIn(op string, of hw.Zone) (*zone, error) {
	z, err := use[*zone](op, d, of, &zones)
	if err != nil {
		return nil, err
	}
	if err := d.adopt(op); err != nil {
		z.unuse()
		return nil, err
	}
	return z, nil
}

func (z *zone) disown() {
	z.unuse()
	z.dev.disown()
}

// Close implements [hw.Device]. It rejects, as the provider, the connection requests
// that the consumer has not answered. It waits for the attempts to connect that were
// given up and that the kernel is still busy with: on soft-iWARP until the peer's
// transport has answered, or for 10 s.
func (d *device) Close() error {
	if err := d.end("ibv.Close"); err != nil {
		return err
	}
	d.watcher.stop()
	d.dials.Wait()
	d.abandonRequests()
	C.gd_cm_destroy(d.sentry)
	d.sleeper.close()
	C.gd_close(d.c)
	return nil
}

// end lets nothing begin on the device any more, and waits for the answers to connection requests that are under way:
// they use identifiers of the device's.
func (d *device) end(op string) error {
	d.mu.Lock()
	closed, children := d.closed, d.children
	d.closed = closed || children == 0
	d.mu.Unlock()
	switch {
	case closed:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "closed twice")
	case children > 0:
		return hw.Errorf(op, hw.InvalidState, hw.StateIAInUse, "%d objects are open", children)
	}
	d.answers.Wait()
	return nil
}

// count is the work of the data path since the device was opened.
func (d *device) count() C.struct_gd_counters { return C.gd_count(d.c) }

// zone implements [hw.Zone].
type zone struct {
	pd *C.struct_gv_pd

	users
	pages []*farewellPage // guarded by mu
}

// NewZone implements [hw.Device].
func (d *device) NewZone() (hw.Zone, error) {
	const op = "ibv.NewZone"
	if err := d.adopt(op); err != nil {
		return nil, err
	}
	pd, errno := C.gd_alloc_pd(d.c)
	if pd == nil {
		d.disown()
		return nil, resourceError(op, hw.ResourceProtectionDomain, errno)
	}
	return &zone{users: users{dev: d}, pd: pd}, nil
}

func (z *zone) Close() error {
	const op = "ibv.Zone.Close"
	ended, err := z.close(op, &zones, func() error { return result(op, z.giveBack()) })
	if ended && err != nil {
		z.reopen()
	} else if ended {
		z.dev.disown()
	}
	return err
}

// giveBack frees what the zone has of the device's.
func (z *zone) giveBack() C.int {
	for _, p := range z.pages {
		p.unmap(z.dev)
	}
	z.pages = nil
	return C.gd_free_pd(z.pd)
}

// resourceError is the error for a resource that the device or the system has no more
// of.
func resourceError(op string, what hw.Subtype, err error) error {
	return hw.Errorf(op, hw.InsufficientResources, what, "%w", err)
}

// result is the error of a call into C that should not fail, which returned errno.
func result(op string, errno C.int) error {
	if errno == 0 {
		return nil
	}
	return internalError(op, syscall.Errno(errno))
}

// Package hw's structures have the layout of the C half's, and its constants the values: the build fails
// otherwise, since the only index of the array is 0.
var _ = [1]struct{}{}[(unsafe.Sizeof(hw.WC{})^C.sizeof_struct_gd_wc)|(unsafe.Sizeof(hw.SGE{})^C.sizeof_struct_gv_sge)|
	(unsafe.Offsetof(hw.WC{}.Status)^unsafe.Offsetof(C.struct_gd_wc{}.status))|
	(unsafe.Offsetof(hw.WC{}.CQ)^unsafe.Offsetof(C.struct_gd_wc{}.cq))|
	(unsafe.Offsetof(hw.SGE{}.LKey)^unsafe.Offsetof(C.struct_gv_sge{}.lkey))]

var _ = [1]struct{}{}[(C.GD_OP_SEND^int(hw.OpSend))|(C.GD_OP_WRITE^int(hw.OpWrite))|(C.GD_OP_READ^int(hw.OpRead))|
	(C.GD_OP_RECV^int(hw.OpRecv))|(C.GD_OP_RECV_INVALIDATE^int(hw.OpRecvInvalidate))|(C.GD_OP_BIND^int(hw.OpBind))|
	(C.GD_OP_WRITE_IMM^int(hw.OpWriteImm))|(C.GD_OP_RECV_IMM^int(hw.OpRecvImm))|
	(C.GD_OP_FETCH_ADD^int(hw.OpFetchAdd))|(C.GD_OP_COMPARE_SWAP^int(hw.OpCompareSwap))|
	(C.GD_OP_SEND_INVALIDATE^int(hw.OpSendInvalidate))|(C.GD_OP_END^int(hw.OpEnd))|
	(C.GD_WR_SIGNALED^int(hw.WRSignaled))|(C.GD_WR_SOLICITED^int(hw.WRSolicited))|(C.GD_WR_FENCE^int(hw.WRFence))|
	(C.GD_WC_SOLICITED^int(hw.WCSolicited))|(C.GD_WC_IMM^int(hw.WCImm))|(C.GD_WC_INVALIDATED^int(hw.WCInvalidated))|
	(C.GD_SUCCESS^int(hw.StatusSuccess))|(C.GD_FLUSHED^int(hw.StatusFlushed))|
	(C.GD_LOCAL_LENGTH^int(hw.StatusLocalLength))|(C.GD_LOCAL_PROTECTION^int(hw.StatusLocalProtection))]
