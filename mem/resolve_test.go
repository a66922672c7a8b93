package mem

import (
	"fmt"
	"math"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestResolveTranslatesToTheDevicesKeys(t *testing.T) {
	dev, _, pz := newTestPZ(t)
	a := alloc(t, pz, 100, hw.LocalRead)
	b := alloc(t, pz, 5000, hw.AllPrivileges)
	whole := Segment{Addr: b.Segment(0, 1).Addr, Len: 5000, Context: b.Context()}

	dst := make([]hw.SGE, 6)
	dst[5] = hw.SGE{Addr: 99}
	segs := []Segment{
		a.Segment(0, 100), a.Segment(99, 1), whole, b.Segment(17, 4000),
		{Len: 0, Addr: 0xdead, Context: 0xbeef}, // with length 0 the other fields have no meaning
	}
	total, err := resolve(pz, dst, segs, hw.LocalRead)
	require.Nil(t, err)
	assert.EqualValues(t, 100+1+5000+4000, total)
	for i, s := range segs[:4] {
		mr := dev.find(dst[i].LKey)
		require.NotNil(t, mr, "segment %d has no key of the device", i)
		assert.Equal(t, s.Addr, dst[i].Addr)
		assert.Equal(t, s.Len, dst[i].Len)
	}
	assert.Equal(t, hw.SGE{}, dst[4])
	assert.Equal(t, hw.SGE{Addr: 99}, dst[5], "more was written than there are segments")
	assert.NotEqual(t, dst[0].LKey, a.Context(), "the context is ours, not the device's")

	total, err = resolve(pz, nil, nil, hw.LocalRead)
	require.Nil(t, err)
	assert.Zero(t, total)
}

func TestResolveRefusesWhatAPostMust(t *testing.T) {
	_, d, pz := newTestPZ(t)
	other, err := d.NewPZ()
	require.NoError(t, err)
	read := alloc(t, pz, 64, hw.LocalRead)
	write := alloc(t, pz, 64, hw.LocalWrite)
	foreign := alloc(t, other, 64, hw.AllPrivileges)
	freed := alloc(t, pz, 64, hw.AllPrivileges)
	was := freed.Segment(0, 64)
	require.NoError(t, freed.Free())
	base := read.Segment(0, 1).Addr
	ctx := read.Context()
	var nobody *LMR

	cases := map[string]struct {
		seg  Segment
		need hw.Privileges
		typ  hw.Type
		sub  hw.Subtype
	}{
		"a context that never was":      {Segment{base, 1, ctx ^ 1}, hw.LocalRead, hw.InvalidHandle, hw.HandleLMR},
		"context 0":                     {Segment{base, 1, 0}, hw.LocalRead, hw.InvalidHandle, hw.HandleLMR},
		"the highest context":           {Segment{base, 1, math.MaxUint32}, hw.LocalRead, hw.InvalidHandle, hw.HandleLMR},
		"a freed region":                {was, hw.LocalRead, hw.InvalidHandle, hw.HandleLMR},
		"a segment of a freed region":   {freed.Segment(0, 8), hw.LocalRead, hw.InvalidHandle, hw.HandleLMR},
		"a segment of no region":        {nobody.Segment(0, 8), hw.LocalRead, hw.InvalidHandle, hw.HandleLMR},
		"another zone, read":            {foreign.Segment(0, 8), hw.LocalRead, hw.ProtectionViolation, hw.ProtectionRead},
		"another zone, write":           {foreign.Segment(0, 8), hw.LocalWrite, hw.ProtectionViolation, hw.ProtectionWrite},
		"a byte before":                 {Segment{base - 1, 1, ctx}, hw.LocalRead, hw.ProtectionViolation, hw.ProtectionRead},
		"a byte after":                  {Segment{base + 64, 1, ctx}, hw.LocalRead, hw.ProtectionViolation, hw.ProtectionRead},
		"a byte too many":               {Segment{base, 65, ctx}, hw.LocalRead, hw.ProtectionViolation, hw.ProtectionRead},
		"from within to beyond":         {Segment{base + 63, 2, ctx}, hw.LocalRead, hw.ProtectionViolation, hw.ProtectionRead},
		"the longest":                   {Segment{base, math.MaxUint32, ctx}, hw.LocalRead, hw.ProtectionViolation, hw.ProtectionRead},
		"an end that wraps":             {Segment{math.MaxUint64, 64, ctx}, hw.LocalRead, hw.ProtectionViolation, hw.ProtectionRead},
		"address 0":                     {Segment{0, 1, ctx}, hw.LocalRead, hw.ProtectionViolation, hw.ProtectionRead},
		"out of bounds, no privilege":   {Segment{base, 65, ctx}, hw.LocalWrite, hw.ProtectionViolation, hw.ProtectionWrite},
		"a receive into read-only":      {read.Segment(0, 8), hw.LocalWrite, hw.PrivilegesViolation, hw.PrivilegesWrite},
		"a send from write-only":        {write.Segment(0, 8), hw.LocalRead, hw.PrivilegesViolation, hw.PrivilegesRead},
		"remote read":                   {read.Segment(0, 8), hw.RemoteRead, hw.PrivilegesViolation, hw.PrivilegesRDMARead},
		"remote write":                  {read.Segment(0, 8), hw.RemoteWrite, hw.PrivilegesViolation, hw.PrivilegesRDMAWrite},
		"one of two privileges":         {read.Segment(0, 8), hw.LocalRead | hw.RemoteRead, hw.PrivilegesViolation, hw.PrivilegesRead},
		"Segment with a negative start": {read.Segment(-1, 8), hw.LocalRead, hw.ProtectionViolation, hw.ProtectionRead},
		"Segment of negative length":    {read.Segment(0, -8), hw.LocalRead, hw.ProtectionViolation, hw.ProtectionRead},
		"Segment beyond the end":        {read.Segment(60, 5), hw.LocalRead, hw.ProtectionViolation, hw.ProtectionRead},
		"Segment whose end overflows":   {read.Segment(8, math.MaxInt), hw.LocalRead, hw.ProtectionViolation, hw.ProtectionRead},
		"Segment of 2 GiB less a byte":  {read.Segment(0, math.MaxInt32), hw.LocalRead, hw.ProtectionViolation, hw.ProtectionRead},
	}
	if long := uint64(1<<32 + 8); bits.UintSize == 64 {
		c := cases["Segment beyond the end"]
		c.seg = read.Segment(0, int(long))
		cases["Segment of 4 GiB and 8 bytes"] = c
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := resolve(pz, make([]hw.SGE, 1), []Segment{c.seg}, c.need)
			require.NotNil(t, err)
			requireCode(t, err, c.typ, c.sub)

			// The same segment after a good one: the error names its place.
			segs := []Segment{read.Segment(0, 8), c.seg}
			if c.need == hw.LocalRead {
				_, err = resolve(pz, make([]hw.SGE, 2), segs, c.need)
				requireCode(t, err, c.typ, c.sub)
				assert.Contains(t, err.Error(), "segment 1")
			}
		})
	}
}

