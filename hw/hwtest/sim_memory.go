package hwtest

import (
	"unsafe"

	"godat/hw"
)

// simRegions is the table of registered regions of a Sim. A key is
// index<<8 | generation; a remote key has the top bit set too, so that the one
// is never good for the other.
type simRegions struct {
	entries []simEntry
	free    []uint32 // indexes, first in first out
}

type simEntry struct {
	mr  *simMR
	gen uint8
}

const (
	simRemoteKey   = 1 << 31
	simGeneration  = 0xff
	simIndexShift  = 8
	simIndexesKept = 32 // freed indexes that rest before the oldest is used again
)

func (t *simRegions) insert(mr *simMR) (key uint32) {
	var i uint32
	if len(t.free) > simIndexesKept {
		i, t.free = t.free[0], t.free[1:]
	} else {
		i = uint32(max(len(t.entries), 1)) // index 0 is never used
		t.entries = append(t.entries, make([]simEntry, int(i)+1-len(t.entries))...)
	}
	e := &t.entries[i]
	e.gen++
	e.mr = mr
	return i<<simIndexShift | uint32(e.gen)
}

func (t *simRegions) lookup(key uint32) *simMR {
	i := key >> simIndexShift
	if uint64(i) >= uint64(len(t.entries)) || uint32(t.entries[i].gen) != key&simGeneration {
		return nil
	}
	return t.entries[i].mr
}

func (t *simRegions) remove(key uint32) {
	i := key >> simIndexShift
	t.entries[i].mr = nil
	t.free = append(t.free, i)
}

// simZone is a protection zone.
type simZone struct {
	dev    *SimDevice
	users  int // guarded by dev.sim.mu
	closed bool
}

// Close implements [hw.Zone].
func (z *simZone) Close() error {
	const op = "sim.Zone.Close"
	z.dev.sim.mu.Lock()
	defer z.dev.sim.mu.Unlock()
	switch {
	case z.closed:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "closed twice")
	case z.users > 0:
		return hw.Errorf(op, hw.InvalidState, hw.StatePZInUse, "%d users", z.users)
	}
	z.closed = true
	z.dev.children--
	return nil
}

// simMR is a registered region.
type simMR struct {
	// Immutable.
	dev  *SimDevice
	zone *simZone
	mem  []byte
	base uint64
	priv hw.Privileges
	key  uint32

	// Guarded by dev.sim.mu.
	dead bool
	busy int // copies under way outside the lock
}

func (m *simMR) LKey() uint32 { return m.key }

func (m *simMR) RKey() uint32 {
	if m.priv&(hw.RemoteRead|hw.RemoteWrite|hw.RemoteAtomic) == 0 {
		return 0
	}
	return m.key | simRemoteKey
}

// Deregister implements [hw.MR]: the engine looks the key up again before each
// chunk, so what is left to wait for is the chunk being copied.
func (m *simMR) Deregister() error {
	s := m.dev.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.dead {
		return hw.Errorf("sim.MR.Deregister", hw.InvalidHandle, hw.HandleLMR, "deregistered twice")
	}
	m.dead = true
	s.regions.remove(m.key)
	for m.busy > 0 {
		m.dev.unbusy.Wait()
	}
	m.zone.users--
	m.dev.children--
	return nil
}

// Register implements [hw.Device].
func (d *SimDevice) Register(zone hw.Zone, mem []byte, priv hw.Privileges) (hw.MR, error) {
	const op = "sim.Register"
	z, _ := zone.(*simZone)
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	switch {
	case d.closed:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the device is closed")
	case z == nil || z.dev != d || z.closed:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "not an open zone of this device")
	case len(mem) == 0:
		return nil, hw.Errorf(op, hw.LengthError, hw.NoSubtype, "no memory")
	}
	m := &simMR{dev: d, zone: z, mem: mem, priv: priv}
	m.base = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	m.key = d.sim.regions.insert(m)
	z.users++
	d.children++
	return m, nil
}

// simSpan is one side of a transfer: local segments, or a range of the peer's.
type simSpan struct {
	dev    *SimDevice
	zone   *simZone
	need   hw.Privileges
	sgl    []hw.SGE
	remote [1]hw.SGE // used instead of sgl; LKey is the remote key
	far    bool
}

func (s *simSpan) segments() []hw.SGE {
	if s.far {
		return s.remote[:]
	}
	return s.sgl
}

// find looks one segment up: key, zone, privilege and bounds.
func (s *simSpan) find(e hw.SGE) *simMR {
	key := e.LKey
	if s.far != (key&simRemoteKey != 0) {
		return nil
	}
	m := s.dev.sim.regions.lookup(key &^ simRemoteKey)
	if m == nil || m.dev != s.dev || m.zone != s.zone || s.need&^m.grants() != 0 {
		return nil
	}
	size := uint64(len(m.mem))
	if off := e.Addr - m.base; off > size || uint64(e.Len) > size-off { // below the base is far above
		return nil
	}
	return m
}

// grants are the privileges with what the device's gaps imply.
func (m *simMR) grants() hw.Privileges {
	p, gaps := m.priv, m.dev.sim.cfg.Gaps
	if gaps&ImpliedLocalRead != 0 {
		p |= hw.LocalRead
	}
	if gaps&ImpliedLocalWrite != 0 && p&hw.RemoteWrite != 0 {
		p |= hw.LocalWrite
	}
	return p
}

// check reports whether the first n bytes may be touched.
func (s *simSpan) check(n uint64) bool {
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

// at returns the memory that begins at byte off of the span, as far as it is
// in one piece; nil when its region has gone.
func (s *simSpan) at(off uint64) ([]byte, *simMR) {
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

// total is the length of a segment list.
func total(sgl []hw.SGE) (n uint64) {
	for _, e := range sgl {
		n += uint64(e.Len)
	}
	return n
}
