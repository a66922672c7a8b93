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
		{"a shared directory without a name, which would be the working directory", Config{Share: []string{""}}, "is no directory to share"},
		{"a working directory that is not there", Config{Dir: "/nowhere/at/all"}, "is no directory to work in"},
		{"a device twice", Config{Devices: []string{"rxe0", "siw0", "rxe0"}}, "device rxe0 twice"},
		{"a module without a name", Config{Modules: []string{""}}, "no name of a module"},
		{"a module with a space", Config{Modules: []string{"dummy veth"}}, "no name of a module"},
		{"a port of the host twice", Config{Forward: []Forward{{1, 2}, {1, 3}}}, "port 1 of the host twice"},
		{"two lines for the kernel", Config{Kernel: "a\nb"}, "no line for the kernel"},
		{"a limit below 0", Config{Timeout: -1}, "a limit of -1ns"},
		{"memory below 0", Config{Memory: -1}, "-1 MiB of memory"},
		{"memory in which no kernel boots", Config{Memory: 1}, "at least 256"},
		{"processors below 0", Config{CPUs: -1}, "-1 processors"},
		{"too many processors", Config{CPUs: 100_000}, "100000 processors"},
		{"busy processes below 0", Config{Busy: -1}, "-1 busy"},
		{"too many busy processes", Config{Busy: 1 << 20}, "up to 1000"},
		{"a setting without a value", Config{Env: []string{"A"}}, "no setting of the environment"},
		{"a setting with a strange name", Config{Env: []string{"A;B=1"}}, "no setting of the environment"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.cfg.complete()
			require.ErrorContains(t, err, c.want)
			require.ErrorIs(t, err, ErrConfig)
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
