package mem

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/door"
	"godat/internal/memory"
)

func TestADeviceWithoutWindowsSaysSo(t *testing.T) {
	pz, err := NewDomain(door.Key{}, newFakeDevice(), nil).NewPZ()
	require.NoError(t, err)
	_, err = pz.NewRMR()
	assert.ErrorIs(t, err, hw.ErrModelNotSupported)
	require.NoError(t, pz.Close(), "nothing has happened")
}

func TestAWindowIsOfItsZone(t *testing.T) {
	dev, d := openLoop(t)
	pz, err := d.NewPZ()
	require.NoError(t, err)
	w, err := pz.NewRMR()
	require.NoError(t, err)
	assert.Same(t, pz, w.PZ())
	assert.Equal(t, 1, d.Stats().Windows)
	assert.ErrorIs(t, pz.Close(), &hw.Error{Type: hw.InvalidState, Sub: 83})
	for mask, want := range map[RMRField]RMRParam{
		0x01: {IA: d.ia}, 0x02: {PZ: pz}, 0x04: {}, 0x08: {}, 0x10: {}, 0x20: {Scope: 1}, 0x40: {},
		0x7F: {IA: d.ia, PZ: pz, Scope: 1},
	} {
		got, err := w.Query(mask)
		require.NoError(t, err)
		assert.Equal(t, want, got, "mask %#x", mask)
	}
	_, err = w.Query(0x80)
	assert.ErrorIs(t, err, hw.ErrInvalidParameter)

	require.NoError(t, w.Free())
	require.NoError(t, w.Free(), "a second time does nothing")
	dead := &hw.Error{Type: hw.InvalidHandle, Sub: 14}
	_, err = w.Query(0)
	assert.ErrorIs(t, err, dead)
	_, err = w.Window(door.Key{}).BeginBind(pz.zone, nil, &memory.Binding{})
	assert.ErrorIs(t, err, dead)
	assert.Zero(t, d.Stats().Windows)
	require.NoError(t, pz.Close())
	_, err = pz.NewRMR()
	assert.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: 15})
	require.NoError(t, d.Close())
	require.NoError(t, dev.Close())
}

func TestADomainClosesItsWindows(t *testing.T) {
	dev, d := openLoop(t)
	pz, err := d.NewPZ()
	require.NoError(t, err)
	_, err = pz.NewRMR()
	require.NoError(t, err)
	require.NoError(t, d.Close())
	assert.Zero(t, d.Stats().Windows)
	_, err = pz.NewRMR()
	assert.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: 11})
	require.NoError(t, dev.Close())
}

func TestANilWindowIsAnInvalidHandle(t *testing.T) {
	var w *RMR
	dead := &hw.Error{Type: hw.InvalidHandle, Sub: 14}
	assert.ErrorIs(t, w.Free(), dead)
	_, err := w.Query(0)
	assert.ErrorIs(t, err, dead)
	assert.Nil(t, w.PZ())
	_, err = (*PZ)(nil).NewRMR()
	assert.ErrorIs(t, err, &hw.Error{Type: hw.InvalidHandle, Sub: 15})
	assert.Zero(t, (*Domain)(nil).Stats())
}

func openLoop(t *testing.T) (hw.Device, *Domain) {
	provider, ok := hw.Lookup("loop")
	require.True(t, ok)
	dev, err := provider.Open(hw.OpenConfig{})
	require.NoError(t, err)
	return dev, NewDomain(door.Key{}, dev, dev)
}
