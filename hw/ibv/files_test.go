//go:build linux && cgo

package ibv

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// refuse is a file that does not open, as package os says it.
func refuse(why syscall.Errno) func(string) error {
	return func(file string) error { return &fs.PathError{Op: "open", Path: file, Err: why} }
}

func TestADeviceWhoseFileDoesNotOpenNamesTheFileAndSaysWhatToDo(t *testing.T) {
	const file = folder + "uverbs3"
	for why, c := range map[syscall.Errno]struct {
		is    error
		words []string
	}{
		syscall.EACCES: {hw.ErrPrivileges, []string{"open " + file + ": permission denied", "give this user access to /dev/infiniband/*", "udev", "--device /dev/infiniband"}},
		syscall.EPERM:  {hw.ErrPrivileges, []string{"open " + file + ": operation not permitted", "--device /dev/infiniband"}},
		syscall.ENOENT: {hw.ErrProviderNotFound, []string{file + " is missing", "modprobe -a ib_uverbs rdma_ucm", "--device /dev/infiniband"}},
		syscall.ENXIO:  {hw.ErrInsufficientResources, []string{"rxe0", "open " + file + ": no such device"}},
	} {
		err := closedFile("rxe0", refuse(why), file, cmFile)
		require.ErrorIs(t, err, c.is, why)
		for _, word := range c.words {
			require.ErrorContains(t, err, word, why)
		}
	}
	opens := func(file string) error {
		if file == cmFile {
			return refuse(syscall.EACCES)(file)
		}
		return nil
	}
	require.ErrorContains(t, closedFile("rxe0", opens, file, cmFile), cmFile+": permission denied")
	require.NoError(t, closedFile("rxe0", opens, file))
}

func TestAFileIsTriedForReadingAndWriting(t *testing.T) {
	file := filepath.Join(t.TempDir(), "uverbs0")
	require.ErrorIs(t, tryFile(file), fs.ErrNotExist)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, tryFile(file))
	require.ErrorIs(t, tryFile(filepath.Dir(file)), syscall.EISDIR, "it opens for reading alone")
}

func TestADeviceThatTheKernelHasAndTheLibraryDoesNotListNamesItsFile(t *testing.T) {
	class := fstest.MapFS{
		"infiniband/rxe0/node_type":       {Data: []byte("1: CA\n")},
		"infiniband/siw0/node_type":       {Data: []byte("4: RNIC\n")},
		"infiniband/tall0/node_type":      {Data: []byte("1: CA\n")},
		"infiniband_verbs/abi_version":    {Data: []byte("6\n")},
		"infiniband_verbs/uverbs0/ibdev":  {Data: []byte("rxe0\n")},
		"infiniband_verbs/uverbs12/ibdev": {Data: []byte("siw0\n")},
	}
	for device, words := range map[string]string{
		"":      folder + "uverbs0 is missing: load the kernel modules",
		"rxe0":  folder + "uverbs0 is missing: load the kernel modules",
		"siw0":  folder + "uverbs12 is missing",
		"tall0": "no file for tall0: modprobe ib_uverbs",
	} {
		err := unlisted(class, device)
		require.ErrorIs(t, err, hw.ErrProviderNotFound, device)
		assert.ErrorContains(t, err, words, device)
	}
	require.NoError(t, unlisted(class, "mlx5_0"), "there is no such device")
	require.NoError(t, unlisted(fstest.MapFS{}, ""), "there is none")
}
