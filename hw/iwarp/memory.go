package iwarp

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"godat/hw"
	"godat/hw/iwarp/wire"
	"godat/internal/yield"
)

// zone is a protection zone. The device's lock guards its counts.
type zone struct {
	dev    *device
	closed bool
	users  int // queue pairs and regions
}

// NewZone makes a protection zone.
func (d *device) NewZone() (hw.Zone, error) {
	if err := d.use("iwarp.NewZone", &d.zones, maxZones, hw.ResourceProtectionDomain); err != nil {
		return nil, err
	}
	return &zone{dev: d}, nil
}

// Close fails with PZ_IN_USE while a queue pair or region uses the zone.
func (z *zone) Close() error {
	const op = "iwarp.Zone.Close"
	if z == nil {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "no zone")
	}
	z.dev.mu.Lock()
	defer z.dev.mu.Unlock()
	switch {
	case z.closed:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "the zone is closed")
	case z.users > 0:
		return hw.Errorf(op, hw.InvalidState, hw.StatePZInUse, "%d queue pairs and regions use it", z.users)
	}
	z.closed = true
	z.dev.zones--
	return nil
}

// useZone finds the device's zone behind a handle and counts one more user of it.
func (d *device) useZone(op string, h hw.Zone) (*zone, error) {
	z, ok := h.(*zone)
	if !ok || z == nil || z.dev != d {
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "not a zone of this device")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if z.closed {
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "the zone is closed")
	}
	z.users++
	return z, nil
}

// region is what a key stands for: memory, who may reach it, and how. It never
// changes; to take it out of the table is to kill it.
type region struct {
	mem  []byte
	addr uint64 // of the first byte, as requests name it
	zone *zone
	priv hw.Privileges
}

// mr is the handle of a registered region. It has a key for each side, so that a
// peer knows none that is good for local use, and can invalidate but its own.
type mr struct {
	dev        *device
	zone       *zone
	lkey, rkey uint32
	dead       atomic.Bool
}

const remote = hw.RemoteRead | hw.RemoteWrite | hw.RemoteAtomic

// Register enters mem in the device's table.
func (d *device) Register(h hw.Zone, mem []byte, priv hw.Privileges) (hw.MR, error) {
	const op = "iwarp.Register"
	if len(mem) == 0 || uint64(len(mem)) > maxMR {
		return nil, hw.Errorf(op, hw.LengthError, hw.NoSubtype, "%d bytes", len(mem))
	}
	if bad := priv &^ (hw.AllPrivileges | hw.RemoteAtomic); bad != 0 {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg3, "privileges %v", bad)
	}
	z, err := d.useZone(op, h)
	if err != nil {
		return nil, err
	}
	m := &mr{dev: d, zone: z}
	if m.lkey, err = d.enter(op, z, mem, priv&^remote); err == nil && priv&remote != 0 {
		if m.rkey, err = d.enter(op, z, mem, priv&remote); err != nil {
			d.keys.Remove(m.lkey)
		}
	}
	if err != nil {
		d.unuse(&z.users)
		return nil, err
	}
	return m, nil
}

func (d *device) enter(op string, z *zone, mem []byte, priv hw.Privileges) (uint32, error) {
	key, _, err := d.keys.Insert(func(uint32) region {
		addr := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
		return region{mem: mem, addr: addr, zone: z, priv: priv}
	})
	if err != nil {
		return 0, hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemoryRegion, "%w", err)
	}
	return key, nil
}

func (m *mr) LKey() uint32 { return m.lkey }

func (m *mr) RKey() uint32 { return m.rkey }

// Deregister takes the keys out of the table and waits until all who may have
// looked them up before have stopped or moved on.
func (m *mr) Deregister() error {
	if m == nil || !m.dead.CompareAndSwap(false, true) {
		return hw.Errorf("iwarp.Deregister", hw.InvalidHandle, hw.HandleLMR, "the region is gone")
	}
	m.dev.keys.Remove(m.lkey)
	if m.rkey != 0 {
		m.dev.keys.Remove(m.rkey)
	}
	yield.Point()
	m.dev.grace(nil)
	m.dev.unuse(&m.zone.users)
	return nil
}

