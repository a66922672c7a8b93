//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"sync"

	"godat/hw"
)

// binding implements [hw.Binder] for a device with memory windows.
type binding struct{ dev *device }

// window implements [hw.Window]. A window of one queue pair is a type 2 window of verbs,
// a window of a zone a type 1 window.
type window struct {
	dev  *device
	zone *zone
	qp   *queuePair // nil: any queue pair of the zone
	c    *C.struct_gv_mw

	mu     sync.Mutex
	key    uint32 // the key of the last bind, or the one that Forget skipped
	closed bool
}

// NewWindow implements [hw.Binder].
func (b binding) NewWindow(z hw.Zone, qp hw.QP) (hw.Window, error) {
	const op = "ibv.NewWindow"
	d := b.dev
	own, err := d.adoptIn(op, z)
	if err != nil {
		return nil, err
	}
	q, err := d.ownQP(op, qp)
	if err != nil {
		own.disown()
		return nil, err
	}
	c, errno := C.gd_new_window(own.pd, q != nil)
	if c == nil {
		own.disown()
		return nil, resourceError(op, hw.ResourceMemoryRegion, errno)
	}
	return &window{dev: d, zone: own, qp: q, c: c, key: uint32(c.rkey)}, nil
}

// ownQP finds this device's queue pair behind qp and its wrappers; nil stays nil.
func (d *device) ownQP(op string, qp hw.QP) (*queuePair, error) {
	for qp != nil {
		if q, ok := qp.(*queuePair); ok && q.dev == d {
			return q, nil
		}
		u, ok := qp.(interface{ Unwrap() hw.QP })
		if !ok {
			return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleEP, "not a queue pair of this device")
		}
		qp = u.Unwrap()
	}
	return nil, nil
}

// keyVariant is the part of a window's key that changes with each bind.
const keyVariant = 0xff

func (w *window) NextKey() uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next()
}

func (w *window) next() uint32 { return w.key&^keyVariant | (w.key+1)&keyVariant }

func (w *window) Forget(key uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if key == w.next() {
		w.key = key
	}
}

// Bound implements [hw.Window]. It is always true: verbs don't tell when a peer
// invalidates a window.
func (w *window) Bound() bool { return true }

func (w *window) Close() error {
	const op = "ibv.Window.Close"
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleRMR, "closed twice")
	}
	if err := result(op, C.gd_close_window(w.c)); err != nil {
		return err
	}
	w.closed = true
	w.zone.disown()
	return nil
}

// fillBind writes the window, the region, the range and the key of a bind into its
// slot.
func (q *queuePair) fillBind(s *C.struct_gd_slot, b *hw.Bind) error {
	if b == nil {
		return hw.Errorf(opPostSend, hw.InvalidParameter, hw.Arg1, "the request has no Bind")
	}
	w, _ := b.Window.(*window)
	mr, _ := b.MR.(*region)
	switch {
	case w == nil || w.dev != q.dev || w.qp != nil && w.qp != q:
		return hw.Errorf(opPostSend, hw.InvalidHandle, hw.HandleRMR, "not a window of this queue pair")
	case mr == nil && b.Len > 0:
		return hw.Errorf(opPostSend, hw.InvalidHandle, hw.HandleLMR, "not a region of this device")
	case b.ZeroBased:
		return hw.Errorf(opPostSend, hw.ModelNotSupported, hw.NoSubtype, "the device addresses windows by their regions' addresses, not from zero")
	}
	w.mu.Lock()
	w.key = b.Key
	w.mu.Unlock()
	s.mw, s.bind_key = w.c, C.uint32_t(b.Key)
	s.raddr, s.operand = C.uint64_t(b.Addr), C.uint64_t(b.Len)
	s.bind_mr, s.bind_access = nil, q.dev.accessFlags(b.Priv)&^(C.GV_ACCESS_LOCAL_WRITE|C.GV_ACCESS_MW_BIND)
	if mr != nil {
		s.bind_mr = mr.c
	}
	return nil
}
