//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"godat/hw"
)

// region implements [hw.MR].
type region struct {
	dev  *device
	zone *zone
	c    *C.struct_gv_mr
	lkey uint32
	rkey uint32 // 0: peers may do nothing

	mu   sync.Mutex
	dead bool
}

// LKey implements [hw.MR].
func (r *region) LKey() uint32 { return r.lkey }

// RKey implements [hw.MR].
func (r *region) RKey() uint32 { return r.rkey }

// Bound implements [hw.MR]. It is always false: verbs don't tell whether a window is
// bound to a region, and a device refuses to deregister a region that has one.
func (r *region) Bound() bool { return false }

// accessFlags translates privileges into verbs' access flags. Verbs demand that the
// owner may write what a peer may write, and let any request that has the key read.
func (d *device) accessFlags(priv hw.Privileges) (f C.uint32_t) {
	for _, p := range [...]struct {
		priv hw.Privileges
		flag C.uint32_t
	}{
		{hw.LocalWrite, C.GV_ACCESS_LOCAL_WRITE},
		{hw.RemoteWrite, C.GV_ACCESS_REMOTE_WRITE | C.GV_ACCESS_LOCAL_WRITE},
		{hw.RemoteRead, C.GV_ACCESS_REMOTE_READ},
		{hw.RemoteAtomic, C.GV_ACCESS_REMOTE_ATOMIC | C.GV_ACCESS_LOCAL_WRITE},
	} {
		if priv&p.priv != 0 {
			f |= p.flag
		}
	}
	if d.params.relaxed {
		f |= C.GV_ACCESS_RELAXED_ORDERING
	}
	if d.attr.MaxWindows > 0 {
		f |= C.GV_ACCESS_MW_BIND
	}
	return f
}

// Register implements [hw.Device].
func (d *device) Register(z hw.Zone, mem []byte, priv hw.Privileges) (hw.MR, error) {
	const op = "ibv.Register"
	if len(mem) == 0 {
		return nil, hw.Errorf(op, hw.LengthError, hw.NoSubtype, "the memory is empty")
	}
	if priv&hw.RemoteAtomic != 0 && !d.attr.Ops.Has(hw.OpFetchAdd) {
		return nil, hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "%s has no atomics", d.name)
	}
	own, err := d.adoptIn(op, z)
	if err != nil {
		return nil, err
	}
	// The address is passed as a number, since the library keeps it and C may not keep
	// a Go pointer. The memory does not move: it is pinned, or is no Go memory at all.
	addr := C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	mr, errno := C.gd_register(d.c, own.pd, addr, C.uint64_t(len(mem)), d.accessFlags(priv))
	if mr == nil {
		own.disown()
		return nil, registerError(op, len(mem), errno)
	}
	r := &region{dev: d, zone: own, c: mr, lkey: uint32(mr.lkey)}
	if priv&(hw.RemoteRead|hw.RemoteWrite|hw.RemoteAtomic) != 0 {
		r.rkey = uint32(mr.rkey)
	}
	return r, nil
}

// registerError is the error of a registration that the device or the kernel refused.
// It says which limit to raise when locked memory may have run out.
func registerError(op string, n int, err error) error {
	if !errors.Is(err, syscall.ENOMEM) && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EPERM) {
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemoryRegion, "%d bytes: %w", n, err)
	}
	return hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemoryRegion, "%d bytes: %w%s", n, err, lockedAdvice())
}

func lockedAdvice() string {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim) != nil || lim.Cur == unix.RLIM_INFINITY {
		return ""
	}
	return fmt.Sprintf("; the limit on locked memory is %d bytes: raise it (ulimit -l, LimitMEMLOCK= of a service, memlock in limits.conf)", lim.Cur)
}

// Deregister implements [hw.MR]. When it returns, the device no longer accesses the
// region, and no post copies from it. On soft-iWARP it ends each connection with an
// outstanding request that names the region.
func (r *region) Deregister() error {
	const op = "ibv.MR.Deregister"
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleLMR, "deregistered twice")
	}
	switch errno := syscall.Errno(C.gd_deregister(r.dev.c, r.c)); errno {
	case 0:
	case syscall.EINVAL, syscall.EBUSY:
		return hw.Errorf(op, hw.InvalidState, hw.StateLMRInUse, "%w", errno)
	default:
		return internalError(op, errno)
	}
	r.dead = true
	if r.dev.siw {
		r.dev.stopUsing(r.lkey)
	}
	r.zone.disown()
	return nil
}

// stopUsing makes soft-iWARP stop accessing a region that is gone. Soft-iWARP checks
// the region of a local request when the request begins, and moves the rest of the
// data without another check; only the end of the connection stops it. For data that
// peers send and write it checks the region again for each piece, and
// gd_settle_copies waits for a piece that is being copied.
func (d *device) stopUsing(lkey uint32) {
	all := listed(d, d.qps)
	for _, q := range all {
		q.mu.Lock()
		hit, life := !q.closed && q.at() != phaseNew && bool(C.gd_blame(q.c, C.uint32_t(lkey))), q.life
		q.mu.Unlock()
		if hit {
			q.lost(life, hw.ReasonBroken, localCause("a region that an outstanding request uses was deregistered", hw.StatusLocalProtection.Err()))
		}
	}
	if len(all) > 0 {
		C.gd_settle_copies()
	}
}
