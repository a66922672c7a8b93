package mem

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/door"
)

func TestAllocGivesZeroedMemoryOfTheAskedSizeAndAlignment(t *testing.T) {
	_, d, pz := newTestPZ(t)
	for _, size := range []int{1, 63, 4096, 4097, 3 << 20} {
		for _, align := range []int{0, 1, 64, 4096, 64 << 10, 4 << 20} {
			for _, huge := range []bool{false, true} {
				t.Run(fmt.Sprintf("size=%d/align=%d/huge=%t", size, align, huge), func(t *testing.T) {
					opts := []Option{WithAlignment(align), WithUnmapOnFree()}
					if huge {
						opts = append(opts, WithHugePages())
					}
					l := alloc(t, pz, size, hw.AllPrivileges, opts...)
					b := l.Bytes()
					require.Len(t, b, size)
					require.Equal(t, size, cap(b), "appending must not reach beyond the region")
					assert.Zero(t, addr(b)%uintptr(max(align, 64)))
					require.Equal(t, size, bytes.Count(b, []byte{0}))
					for i := range b {
						b[i] = 1
					}
					require.NoError(t, l.Free())
				})
			}
		}
	}
	ranges, mapped := mappedIn(d)
	assert.Zero(t, ranges)
	assert.Zero(t, mapped)
}

func TestARegionKnowsItself(t *testing.T) {
	dev, d, pz := newTestPZ(t)
	l := alloc(t, pz, 100, hw.LocalRead|hw.RemoteWrite)
	base := uint64(addr(l.Bytes()))
	mr := dev.find(l.RemoteContext() &^ (1 << 31))
	require.NotNil(t, mr)

	assert.Same(t, pz, l.PZ())
	assert.NotZero(t, l.Context())
	assert.Equal(t, Segment{base + 10, 20, l.Context()}, l.Segment(10, 20))
	assert.Equal(t, Segment{base, 100, l.Context()}, l.Segment(0, 100))
	assert.Zero(t, l.Segment(100, 0).Len)
	assert.Equal(t, RemoteSegment{base + 10, 20, mr.RKey()}, l.Remote(10, 20))
	assert.Equal(t, uint64(math.MaxUint64), l.Remote(10, 91).Addr)

	q, err := l.Query()
	require.NoError(t, err)
	assert.Equal(t, LMRParam{Privileges: hw.LocalRead | hw.RemoteWrite}, q)
	assert.Equal(t, mr.RKey(), l.RemoteContext())
	home, err := l.Home(door.Key{})
	require.NoError(t, err)
	assert.Equal(t, d.ia, home)

	local := alloc(t, pz, 100, hw.LocalRead|hw.LocalWrite)
	assert.Zero(t, local.RemoteContext(), "a region without a remote privilege has a remote context")
}

func TestARegistrationThatIsRefusedLeavesNothing(t *testing.T) {
	dev, d, pz := newTestPZ(t)
	dev.attr.MaxMR = 1 << 20
	d.attr = dev.attr
	gone, err := d.NewPZ()
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	buf := make([]byte, 64)
	aligned := maxAlign // a variable, because twice this constant does not fit an int of 32 bits

	cases := map[string]struct {
		make func() (*LMR, error)
		typ  hw.Type
		sub  hw.Subtype
	}{
		"length 0":               {func() (*LMR, error) { return pz.Alloc(0, 0) }, hw.LengthError, 0},
		"a negative length":      {func() (*LMR, error) { return pz.Alloc(-1, 0) }, hw.LengthError, 0},
		"more than the device":   {func() (*LMR, error) { return pz.Alloc(1<<20+1, 0) }, hw.LengthError, 0},
		"no slice":               {func() (*LMR, error) { return pz.Register(nil, 0) }, hw.LengthError, 0},
		"an empty slice":         {func() (*LMR, error) { return pz.Register(buf[:0], 0) }, hw.LengthError, 0},
		"a long slice":           {func() (*LMR, error) { return pz.Register(make([]byte, 1<<20+1), 0) }, hw.LengthError, 0},
		"an unknown privilege":   {func() (*LMR, error) { return pz.Alloc(8, 0x80) }, hw.InvalidParameter, hw.Arg2},
		"the same, registered":   {func() (*LMR, error) { return pz.Register(buf, 0x08) }, hw.InvalidParameter, hw.Arg2},
		"alignment 3":            {func() (*LMR, error) { return pz.Alloc(8, 0, WithAlignment(3)) }, hw.InvalidParameter, hw.Arg3},
		"a negative alignment":   {func() (*LMR, error) { return pz.Alloc(8, 0, WithAlignment(-8)) }, hw.InvalidParameter, hw.Arg3},
		"a huge alignment":       {func() (*LMR, error) { return pz.Alloc(8, 0, WithAlignment(2*aligned)) }, hw.InvalidParameter, hw.Arg3},
		"options for memory":     {func() (*LMR, error) { return pz.Register(buf, 0, WithHugePages()) }, hw.InvalidParameter, hw.Arg3},
		"no zone":                {func() (*LMR, error) { return (*PZ)(nil).Alloc(8, 0) }, hw.InvalidHandle, hw.HandlePZ},
		"no zone, registered":    {func() (*LMR, error) { return (*PZ)(nil).Register(buf, 0) }, hw.InvalidHandle, hw.HandlePZ},
		"closed zone":            {func() (*LMR, error) { return gone.Alloc(8, 0) }, hw.InvalidHandle, hw.HandlePZ},
		"closed zone, registers": {func() (*LMR, error) { return gone.Register(buf, 0) }, hw.InvalidHandle, hw.HandlePZ},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l, err := c.make()
			require.Nil(t, l)
			requireCode(t, err, c.typ, c.sub)
		})
	}
	requireUntouched(t, dev, d, pz)
}

