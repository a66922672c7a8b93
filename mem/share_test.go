package mem

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestARegionOfARegionHasItsMemoryAndRightsOfItsOwn(t *testing.T) {
	dev, d := openLoop(t)
	pz, err := d.NewPZ()
	require.NoError(t, err)
	other, err := d.NewPZ()
	require.NoError(t, err)
	alloc, err := pz.Alloc(4096, hw.AllPrivileges)
	require.NoError(t, err)
	callers, err := pz.Register(make([]byte, 64), hw.LocalRead)
	require.NoError(t, err)
	for name, from := range map[string]*LMR{"allocated": alloc, "the caller's": callers} {
		l, err := other.RegisterLMR(from, hw.LocalWrite)
		require.NoError(t, err, name)
		assert.Same(t, unsafe.SliceData(from.Bytes()), unsafe.SliceData(l.Bytes()))
		assert.NotEqual(t, from.Context(), l.Context())
		q, err := l.Query()
		require.NoError(t, err)
		assert.Equal(t, LMRParam{From: from, Privileges: 0x10}, q)
		assert.Same(t, other, l.PZ())
		var sge [1]hw.SGE
		_, refusal := resolve(other, sge[:], []Segment{l.Segment(0, 8)}, hw.LocalWrite)
		assert.Nil(t, refusal)
		_, refusal = resolve(other, sge[:], []Segment{l.Segment(0, 8)}, hw.LocalRead)
		assert.ErrorIs(t, refusal, hw.ErrPrivileges, "the right to read is the other region's")
		_, refusal = resolve(pz, sge[:], []Segment{l.Segment(0, 8)}, hw.LocalWrite)
		assert.ErrorIs(t, refusal, hw.ErrProtection, "it is of another zone")

		l.Bytes()[5] = 'x'
		require.NoError(t, from.Free())
		assert.EqualValues(t, 'x', l.Bytes()[5], "the memory outlives the first region")
		_, err = other.RegisterLMR(from, hw.LocalWrite)
		assert.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: 13}, "a freed region")
		require.NoError(t, l.Free())
	}
	regions, bytes := registeredIn(d)
	assert.Zero(t, regions)
	assert.Zero(t, bytes)
	require.NoError(t, pz.Close())
	require.NoError(t, other.Close())
	require.NoError(t, d.Close())
	ranges, _ := mappedIn(d)
	assert.Zero(t, ranges)
	require.NoError(t, dev.Close())
}

func TestMemoryThatIsUnmappedOnFreeStaysForTheLastRegion(t *testing.T) {
	dev, d := openLoop(t)
	pz, err := d.NewPZ()
	require.NoError(t, err)
	from, err := pz.Alloc(4096, hw.LocalRead, WithUnmapOnFree())
	require.NoError(t, err)
	l, err := pz.RegisterLMR(from, hw.LocalRead)
	require.NoError(t, err)
	require.NoError(t, from.Free())
	l.Bytes()[0] = 1
	ranges, _ := mappedIn(d)
	assert.Equal(t, 1, ranges)
	require.NoError(t, l.Free())
	ranges, _ = mappedIn(d)
	assert.Zero(t, ranges)
	require.NoError(t, d.Close())
	require.NoError(t, dev.Close())
}

func TestARegionOfARegionRefusesBadArguments(t *testing.T) {
	dev, d := openLoop(t)
	_, far := openLoop(t)
	pz, err := d.NewPZ()
	require.NoError(t, err)
	foreign, err := far.NewPZ()
	require.NoError(t, err)
	l, err := foreign.Register(make([]byte, 8), hw.LocalRead)
	require.NoError(t, err)
	for name, from := range map[string]*LMR{"nil": nil, "another adapter's": l} {
		_, err = pz.RegisterLMR(from, hw.LocalRead)
		assert.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: 13}, name)
	}
	_, err = foreign.RegisterLMR(l, 0x80)
	assert.ErrorIs(t, err, hw.ErrInvalidParameter)
	_, err = (*PZ)(nil).RegisterLMR(l, hw.LocalRead)
	assert.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: 15})
	require.NoError(t, pz.Close(), "nothing has happened")
	require.NoError(t, d.Close())
	require.NoError(t, dev.Close())
	require.NoError(t, far.Close())
	require.NoError(t, far.dev.Close())
}

