package sim

import (
	"unsafe"

	"godat/hw"
)

// A local key is a number that no other region has had: the next multiple of keyStep,
// modulo 2^31, so that a key that is a little wrong is nobody's. The remote key of the
// same region has the top bit set, too, so that neither is valid as the other.
const (
	keyRemote = 1 << 31
	keyStep   = 0x9e3779b1
)

// zone implements [hw.Zone].
type zone struct {
	dev    *Device
	users  int // guarded by dev.sim.mu
	closed bool
}

// openZone finds the zone behind a handle, unless the device or the zone is closed. The
// caller holds sim.mu.
func (d *Device) openZone(op string, h hw.Zone) (*zone, error) {
	z, _ := h.(*zone)
	switch {
	case d.closed:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the device is closed")
	case z == nil || z.dev != d || z.closed:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "not an open zone of this device")
	}
	return z, nil
}

// Close implements [hw.Zone].
func (z *zone) Close() error {
	const op = "sim.Zone.Close"
	z.dev.sim.mu.Lock()
	defer z.dev.sim.mu.Unlock()
	switch {
	case z.closed:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "closed twice")
	case z.users > 0:
		return hw.Errorf(op, hw.InvalidState, hw.StatePZInUse, "%d objects use the zone", z.users)
	}
	z.closed = true
	z.dev.children--
	return nil
}

// region implements [hw.MR].
type region struct {
	// Immutable.
	dev  *Device
	zone *zone
	mem  []byte
	base uint64
	priv hw.Privileges
	key  uint32

	// Guarded by dev.sim.mu.
	dead bool
	busy int // copies under way outside the lock
}

func (m *region) LKey() uint32 { return m.key }

func (m *region) RKey() uint32 {
	if m.priv&(hw.RemoteRead|hw.RemoteWrite|hw.RemoteAtomic) == 0 {
		return 0
	}
	return m.key | keyRemote
}

// Bound implements [hw.MR]. It is always false, since the device has no windows.
func (m *region) Bound() bool { return false }

// Deregister implements [hw.MR]. The engine looks the key up again before each chunk, so
// Deregister only waits for the chunks that are being copied.
func (m *region) Deregister() error {
	s := m.dev.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.dead {
		return hw.Errorf("sim.MR.Deregister", hw.InvalidHandle, hw.HandleLMR, "deregistered twice")
	}
	m.dead = true
	delete(s.regions, m.key)
	for m.busy > 0 {
		m.dev.unbusy.Wait()
	}
	m.zone.users--
	m.dev.children--
	return nil
}

// Register implements [hw.Device].
func (d *Device) Register(in hw.Zone, mem []byte, priv hw.Privileges) (hw.MR, error) {
	const op = "sim.Register"
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	z, err := d.openZone(op, in)
	switch {
	case err != nil:
		return nil, err
	case len(mem) == 0:
		return nil, hw.Errorf(op, hw.LengthError, hw.NoSubtype, "the memory is empty")
	}
	m := &region{dev: d, zone: z, mem: mem, priv: priv}
	m.base = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	d.sim.lastKey += keyStep
	m.key = d.sim.lastKey &^ keyRemote
	d.sim.regions[m.key] = m
	z.users++
	d.children++
	return m, nil
}

// span is one side of a transfer: a list of local segments, or a remote range.
type span struct {
	dev    *Device
	zone   *zone
	need   hw.Privileges
	sgl    []hw.SGE
	remote [1]hw.SGE // with far, instead of sgl; LKey is the remote key
	far    bool      // a remote range
}

func (s *span) segments() []hw.SGE {
	if s.far {
		return s.remote[:]
	}
	return s.sgl
}

// find returns the region of a segment, or nil when the key, the zone, a privilege or
// the bounds are wrong.
func (s *span) find(e hw.SGE) *region {
	key := e.LKey
	if s.far != (key&keyRemote != 0) {
		return nil
	}
	m := s.dev.sim.regions[key&^keyRemote]
	if m == nil || m.dev != s.dev || m.zone != s.zone || s.need&^m.grants() != 0 {
		return nil
	}
	size := uint64(len(m.mem))
	if off := e.Addr - m.base; off > size || uint64(e.Len) > size-off { // an address below the base wraps to a large off
		return nil
	}
	return m
}

// grants are the region's privileges, with those that Config's gaps imply.
func (m *region) grants() hw.Privileges {
	p, cfg := m.priv, &m.dev.sim.cfg
	if cfg.ImpliedLocalRead {
		p |= hw.LocalRead
	}
	if cfg.ImpliedLocalWrite && p&hw.RemoteWrite != 0 {
		p |= hw.LocalWrite
	}
	return p
}

// check reports whether the transfer may access the first n bytes of the span.
func (s *span) check(n uint64) bool {
	for _, e := range s.segments() {
		if n == 0 {
			break
		}
		if e.Len == 0 {
			continue
		}
		if s.find(e) == nil {
			return false
		}
		n -= min(n, uint64(e.Len))
	}
	return true
}

// at returns the memory from byte off of the span to the end of that segment, with its
// region; nil when the region is not valid any more.
func (s *span) at(off uint64) ([]byte, *region) {
	for _, e := range s.segments() {
		if off >= uint64(e.Len) {
			off -= uint64(e.Len)
			continue
		}
		m := s.find(e)
		if m == nil {
			return nil, nil
		}
		begin := e.Addr - m.base
		return m.mem[begin+off : begin+uint64(e.Len)], m
	}
	return nil, nil
}

// total is the length of a segment list in bytes.
func total(sgl []hw.SGE) (n uint64) {
	for _, e := range sgl {
		n += uint64(e.Len)
	}
	return n
}
