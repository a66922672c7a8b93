package soft

import (
	"sync"
	"unsafe"

	"godat/hw"
	"godat/internal/yield"
)

// Remote is the set of the privileges that peers can have.
const Remote = hw.RemoteRead | hw.RemoteWrite | hw.RemoteAtomic

// steady marks, beside its privileges, a key whose memory nobody changes while requests
// read it; see [hw.Remapper].
const steady hw.Privileges = 1 << 7

// scratch marks a key whose memory may hold anything behind what was written to it; see
// [hw.Remapper].
const scratch hw.Privileges = 1 << 3

// Zone is a protection zone. The device's lock guards its counts.
type Zone struct {
	dev    *Device
	closed bool
	users  int // queue pairs, regions, shared queues and windows

	presentMu sync.Mutex // a leaf; guards the rest
	present   []*Presence
	looks     uint64
}

// NewZone makes a protection zone.
func (d *Device) NewZone() (hw.Zone, error) {
	if err := d.Use("NewZone", Zones); err != nil {
		return nil, err
	}
	return &Zone{dev: d}, nil
}

// Close fails with PZ_IN_USE while anything uses the zone.
func (z *Zone) Close() error {
	if z == nil {
		return hw.Errorf("Zone.Close", hw.InvalidHandle, hw.HandlePZ, "no zone")
	}
	const op = "Zone.Close"
	d := z.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case z.closed:
		return d.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "the zone is closed")
	case z.users > 0:
		return d.Errorf(op, hw.InvalidState, hw.StatePZInUse, "%d queue pairs and regions use it", z.users)
	}
	z.closed = true
	d.counts[Zones]--
	return nil
}

// UseZone finds the device's zone behind a handle and counts one more user of it.
func (d *Device) UseZone(op string, h hw.Zone) (*Zone, error) {
	z, ok := h.(*Zone)
	if !ok || z == nil || z.dev != d {
		return nil, d.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "not a zone of this device")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if z.closed {
		return nil, d.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "the zone is closed")
	}
	z.users++
	return z, nil
}

// Unuse counts one user less.
func (z *Zone) Unuse() {
	z.dev.mu.Lock()
	z.users--
	z.dev.mu.Unlock()
}

// MR is the handle of a registered region.
type MR struct {
	// Immutable.
	dev        *Device
	zone       *Zone
	lkey, rkey uint32
	priv       hw.Privileges

	// The device's bindMu guards these.
	dead  bool
	bound int // number of windows bound to the region
}

// Register enters mem in the device's table.
func (d *Device) Register(h hw.Zone, mem []byte, priv hw.Privileges) (hw.MR, error) {
	const op = "Register"
	if len(mem) == 0 || uint64(len(mem)) > d.cfg.Attr.MaxMR {
		return nil, d.Errorf(op, hw.LengthError, hw.NoSubtype, "%d bytes", len(mem))
	}
	if bad := priv &^ (hw.AllPrivileges | hw.RemoteAtomic); bad != 0 {
		return nil, d.Errorf(op, hw.InvalidParameter, hw.Arg3, "privileges %v", bad)
	}
	z, err := d.UseZone(op, h)
	if err != nil {
		return nil, err
	}
	m := &MR{dev: d, zone: z, priv: priv}
	local := priv
	if d.cfg.Split {
		local &^= Remote
	}
	m.lkey, err = d.enter(z, mem, local)
	switch {
	case err != nil || priv&Remote == 0:
	case !d.cfg.Split:
		m.rkey = m.lkey
	default:
		if m.rkey, err = d.enter(z, mem, priv&Remote); err != nil {
			d.Keys.remove(m.lkey)
		}
	}
	if err != nil {
		z.Unuse()
		return nil, d.Errorf(op, hw.InsufficientResources, hw.ResourceMemoryRegion, "%w", err)
	}
	return m, nil
}

func (d *Device) enter(z *Zone, mem []byte, priv hw.Privileges) (key uint32, err error) {
	base := unsafe.Pointer(unsafe.SliceData(mem))
	return d.Keys.insert(Region{Base: base, Size: uint64(len(mem)), Addr: uint64(uintptr(base)), Zone: z, Priv: priv})
}

// LKey is the key by which local segments name the region.
func (m *MR) LKey() uint32 { return m.lkey }

// RKey is the key by which a peer names the region.
func (m *MR) RKey() uint32 { return m.rkey }

// Bound reports whether a window is bound to the region.
func (m *MR) Bound() bool {
	m.dev.bindMu.Lock()
	defer m.dev.bindMu.Unlock()
	return m.bound > 0
}

// Deregister takes the keys out of the table and waits until every goroutine that may
// have looked them up before has stopped or moved on. It fails with LMR_IN_USE while
// a window is bound to the region.
func (m *MR) Deregister() error {
	const op = "Deregister"
	if m == nil {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleLMR, "no region")
	}
	d := m.dev
	d.bindMu.Lock()
	err := m.check(op)
	m.dead = m.dead || err == nil
	d.bindMu.Unlock()
	if err != nil {
		return err
	}
	d.Keys.remove(m.lkey)
	if d.cfg.Split && m.rkey != 0 {
		d.Keys.remove(m.rkey)
	}
	yield.Point()
	m.zone.Await()
	m.zone.Unuse()
	return nil
}

// check returns an error if the region is gone or a window is bound to it. The lock is held.
func (m *MR) check(op string) error {
	switch {
	case m.dead:
		return m.dev.Errorf(op, hw.InvalidHandle, hw.HandleLMR, "the region is gone")
	case m.bound > 0:
		return m.dev.Errorf(op, hw.InvalidState, hw.StateLMRInUse, "%d windows are bound to it", m.bound)
	}
	return nil
}

// Remap exchanges the region's memory; see [hw.Remapper]. It holds bindMu, so that no
// Deregister takes the keys out of the table, for others to get them, in between.
func (m *MR) Remap(mem []byte) error {
	const op = "Remap"
	d := m.dev
	if len(mem) == 0 || uint64(len(mem)) > d.cfg.Attr.MaxMR {
		return d.Errorf(op, hw.LengthError, hw.NoSubtype, "%d bytes", len(mem))
	}
	d.bindMu.Lock()
	defer d.bindMu.Unlock()
	if err := m.check(op); err != nil {
		return err
	}
	var mark hw.Privileges
	switch {
	case m.priv == hw.LocalRead:
		mark = steady
	case m.priv&Remote == hw.RemoteWrite:
		mark = scratch
	}
	d.Keys.remap(m.lkey, mem, mark)
	if d.cfg.Split && m.rkey != 0 {
		d.Keys.remap(m.rkey, mem, mark)
	}
	return nil
}

// Settle waits for the accesses in progress in the region's zone. No window reaches the
// region: Remap, which the caller has called before, refuses one that is bound.
func (m *MR) Settle() {
	yield.Point()
	m.zone.Await()
}

// Invalidate invalidates a remote key on a peer's behalf, and reports whether the key
// is of the queue pair's zone or scope. It unbinds a window, and takes the remote
// privileges from a region's key. It does not wait: the caller waits for the accesses in
// progress in the queue pair's zone.
func (d *Device) Invalidate(q *QP, key uint32) bool {
	d.bindMu.Lock()
	defer d.bindMu.Unlock()
	r := d.Keys.Lookup(key)
	if r.Priv&Remote == 0 || r.Zone != q.Zone && r.Zone != &q.Scope {
		return false
	}
	if w := r.window; w != nil {
		w.kill()
		w.release() // Deregister of the region waits, too
		return true
	}
	return d.Keys.restrict(key, Remote)
}
