//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"godat/hw"
)

// region implements [hw.MR].
type region struct {
	dev    *device
	zone   *zone
	c      *C.struct_gv_mr
	lkey   uint32
	rkey   uint32
	remote bool

	mu   sync.Mutex
	dead bool
}

// LKey implements [hw.MR].
func (r *region) LKey() uint32 { return r.lkey }

// RKey implements [hw.MR].
func (r *region) RKey() uint32 {
	if !r.remote {
		return 0
	}
	return r.rkey
}

// Bound implements [hw.MR]. Only the device's refusal to deregister tells.
func (r *region) Bound() bool { return false }

const remotePrivileges = hw.RemoteRead | hw.RemoteWrite | hw.RemoteAtomic

// accessFlags are verbs' word for privileges. There what a peer may write the
// owner may write too, and anybody may read who has the key.
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
	if d.attr.MaxWindows > 0 {
		f |= C.GV_ACCESS_MW_BIND
	}
	return f
}

// Register implements [hw.Device].
func (d *device) Register(z hw.Zone, mem []byte, priv hw.Privileges) (hw.MR, error) {
	const op = "ibv.Register"
	if len(mem) == 0 {
		return nil, hw.Errorf(op, hw.LengthError, hw.NoSubtype, "no memory")
	}
	if priv&hw.RemoteAtomic != 0 && !d.attr.Ops.Has(hw.OpFetchAdd) {
		return nil, hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "%s has no atomics", d.name)
	}
	own, err := d.useZone(op, z)
	if err != nil {
		return nil, err
	}
	if err := d.adopt(op); err != nil {
		own.unuse()
		return nil, err
	}
	// The address goes as a number: the memory is pinned or no Go memory at all,
	// and the library keeps the address.
	addr := C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	mr, errno := C.gd_register(d.c, own.pd, addr, C.uint64_t(len(mem)), d.accessFlags(priv))
	if mr == nil {
		d.disown()
		own.unuse()
		return nil, registerError(op, len(mem), errno)
	}
	return &region{dev: d, zone: own, c: mr, lkey: uint32(mr.lkey), rkey: uint32(mr.rkey), remote: priv&remotePrivileges != 0}, nil
}

// registerError says what to raise when locked memory ran out.
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

// Deregister implements [hw.MR]. The device stops before it returns, and so does a
// post that copies from the region. On soft-iWARP a connection ends that has a request
// outstanding which names the region.
func (r *region) Deregister() error {
	const op = "ibv.MR.Deregister"
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleLMR, "deregistered twice")
	}
	if errno := C.gd_deregister(r.dev.c, r.c); errno != 0 {
		if syscall.Errno(errno) == syscall.EINVAL || syscall.Errno(errno) == syscall.EBUSY {
			return hw.Errorf(op, hw.InvalidState, hw.StateLMRInUse, "%w", syscall.Errno(errno))
		}
		return internalError(op, syscall.Errno(errno))
	}
	r.dead = true
	if r.dev.siw {
		r.dev.stopUsing(r.lkey)
	}
	r.zone.unuse()
	r.dev.disown()
	return nil
}

// stopUsing has soft-iWARP stop what it is doing with a region that is gone. It looks
// at a region when a request begins, and then moves the rest of the data when it
// comes; only the end of the connection stops it. Of what peers send and write it
// looks at the region for each piece, and a piece on its way is waited for.
func (d *device) stopUsing(lkey uint32) {
	d.mu.Lock()
	all := slices.Collect(maps.Values(d.qps))
	d.mu.Unlock()
	for _, q := range all {
		q.mu.Lock()
		hit, life := !q.closed && q.at() != phaseNew && C.gd_blame(q.c, C.uint32_t(lkey)) != 0, q.life
		q.mu.Unlock()
		if hit {
			q.lost(life, hw.ReasonBroken, localCause("a region was freed that a request uses", hw.StatusLocalProtection.Err()))
		}
	}
	if len(all) > 0 {
		C.gd_settle_copies()
	}
}
