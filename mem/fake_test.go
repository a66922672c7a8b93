package mem

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/hw"
	"godat/internal/door"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeDevice registers memory and nothing else. It counts its zones and regions, so
// that tests can compare its counts with the domain's.
type fakeDevice struct {
	hw.Device // nil: a call of any other method panics

	attr hw.Attr

	mu       sync.Mutex
	zones    int
	mrs      map[*fakeMR]bool
	lastKey  uint32
	register error // the error of the next Register
	newZone  error
}

func newFakeDevice() *fakeDevice {
	return &fakeDevice{
		attr: hw.Attr{Provider: "fake", MaxMRs: 1000, MaxMR: 1 << 40, MaxZones: math.MaxInt32},
		mrs:  make(map[*fakeMR]bool),
	}
}

func (d *fakeDevice) Attr() hw.Attr { return d.attr }

func (d *fakeDevice) NewZone() (hw.Zone, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.newZone; err != nil {
		return nil, err
	}
	d.zones++
	return &fakeZone{dev: d}, nil
}

func (d *fakeDevice) Register(zone hw.Zone, mem []byte, priv hw.Privileges) (hw.MR, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.register; err != nil {
		return nil, err
	}
	d.lastKey += 17
	mr := &fakeMR{dev: d, mem: mem, priv: priv, key: d.lastKey}
	d.mrs[mr] = true
	return mr, nil
}

func (d *fakeDevice) find(lkey uint32) *fakeMR {
	d.mu.Lock()
	defer d.mu.Unlock()
	for mr := range d.mrs {
		if mr.key == lkey {
			return mr
		}
	}
	return nil
}

func (d *fakeDevice) registered() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.mrs)
}

type fakeZone struct {
	dev *fakeDevice
	err error
}

func (z *fakeZone) Close() error {
	z.dev.mu.Lock()
	defer z.dev.mu.Unlock()
	if z.err == nil {
		z.dev.zones--
	}
	return z.err
}

// fakeMR is a region that a test can copy into as a device does: the copy holds
// busy for one chunk at a time, and Deregister waits for it.
type fakeMR struct {
	dev  *fakeDevice
	mem  []byte
	priv hw.Privileges
	key  uint32
	busy sync.Mutex
	dead atomic.Bool
	err  error
}

func (m *fakeMR) LKey() uint32 { return m.key }
func (m *fakeMR) RKey() uint32 { return m.key | 1<<31 }
func (m *fakeMR) Bound() bool  { return false }

func (m *fakeMR) Deregister() error {
	if m.err != nil {
		return m.err
	}
	m.dead.Store(true)
	m.busy.Lock()
	defer m.busy.Unlock()
	m.dev.mu.Lock()
	defer m.dev.mu.Unlock()
	delete(m.dev.mrs, m)
	return nil
}

// write is a device's copy into the region, chunk by chunk; it reports whether the
// region was registered until the end.
func (m *fakeMR) write(v byte, chunk int) bool {
	for off := 0; off < len(m.mem); off += chunk {
		m.busy.Lock()
		if m.dead.Load() {
			m.busy.Unlock()
			return false
		}
		for i := off; i < min(off+chunk, len(m.mem)); i++ {
			m.mem[i] = v // a loop, so that the race detector sees every store
		}
		m.busy.Unlock()
	}
	return true
}

func newTestPZ(t testing.TB) (*fakeDevice, *Domain, *PZ) {
	t.Helper()
	dev := newFakeDevice()
	d := NewDomain(door.Key{}, dev, dev)
	pz, err := d.NewPZ()
	require.NoError(t, err)
	t.Cleanup(func() {
		freeAll(d)
		require.NoError(t, d.Close())
		requireEmpty(t, dev, d)
	})
	return dev, d, pz
}

// freeAll frees the regions that a test made. Windows may be bound to some, which the
// domain's close ends.
func freeAll(d *Domain) {
	for _, l := range d.lmrs.all() {
		if l.owner == nil {
			_ = l.Free()
		}
	}
}

func requireEmpty(t testing.TB, dev *fakeDevice, d *Domain) {
	t.Helper()
	regions, bytes := registeredIn(d)
	require.Zero(t, regions)
	require.Zero(t, bytes)
	ranges, mapped := mappedIn(d)
	require.Zero(t, ranges)
	require.Zero(t, mapped)
	require.Zero(t, d.Stats().Zones)
	require.Zero(t, dev.registered())
	require.Zero(t, dev.zones)
	for l := range anchored.has {
		require.NotSame(t, d, l.pz.domain, "a region of this domain is kept")
	}
}

// registeredIn returns the number of a domain's regions and their bytes, mappedIn
// that of its mapped ranges and their bytes.
func registeredIn(d *Domain) (regions int, bytes int64) {
	s := d.Stats()
	return s.Regions, s.Bytes
}

func mappedIn(d *Domain) (ranges int, bytes int64) {
	s := d.Stats()
	return s.Mapped, s.MappedBytes
}

// resolve checks segments as a post of the zone does.
func resolve(p *PZ, dst []hw.SGE, segs []Segment, need hw.Privileges) (uint64, *hw.Error) {
	for i, s := range segs {
		dst[i] = hw.SGE{Addr: s.Addr, Len: s.Len, LKey: s.Context}
	}
	return p.Zone(door.Key{}).Resolve(dst[:len(segs)], need)
}

func alloc(t testing.TB, pz *PZ, size int, priv hw.Privileges, opts ...Option) *LMR {
	t.Helper()
	l, err := pz.Alloc(size, priv, opts...)
	require.NoError(t, err)
	return l
}

func requireCode(t testing.TB, err error, typ hw.Type, sub hw.Subtype) {
	t.Helper()
	var code *hw.Error
	require.ErrorAs(t, err, &code)
	require.Equal(t, typ, code.Type, "%v", err)
	require.Equal(t, sub, code.Sub, "%v", err)
}

func addr(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
