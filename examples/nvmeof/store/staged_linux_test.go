package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAStagedFileHasWhatWasStagedAndNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	s, err := OpenStaged(path, size)
	require.NoError(t, err)
	assert.True(t, s.Volatile())
	_, err = OpenStaged(path, size)
	require.ErrorContains(t, err, "another process has it")
	for off, b := range map[int]byte{0: 1, 8192: 2, 12288: 3} {
		s.Memory()[off] = b
	}
	require.NoError(t, s.Stage(0, 512))
	require.NoError(t, s.Flush(8192, 512))
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Len(t, now, size)
	assert.Equal(t, []byte{1, 2, 0}, []byte{now[0], now[8192], now[12288]}, "the memory is not the file's")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Flush(0, 0), ErrClosed)
	require.ErrorIs(t, s.Stage(0, 0), ErrClosed)
	s, err = OpenStaged(path, 0)
	require.NoError(t, err)
	assert.Equal(t, now, s.Memory())
	require.NoError(t, s.Close())
}

func TestAFileThatCouldNotBeWrittenOnceIsNotStableAgain(t *testing.T) {
	opened, err := OpenStaged(filepath.Join(t.TempDir(), "file"), size)
	require.NoError(t, err)
	s := opened.(*staged)
	s.sync = func(int) error { return unix.EIO }
	require.ErrorIs(t, s.Flush(0, 512), unix.EIO)
	s.sync = unix.Fdatasync
	require.ErrorIs(t, s.Flush(0, 512), unix.EIO)
	require.ErrorIs(t, s.Stage(0, 512), unix.EIO)
	require.NoError(t, s.Close())
}

func TestAFileThatIsStagedAndCanNotBeReadIsAnError(t *testing.T) {
	_, err := OpenStaged(t.TempDir(), size)
	require.Error(t, err)
	path := filepath.Join(t.TempDir(), "none", "file")
	_, err = OpenStaged(path, size)
	require.ErrorIs(t, err, os.ErrNotExist)
}
