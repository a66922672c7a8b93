package guest

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKernelIsTheOneTheDistributionNames(t *testing.T) {
	name, err := field([]byte("linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n"), "Depends: "+imagePrefix)
	require.NoError(t, err)
	assert.Equal(t, "6.1.0-56-amd64", name)

	version, err := field([]byte("Package: linux-image-6.1.0-56-amd64\nSource: linux-signed-amd64 (6.1.192+2)\nVersion: 6.1.192-2\n"), "Version: ")
	require.NoError(t, err)
	assert.Equal(t, "6.1.192-2", version)
}

func TestPackageManagerWithoutListsIsToldToUpdate(t *testing.T) {
	_, err := field([]byte("linux-image-amd64\n"), "Depends: "+imagePrefix)
	require.ErrorContains(t, err, "apt-get update")
	_, err = field(nil, "Version: ")
	require.ErrorContains(t, err, "apt-get update")
}

func TestKeyChangesWithThePackage(t *testing.T) {
	a := kernel{"6.1.0-56-amd64", "6.1.192-2", "6.1"}
	b := kernel{"6.1.0-56-amd64", "6.1.192-3", "6.1"}
	assert.NotEqual(t, a.key(), b.key())
}

func TestTreeKeepsTheModulesThatTestsUse(t *testing.T) {
	const mods = "lib/modules/6.1.0-56-amd64/"
	for name, want := range map[string]bool{
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
	} {
		assert.Equal(t, want, wantedOfKernel(name), name)
	}
}

func TestModulesToInsertComeInModprobesOrder(t *testing.T) {
	out := "insmod /t/lib/modules/v/kernel/lib/a.ko \nbuiltin b\ninsmod /t/lib/modules/v/kernel/c.ko\n"
	assert.Equal(t, []string{"/t/lib/modules/v/kernel/lib/a.ko", "/t/lib/modules/v/kernel/c.ko"}, parseShowDepends([]byte(out)))
}

func tarball(t *testing.T, headers ...tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		require.NoError(t, w.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			_, err := w.Write([]byte(h.Name))
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	return &b
}

func TestUnpackTakesTheWantedFilesOnly(t *testing.T) {
	dir := t.TempDir()
	b := tarball(t,
		tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "./a/b/yes", Typeflag: tar.TypeReg, Mode: 0o755},
		tar.Header{Name: "./a/no", Typeflag: tar.TypeReg, Mode: 0o644},
		tar.Header{Name: "./a/link", Typeflag: tar.TypeSymlink, Linkname: "b/yes"},
		tar.Header{Name: "./a/device", Typeflag: tar.TypeChar},
	)
	require.NoError(t, unpack(b, dir, func(name string) bool { return name != "a/no" }))

	text, err := os.ReadFile(filepath.Join(dir, "a/link"))
	require.NoError(t, err)
	assert.Equal(t, "./a/b/yes", string(text))
	assert.NoFileExists(t, filepath.Join(dir, "a/no"))
	assert.NoFileExists(t, filepath.Join(dir, "a/device"))
}

func TestUnpackLetsNoEntryOutOfItsDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "in")
	require.NoError(t, os.Mkdir(dir, 0o755))
	all := func(string) bool { return true }
	require.Error(t, unpack(tarball(t, tar.Header{Name: "../out", Typeflag: tar.TypeReg, Mode: 0o644}), dir, all))
	require.Error(t, unpack(tarball(t,
		tar.Header{Name: "up", Typeflag: tar.TypeSymlink, Linkname: ".."},
		tar.Header{Name: "up/out", Typeflag: tar.TypeReg, Mode: 0o644},
	), dir, all))
	assert.NoFileExists(t, filepath.Join(dir, "../out"))
}

func TestMissingProgramIsNamedWithItsPackage(t *testing.T) {
	_, err := find(tool{"no-such-program", "its-package"}, tool{"nor-this", "another"})
	require.ErrorContains(t, err, "no-such-program is missing: install the package its-package")
	require.ErrorContains(t, err, "install the package another")
	require.ErrorContains(t, err, "install.sh")
}