func TestResolveOnNoZoneIsAnInvalidHandle(t *testing.T) {
	_, d, pz := newTestPZ(t)
	closed, err := d.NewPZ()
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	seg := []Segment{alloc(t, pz, 8, hw.LocalRead).Segment(0, 8)}
	for name, p := range map[string]*PZ{"nil": nil, "closed": closed} {
		t.Run(name, func(t *testing.T) {
			_, err := resolve(p, make([]hw.SGE, 1), seg, hw.LocalRead)
			require.NotNil(t, err)
			requireCode(t, err, hw.InvalidHandle, hw.HandlePZ)
		})
	}
}

func TestResolveAllocatesNothing(t *testing.T) {
	_, _, pz := newTestPZ(t)
	l := alloc(t, pz, 4096, hw.LocalRead)
	var sges [4]hw.SGE
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		segs := [4]Segment{l.Segment(0, 8), l.Segment(8, 8), l.Segment(16, 8), l.Segment(24, 8)}
		if total, err := resolve(pz, sges[:], segs[:], hw.LocalRead); err != nil || total != 32 {
			panic("refused")
		}
	}))
}

func BenchmarkResolve(b *testing.B) {
	_, _, pz := newTestPZ(b)
	l := alloc(b, pz, 4096, hw.LocalRead)
	for _, n := range []int{1, 4} {
		b.Run(fmt.Sprintf("segments=%d", n), func(b *testing.B) {
			segs := make([]Segment, n)
			for i := range segs {
				segs[i] = l.Segment(64*i, 64)
			}
			dst := make([]hw.SGE, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := resolve(pz, dst, segs, hw.LocalRead); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