// requireUntouched requires that the zone and the domain are as new.
func requireUntouched(t *testing.T, dev *fakeDevice, d *Domain, pz *PZ) {
	t.Helper()
	require.Zero(t, dev.registered())
	regions, bytes := registeredIn(d)
	require.Zero(t, regions)
	require.Zero(t, bytes)
	ranges, mapped := mappedIn(d)
	require.Zero(t, ranges)
	require.Zero(t, mapped)
	require.Zero(t, d.table.Len())
	require.NoError(t, pz.Close())
}

func TestMoreMemoryThanThereIsSaysSo(t *testing.T) {
	dev, d, pz := newTestPZ(t)
	d.attr.MaxMR = math.MaxUint64
	sizes := []int{math.MaxInt}
	if terabytes := uint64(1) << 55; bits.UintSize == 64 {
		sizes = append(sizes, int(terabytes))
	}
	for _, size := range sizes {
		_, err := pz.Alloc(size, hw.AllPrivileges)
		requireCode(t, err, hw.InsufficientResources, hw.ResourceMemory)
		assert.NotNil(t, errors.Unwrap(err))
	}
	requireUntouched(t, dev, d, pz)
}

func TestADeviceThatRefusesARegionLeavesNothing(t *testing.T) {
	ours := hw.Errorf("fake", hw.InsufficientResources, hw.ResourceMemoryRegion, "no more")
	for name, c := range map[string]struct {
		err error
		typ hw.Type
		sub hw.Subtype
	}{
		"a return code passes":       {ours, hw.InsufficientResources, hw.ResourceMemoryRegion},
		"a wrapped one too":          {fmt.Errorf("w: %w", ours), hw.InsufficientResources, hw.ResourceMemoryRegion},
		"ENOMEM is want of memory":   {syscall.ENOMEM, hw.InsufficientResources, hw.ResourceMemory},
		"EAGAIN is want of memory":   {fmt.Errorf("ibv_reg_mr: %w", syscall.EAGAIN), hw.InsufficientResources, hw.ResourceMemory},
		"anything else is a failure": {syscall.EIO, hw.InternalError, hw.NoSubtype},
	} {
		t.Run(name, func(t *testing.T) {
			dev, d, pz := newTestPZ(t)
			dev.register = c.err
			_, err := pz.Alloc(4096, hw.AllPrivileges)
			requireCode(t, err, c.typ, c.sub)
			require.ErrorIs(t, err, c.err)
			_, err = pz.Register(make([]byte, 4096), hw.AllPrivileges)
			requireCode(t, err, c.typ, c.sub)
			requireUntouched(t, dev, d, pz)
		})
	}
}

func TestTooFewContextsForTheRegionsLeavesNothingOfTheLast(t *testing.T) {
	dev := newFakeDevice()
	dev.attr.MaxMRs = 3
	d := NewDomain(door.Key{}, dev, nil)
	pz, err := d.NewPZ()
	require.NoError(t, err)
	for range 3 {
		alloc(t, pz, 64, hw.LocalRead)
	}
	for range 3 {
		_, err = pz.Alloc(64, hw.LocalRead)
		requireCode(t, err, hw.InsufficientResources, hw.ResourceMemoryRegion)
		_, err = pz.Register(make([]byte, 64), hw.LocalRead)
		requireCode(t, err, hw.InsufficientResources, hw.ResourceMemoryRegion)
	}
	assert.Equal(t, 3, dev.registered())
	regions, bytes := registeredIn(d)
	assert.Equal(t, 3, regions)
	assert.EqualValues(t, 3*64, bytes)
	ranges, _ := mappedIn(d)
	assert.Equal(t, 3, ranges)
	freeAll(d)
	require.NoError(t, d.Close())
	requireEmpty(t, dev, d)
}

