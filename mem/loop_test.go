package mem_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/loop"
	"godat/internal/door"
	"godat/mem"
)

// A domain and a real device count the same regions.
func TestRegionsLiveAndEndOnARealDevice(t *testing.T) {
	dev, err := loop.New().Open(hw.OpenConfig{Device: "mem-test"})
	require.NoError(t, err)
	d := mem.NewDomain(door.Key{}, dev, nil)
	pz, err := d.NewPZ()
	require.NoError(t, err)
	other, err := d.NewPZ()
	require.NoError(t, err)

	l, err := pz.Alloc(4096, hw.AllPrivileges)
	require.NoError(t, err)
	buf := make([]byte, 64)
	r, err := pz.Register(buf, hw.LocalRead)
	require.NoError(t, err)
	assert.NotZero(t, l.RemoteContext())
	assert.Zero(t, r.RemoteContext())

	segments := func() (sges []hw.SGE) {
		for _, s := range []mem.Segment{l.Segment(0, 4096), r.Segment(8, 8)} {
			sges = append(sges, hw.SGE{Addr: s.Addr, Len: s.Len, LKey: s.Context})
		}
		return sges
	}
	total, refusal := pz.Zone(door.Key{}).Resolve(segments(), hw.LocalRead)
	require.Nil(t, refusal)
	assert.EqualValues(t, 4104, total)
	_, refusal = other.Zone(door.Key{}).Resolve(segments(), hw.LocalRead)
	require.ErrorIs(t, refusal, hw.ErrProtection)

	require.ErrorIs(t, pz.Close(), hw.ErrInvalidState)
	require.ErrorIs(t, dev.Close(), hw.ErrInvalidState, "the device has regions and zones")
	require.NoError(t, r.Free())
	require.NoError(t, other.Close())
	require.NoError(t, d.Close())
	require.NoError(t, dev.Close())
}
