package guest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKeyChangesWithThePackage(t *testing.T) {
	a := kernel{"6.1.0-56-amd64", "6.1.192-2", "6.1"}
	b := kernel{"6.1.0-56-amd64", "6.1.192-3", "6.1"}
	assert.NotEqual(t, a.key(), b.key())
}

func TestTreeKeepsTheModulesThatTestsUse(t *testing.T) {
	const mods = "lib/modules/6.1.0-56-amd64/"
	from, dir := t.TempDir(), t.TempDir()
	files := map[string]bool{
		"boot/vmlinuz-6.1.0-56-amd64":                    true,
		"boot/System.map-6.1.0-56-amd64":                 false,
		"usr/share/doc/x":                                false,
		mods + "modules.builtin":                         true,
		mods + "kernel/drivers/infiniband/sw/rxe/rxe.ko": true,
		mods + "kernel/drivers/infiniband/hw/mlx5/x.ko":  false,
		mods + "kernel/drivers/net/dummy.ko":             true,
		mods + "kernel/drivers/net/wireless/x.ko":        false,
		mods + "kernel/drivers/gpu/drm/x.ko":             false,
		mods + "kernel/net/sched/sch_netem.ko":           true,
		mods + "kernel/sound/x.ko":                       false,
		mods + "kernel/soundless.ko":                     true,
	}
	for name := range files {
		path := filepath.Join(from, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o644))
	}
	require.NoError(t, keepKernel(from, dir, "6.1.0-56-amd64"))
	for name, want := range files {
		_, err := os.Stat(filepath.Join(dir, name))
		assert.Equal(t, want, err == nil, name)
	}
}

func TestModulesToInsertComeInModprobesOrder(t *testing.T) {
	out := "insmod /t/lib/modules/v/kernel/lib/a.ko \nbuiltin b\ninsmod /t/lib/modules/v/kernel/c.ko\n"
	assert.Equal(t, []string{"/t/lib/modules/v/kernel/lib/a.ko", "/t/lib/modules/v/kernel/c.ko"}, parseShowDepends([]byte(out)))
}

func TestMissingProgramIsNamedWithItsPackage(t *testing.T) {
	_, err := find(tool{"no-such-program", "its-package"}, tool{"nor-this", "another"})
	require.ErrorContains(t, err, "no-such-program is missing: install the package its-package")
	require.ErrorContains(t, err, "install the package another")
	require.ErrorContains(t, err, "install.sh")
}
