package runtime

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
)

// What no provider can do returns DAT's type, and matches errors.ErrUnsupported.
func TestAnEndpointOfDatagramsIsUnsupported(t *testing.T) {
	ia := open(t, "loop")
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	_, err = ia.NewEndpoint(ep.Config{PZ: pz, Attr: &ep.Attr{ServiceType: 1}})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	requireCode(t, err, hw.ModelNotSupported, hw.NoSubtype)
}

func TestAnAdapterIsDescribedWithoutBeingOpened(t *testing.T) {
	t.Setenv("DAT_OVERRIDE", filepath.Join(t.TempDir(), "absent"))
	bg := context.Background()
	attr, err := Describe(bg, "loop:described")
	require.NoError(t, err)
	assert.Equal(t, "described", attr.Device)
	assert.Equal(t, "loop", attr.Provider)

	r := register(t, hw.Info{Name: "once", Major: 2})
	_, err = Describe(bg, "once")
	require.NoError(t, err)
	require.Len(t, r.opened, 1)
	require.NoError(t, hw.Unregister("once"), "what was opened is closed again")
	require.NoError(t, hw.Register(r))
	_, err = Describe(bg, "nothing")
	requireCode(t, err, hw.ProviderNotFound, hw.NameNotRegistered)
}
