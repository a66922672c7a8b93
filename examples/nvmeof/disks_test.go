package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/identity"
	dat "godat/runtime"
)

// about is what a host sees of a disk.
type about struct {
	subsystem, serial string
	disk              [16]byte
}

// seen connects a host to the disks of the target at an address, and returns what it sees.
func seen(t *testing.T, address, subsystem string, disks int) (all []about, controller uint16) {
	t.Helper()
	ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1")
	require.NoError(t, err)
	defer func() { require.NoError(t, ia.CloseGraceful()) }()
	name, err := subsystemAt(t.Context(), ia, address, subsystem)
	require.NoError(t, err)
	c, err := host.Connect(t.Context(), ia, host.Config{Addr: address, Subsystem: name})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	for i := range disks {
		d, err := c.Disk(t.Context(), uint32(i+1))
		require.NoError(t, err)
		all = append(all, about{c.Identity().Subsystem, c.Identity().Serial, d.About().ID})
	}
	return all, c.ID()
}

func TestTwoTargetsWithTheDefaultsServeDisksThatDifferInAllNames(t *testing.T) {
	disks := []string{"mem:1M"}
	if runtime.GOOS == "linux" {
		disks = []string{"disk.img:1M", "mem:1M"}
	}
	t.Chdir(t.TempDir())
	first := serving(t, &serveOptions{Disk: disks})
	t.Chdir(t.TempDir()) // as on another machine
	second := serving(t, &serveOptions{Disk: disks})
	a, one := seen(t, first, "", len(disks))
	b, two := seen(t, second, "", len(disks))
	assert.NotEqual(t, one, two, "the ids of their controllers, but once in 65519 times")
	for i := range a {
		assert.NotEqual(t, a[i].subsystem, b[i].subsystem)
		assert.NotEqual(t, a[i].serial, b[i].serial)
		for j := range b {
			assert.NotEqual(t, a[i].disk, b[j].disk)
		}
		id := identity.ID(a[i].disk)
		again, err := identity.Parse(id.String())
		require.NoError(t, err, "a UUID of RFC 4122")
		assert.Equal(t, id, again)
	}
}

func TestTwoTargetsOfOneNameServeTwoDisks(t *testing.T) {
	o := func() *serveOptions {
		return &serveOptions{Subsystem: "nqn.2026-01.example.godat:disk", Disk: []string{"mem:1M"}}
	}
	a, _ := seen(t, serving(t, o()), o().Subsystem, 1)
	b, _ := seen(t, serving(t, o()), o().Subsystem, 1)
	assert.NotEqual(t, a[0].disk, b[0].disk, "a host refuses a second disk in the place of the first")
	assert.Equal(t, a[0].serial, b[0].serial, "a subsystem has one serial number")
}

// opened are the names of disks that are opened and closed again.
func opened(t *testing.T, o *serveOptions) (subsystem string, ids []identity.ID) {
	t.Helper()
	d, err := openDisks(o, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for _, ns := range d.all {
		ids = append(ids, ns.ID)
	}
	require.NoError(t, closeDisks(d.all))
	return d.subsystem, ids
}

func TestADiskKeepsItsNamesWhateverItsFileIsCalled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("capability: mapped files")
	}
	dir := t.TempDir()
	t.Chdir(dir)
	names, ids := opened(t, &serveOptions{Disk: []string{"disk.img:1M"}})
	require.NoError(t, os.Symlink("disk.img", "link"))
	for _, spelling := range []string{"./disk.img", filepath.Join(dir, "disk.img"), "link", "disk.img:2M", "../" + filepath.Base(dir) + "/disk.img:2M"} {
		again, same := opened(t, &serveOptions{Disk: []string{spelling}, Listen: []string{"127.0.0.1:1"}, Block: 512})
		assert.Equal(t, names, again, spelling)
		assert.Equal(t, ids, same, spelling)
	}
	again, both := opened(t, &serveOptions{Disk: []string{"mem:1M", "disk.img"}})
	assert.Equal(t, names, again, "a disk in memory before it is another one each time")
	assert.Equal(t, ids[0], both[1])

	require.NoError(t, os.Remove("disk.img"))
	_, other := opened(t, &serveOptions{Disk: []string{"disk.img:1M"}})
	assert.NotEqual(t, ids, other, "the file was made anew")
	image, err := os.ReadFile("disk.img")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("copy.img", image, 0o600))
	beside, err := os.ReadFile("disk.img" + identity.Suffix)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("copy.img"+identity.Suffix, beside, 0o600))
	_, err = openDisks(&serveOptions{Disk: []string{"copy.img"}}, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, identity.ErrOther)
	_, moved := opened(t, &serveOptions{Disk: []string{"copy.img"}, ID: []string{other[0].String()}})
	assert.Equal(t, other, moved)
	_, moved = opened(t, &serveOptions{Disk: []string{"copy.img"}})
	assert.Equal(t, other, moved)
}