func TestRegisteredMemoryIsTheCallers(t *testing.T) {
	dev, d, pz := newTestPZ(t)
	buf := make([]byte, 200)
	l, err := pz.Register(buf[50:150], hw.AllPrivileges)
	require.NoError(t, err)
	twin, err := pz.Register(buf[50:150], hw.AllPrivileges)
	require.NoError(t, err)
	assert.NotEqual(t, l.Context(), twin.Context())
	assert.Equal(t, 2, dev.registered())
	assert.Equal(t, addr(buf)+50, addr(l.Bytes()))
	l.Bytes()[0] = 7
	assert.EqualValues(t, 7, buf[50])
	ranges, _ := mappedIn(d)
	assert.Zero(t, ranges)

	require.NoError(t, l.Free())
	require.NoError(t, twin.Free())
	assert.EqualValues(t, 7, buf[50], "Free changed the caller's memory")
}

// The runtime panics if it collects a pinner before Unpin, so it is enough to
// forget regions and run the collector.
func TestAForgottenRegionIsNotCollected(t *testing.T) {
	dev := newFakeDevice()
	func() {
		d := NewDomain(door.Key{}, dev, nil)
		pz, err := d.NewPZ()
		require.NoError(t, err)
		_, err = pz.Register(make([]byte, 64), hw.AllPrivileges)
		require.NoError(t, err)
		dev.register = syscall.EIO
		_, err = pz.Register(make([]byte, 64), hw.AllPrivileges)
		require.Error(t, err)
	}()
	dev.mrs = nil
	for range 3 {
		runtime.GC()
	}
	var mine *LMR
	for _, l := range anchored.all() {
		if l.pz.domain.dev == dev {
			mine = l
		}
	}
	require.NotNil(t, mine)
	require.NoError(t, mine.pz.domain.Close())
}

func TestPZRefusesToCloseWhileInUse(t *testing.T) {
	_, d, pz := newTestPZ(t)
	l := alloc(t, pz, 64, hw.LocalRead)
	requireCode(t, pz.Close(), hw.InvalidState, hw.StatePZInUse)
	require.NoError(t, pz.Zone(door.Key{}).Use(""))
	require.NoError(t, l.Free())
	requireCode(t, pz.Close(), hw.InvalidState, hw.StatePZInUse)
	pz.zone.Unuse()
	require.Panics(t, pz.zone.Unuse)
	home, err := pz.Home(door.Key{})
	require.NoError(t, err)
	assert.Equal(t, d.ia, home)

	assert.Equal(t, 1, d.Stats().Zones)
	require.NoError(t, pz.Close())
	assert.Zero(t, d.Stats().Zones)
	require.NoError(t, pz.Close(), "closing it again does nothing")
	requireCode(t, pz.Zone(door.Key{}).Use(""), hw.InvalidHandle, hw.HandlePZ)
	_, err = pz.Home(door.Key{})
	requireCode(t, err, hw.InvalidHandle, hw.HandlePZ)
}

func TestAZoneThatTheDeviceKeepsStaysOpen(t *testing.T) {
	_, _, pz := newTestPZ(t)
	pz.zone.Device().(*fakeZone).err = hw.Errorf("fake", hw.InvalidState, hw.StatePZInUse, "a queue pair is in it")
	requireCode(t, pz.Close(), hw.InvalidState, hw.StatePZInUse)
	require.NoError(t, pz.Zone(door.Key{}).Use(""), "a zone that failed to close is closed")
	pz.zone.Unuse()
	pz.zone.Device().(*fakeZone).err = nil
	require.NoError(t, pz.Close())
}

func TestNewPZPassesTheDevicesRefusal(t *testing.T) {
	dev, d, _ := newTestPZ(t)
	dev.newZone = syscall.ENOMEM
	_, err := d.NewPZ()
	requireCode(t, err, hw.InsufficientResources, hw.ResourceProtectionDomain)
	assert.Equal(t, 1, d.Stats().Zones)
}

func TestNilObjectsAreInvalidHandles(t *testing.T) {
	var (
		d  *Domain
		pz *PZ
		l  *LMR
	)
	_, err := d.NewPZ()
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
	requireCode(t, d.Close(), hw.InvalidHandle, hw.HandleIA)
	requireCode(t, pz.Close(), hw.InvalidHandle, hw.HandlePZ)
	requireCode(t, pz.Zone(door.Key{}).Use(""), hw.InvalidHandle, hw.HandlePZ)
	_, err = pz.Home(door.Key{})
	requireCode(t, err, hw.InvalidHandle, hw.HandlePZ)
	requireCode(t, l.Free(), hw.InvalidHandle, hw.HandleLMR)
	_, err = l.Query()
	requireCode(t, err, hw.InvalidHandle, hw.HandleLMR)
	assert.Nil(t, l.Bytes())
	assert.Nil(t, l.PZ())
	assert.Nil(t, pz.Zone(door.Key{}))
	assert.Nil(t, pz.Zone(door.Key{}).Device())
	assert.Zero(t, l.Context())
	assert.Zero(t, l.RemoteContext())
	regions, _ := registeredIn(d)
	ranges, _ := mappedIn(d)
	assert.Zero(t, regions+ranges+d.Stats().Zones)
}
