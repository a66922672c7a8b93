package guest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConfigRefusesSettingsThatTheGuestCantHave(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"an unknown kind of device", Config{Devices: []string{"mlx5_0"}}, `device "mlx5_0" is neither an rxe nor a siw`},
		{"a device with a space", Config{Devices: []string{"rxe0 x"}}, "neither"},
		{"a port above 65535", Config{Forward: []Forward{{70000, 1}}}, "can't forward port 70000 to 1"},
		{"a port of the guest below 1", Config{Forward: []Forward{{1, 0}}}, "can't forward port 1 to 0"},
		{"forwarded ports of a tap device", Config{Tap: "tap0", Forward: []Forward{{1, 1}}}, `tap device "tap0" with 1 forwarded`},
		{"a tap device with a comma", Config{Tap: "tap0,fd=3"}, "tap device"},
		{"a shared directory that is not there", Config{Share: []string{"/nowhere/at/all"}}, "is no directory to share"},
		{"a setting without a value", Config{Env: []string{"A"}}, "no setting of the environment"},
		{"a setting with a strange name", Config{Env: []string{"A;B=1"}}, "no setting of the environment"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.cfg.complete()
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestConfigFillsInDefaults(t *testing.T) {
	c, err := Config{Devices: []string{"rxe0", "siw_a1"}, Dir: ".", Share: []string{"."}}.complete()
	require.NoError(t, err)
	assert.True(t, filepath.IsAbs(c.Dir))
	assert.True(t, filepath.IsAbs(c.Share[0]))
	assert.Equal(t, DefaultTimeout, c.Timeout)
	assert.NotNil(t, c.Output)
	assert.Contains(t, c.modules(), "rdma_rxe")
	assert.Contains(t, c.modules(), "siw")
}

func TestGuestWithoutDevicesNeedsNoRDMAModules(t *testing.T) {
	c := Config{Modules: []string{"dummy"}}
	assert.Equal(t, []string{"virtio_net", "dummy"}, c.modules())
}