func TestAnIDNamesTheMemoryOfItsRegionsUntilTheLastIsFreed(t *testing.T) {
	devA, a := openLoop(t)
	devB, b := openLoop(t)
	pzA, err := a.NewPZ()
	require.NoError(t, err)
	pzB, err := b.NewPZ()
	require.NoError(t, err)
	id, buf := SharedID{39: 7}, make([]byte, 64)

	first, err := pzA.RegisterShared(id, buf, hw.AllPrivileges)
	require.NoError(t, err)
	second, err := pzB.RegisterShared(id, nil, hw.LocalRead)
	require.NoError(t, err)
	third, err := pzB.RegisterShared(id, buf, hw.LocalWrite)
	require.NoError(t, err)
	for _, l := range []*LMR{first, second, third} {
		assert.Same(t, &buf[0], &l.Bytes()[0])
		assert.Len(t, l.Bytes(), 64)
	}
	q, err := second.Query()
	require.NoError(t, err)
	assert.Equal(t, id, q.Shared)
	assert.Equal(t, hw.LocalRead, q.Privileges)

	for name, other := range map[string][]byte{"other": make([]byte, 64), "part": buf[:63], "empty": buf[:0]} {
		_, err = pzA.RegisterShared(id, other, hw.LocalRead)
		assert.ErrorIs(t, err, hw.ErrInvalidParameter, name)
	}
	apart := SharedID{39: 8}
	_, err = pzA.RegisterShared(apart, nil, hw.LocalRead)
	assert.ErrorIs(t, err, hw.ErrLength, "an id that names nothing")
	_, err = pzA.RegisterShared(id, nil, 0x80)
	assert.ErrorIs(t, err, hw.ErrInvalidParameter)

	require.NoError(t, first.Free())
	_, err = pzA.RegisterShared(id, make([]byte, 8), hw.LocalRead)
	assert.ErrorIs(t, err, hw.ErrInvalidParameter, "the others still share it")
	require.NoError(t, second.Free())
	require.NoError(t, third.Free())
	fresh, err := pzA.RegisterShared(id, make([]byte, 8), hw.LocalRead)
	require.NoError(t, err, "the id is free again")
	assert.Len(t, fresh.Bytes(), 8)
	require.NoError(t, fresh.Free())
	assert.Empty(t, shares.byID)
	for _, c := range []interface{ Close() error }{a, b, devA, devB} {
		require.NoError(t, c.Close())
	}
}

func TestSyncChecksItsSegments(t *testing.T) {
	dev, d := openLoop(t)
	pz, err := d.NewPZ()
	require.NoError(t, err)
	other, err := d.NewPZ()
	require.NoError(t, err)
	l, err := pz.Alloc(4096, hw.NoPrivileges)
	require.NoError(t, err)
	m, err := other.Alloc(64, hw.AllPrivileges)
	require.NoError(t, err)
	beyond := l.Segment(4000, 96)
	beyond.Len++
	below := l.Segment(0, 8)
	below.Addr--
	gone := m.Segment(0, 8)
	for _, name := range []string{"mem.SyncRDMARead", "mem.SyncRDMAWrite"} {
		sync := func(segments ...Segment) error { return d.Sync(name, segments...) }
		assert.NoError(t, sync(), name)
		assert.NoError(t, sync(l.Segment(0, 4096), m.Segment(8, 56), Segment{Addr: 1, Context: 2}), "regions of two zones")
		assert.ErrorIs(t, sync(l.Segment(0, 8), beyond), hw.ErrInvalidParameter)
		assert.ErrorIs(t, sync(below), hw.ErrInvalidParameter)
		assert.ErrorIs(t, sync(Segment{Addr: l.base, Len: 1, Context: 3}), &hw.Error{Type: hw.InvalidHandle, Sub: 13})
	}
	require.NoError(t, m.Free())
	assert.ErrorIs(t, d.Sync("mem.SyncRDMAWrite", gone), &hw.Error{Type: hw.InvalidHandle, Sub: 13})
	require.NoError(t, d.Close())
	assert.ErrorIs(t, d.Sync("mem.SyncRDMARead"), &hw.Error{Type: hw.InvalidHandle, Sub: 11})
	require.NoError(t, dev.Close())
}