func TestADiskHasTheIdentityThatTheOperatorSays(t *testing.T) {
	const one, two = "7f4df5b5-8e0e-4b43-8d2c-6f3a6e0f3d07", "0b6f0f4e-5c5c-4d9e-9c39-2d7a3c0f9a01"
	names, ids := opened(t, &serveOptions{Disk: []string{"mem:1M", "mem:1M"}, ID: []string{"2=" + two, one}})
	assert.Equal(t, "nqn.2014-08.org.nvmexpress:uuid:"+one, names)
	assert.Equal(t, []string{one, two}, []string{ids[0].String(), ids[1].String()})
	for _, bad := range [][]string{{"x"}, {"3=" + one}, {"0=" + one}, {"x=" + one}, {one, "1=" + two}} {
		_, err := openDisks(&serveOptions{Disk: []string{"mem:1M", "mem:1M"}, ID: bad}, slog.New(slog.DiscardHandler))
		require.Error(t, err, "%v", bad)
	}
	require.Error(t, run(t.Context(), "serve", &options{Provider: "loop", Serve: serveOptions{
		Listen: []string{""}, Disk: []string{"mem:1M", "mem:1M"}, ID: []string{one, "2=" + one},
	}}, io.Discard, io.Discard), "two disks of one identity")
}

func TestAFileThatIsNotThereHasNoIdentityThatTheOperatorSays(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("capability: mapped files")
	}
	t.Chdir(t.TempDir())
	said := identity.New()
	o := &serveOptions{Disk: []string{"disk.img:1M"}, ID: []string{said.String()}}
	_, err := openDisks(o, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "disk.img is not there")
	require.NoFileExists(t, "disk.img")
	require.NoError(t, os.WriteFile("disk.img", nil, 0o600))
	_, ids := opened(t, o)
	assert.Equal(t, []identity.ID{said}, ids)
}

func TestADeviceWithoutAnIdentityIsRefusedWithOneToSay(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("capability: mapped files")
	}
	_, _, err := identify(os.DevNull, false, identity.ID{}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "--id")
	said := identity.New()
	id, _, err := identify(os.DevNull, false, said, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	assert.Equal(t, said, id)
}

func TestAFileThatGetsItsFirstIdentityIsReported(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("capability: mapped files")
	}
	t.Chdir(t.TempDir())
	var log bytes.Buffer
	serve := func() {
		d, err := openDisks(&serveOptions{Disk: []string{"disk.img:1M"}}, slog.New(slog.NewTextHandler(&log, nil)))
		require.NoError(t, err)
		require.NoError(t, closeDisks(d.all))
	}
	serve()
	assert.Empty(t, log.String(), "the file is as new")
	require.NoError(t, os.Rename("disk.img"+identity.Suffix, "lost"))
	serve()
	assert.Contains(t, log.String(), "a disk that they don't know")
}

func TestARangeOfControllersThatIsWrongIsRefused(t *testing.T) {
	for _, text := range []string{"1", "x-2", "2-", "0-9", "1-70000", "9-8", "1-2", "1-65535"} {
		o := &options{Provider: "loop", Serve: serveOptions{Disk: []string{"mem:1M"}, Controllers: text}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // a target that takes it ends at once
		require.Error(t, run(ctx, "serve", o, io.Discard, io.Discard), text)
	}
}
