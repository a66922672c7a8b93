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
	got, err := w.Query()
	require.NoError(t, err)
	assert.Equal(t, RMRParam{Scope: RMRScopePZ}, got)

	require.NoError(t, w.Free())
	require.NoError(t, w.Free(), "a second time does nothing")
	dead := &hw.Error{Type: hw.InvalidHandle, Sub: 14}
	_, err = w.Query()
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
	_, err := w.Query()
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