// invalidate kills a remote key on a peer's behalf.
func (l *life) invalidate(key uint32) bool {
	r := l.dev.keys.Lookup(key)
	if r == nil || r.zone != l.zone || r.priv&remote == 0 || !l.dev.keys.Remove(key) {
		return false
	}
	l.dev.grace(l)
	return true
}

// busy is a connection in the middle of something, and its words at that time.
type busy struct {
	l        *life
	send, rx uint64
}

// grace waits until nothing that was in progress when it was called still is.
// A key was removed before a word is read here, and a word is written before a
// key is looked up: so what is seen idle here finds the key dead. self is a
// receiver that waits itself, and touches nothing meanwhile.
func (d *device) grace(self *life) {
	var wait []busy
	d.livesMu.Lock()
	for l := range d.lives {
		b := busy{l, l.word.Load(), l.touch.Load()}
		if b.send&held != 0 || b.rx&1 != 0 && l != self {
			wait = append(wait, b)
		}
	}
	d.livesMu.Unlock()
	for _, b := range wait {
		for spin := 0; !b.over(self); spin++ {
			if spin < 100 {
				runtime.Gosched()
			} else {
				time.Sleep(20 * time.Microsecond)
			}
		}
	}
}

// over reports whether what was in progress has ended.
func (b *busy) over(self *life) bool {
	return b.l.movedOn(b.send) && (b.l == self || b.rx&1 == 0 || b.l.touch.Load() != b.rx)
}

// reach returns the n bytes at addr, or nil if the key is dead or does not allow
// it. Whoever uses them holds the token or has said touch, and looks up again
// after a step: Deregister waits for that. n is not 0.
func (l *life) reach(addr uint64, n, key uint32, need hw.Privileges) []byte {
	r := l.dev.keys.Lookup(key)
	if r == nil || r.priv&need != need || r.zone != l.zone {
		return nil
	}
	off := addr - r.addr // far out of bounds when addr is below
	if off > uint64(len(r.mem)) || uint64(n) > uint64(len(r.mem))-off {
		return nil
	}
	return r.mem[off : off+uint64(n) : off+uint64(n)]
}

// allows reports whether all segments can be reached. Empty ones always can.
func (l *life) allows(sgl []hw.SGE, need hw.Privileges) bool {
	for i := range sgl {
		s := &sgl[i]
		if s.Len != 0 && l.reach(s.Addr, s.Len, s.LKey, need) == nil {
			return false
		}
	}
	return true
}

// remoteFault says what is wrong with a peer's reference, in RDMAP's words, or nil.
func (l *life) remoteFault(addr uint64, n, key uint32, need hw.Privileges) *wire.Error {
	r := l.dev.keys.Lookup(key)
	switch {
	case r == nil || r.priv&remote == 0:
		return wire.ErrSTag
	case r.zone != l.zone:
		return wire.ErrStream
	case r.priv&need != need:
		return wire.ErrAccess
	}
	if off := addr - r.addr; off > uint64(len(r.mem)) || uint64(n) > uint64(len(r.mem))-off {
		return wire.ErrBounds
	}
	return nil
}

// tagged says it in DDP's words, which has one for two.
func tagged(e *wire.Error) *wire.Error {
	switch e {
	case wire.ErrStream:
		return wire.ErrTaggedStream
	case wire.ErrBounds:
		return wire.ErrTaggedBounds
	}
	return wire.ErrTaggedSTag
}

// total is the sum of the segments.
func total(sgl []hw.SGE) (n uint64) {
	for i := range sgl {
		n += uint64(sgl[i].Len)
	}
	return n
}

// cursor is a place in a list of segments.
type cursor struct {
	sgl  []hw.SGE
	off  uint32 // in the first of sgl
	need hw.Privileges
}

// rest returns what is left of the segment that the cursor is in, at most n
// bytes of it and at least one; nil if it can't be reached. Bytes remain.
func (l *life) rest(c *cursor, n int) []byte {
	for c.off == c.sgl[0].Len { // empty ones too
		c.sgl, c.off = c.sgl[1:], 0
	}
	s := &c.sgl[0]
	mem := l.reach(s.Addr, s.Len, s.LKey, c.need)
	if mem == nil {
		return nil
	}
	mem = mem[c.off:]
	return mem[:min(n, len(mem))]
}
