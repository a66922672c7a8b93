package store

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAFlushWritesBackEachPageOfItsRange(t *testing.T) {
	opened, err := OpenFile(filepath.Join(t.TempDir(), "disk"), size)
	require.NoError(t, err)
	defer func() { require.NoError(t, opened.Close()) }()
	s := opened.(*file)
	var synced []byte
	s.sync = func(pages []byte, flags int) error {
		assert.Equal(t, unix.MS_SYNC, flags, "it waits for the disk")
		synced = pages
		return unix.Msync(pages, flags)
	}
	start := func(b []byte) int { return int(uintptr(unsafe.Pointer(&b[0])) - uintptr(unsafe.Pointer(&s.data[0]))) }
	for _, r := range [][2]int{{0, 512}, {512, 512}, {3584, 512}, {3584, 1024}, {4096, 4096}, {4608, 8192}, {size - 512, 512}, {0, size}} {
		synced = nil
		require.NoError(t, s.Flush(r[0], r[1]))
		require.NotEmpty(t, synced, "%v", r)
		begin := start(synced)
		assert.Zero(t, begin%s.page, "a page is written back as a whole")
		assert.LessOrEqual(t, begin, r[0], "%v", r)
		assert.Greater(t, begin, r[0]-s.page, "%v, and no page before it", r)
		assert.GreaterOrEqual(t, begin+len(synced), r[0]+r[1], "%v", r)
	}
	synced = nil
	require.NoError(t, s.Flush(512, 0))
	assert.Empty(t, synced)
}

// The system tells one caller of pages that it could not write, and takes them for written.
func TestAFlushBehindOneThatFailedFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	opened, err := OpenFile(path, size)
	require.NoError(t, err)
	s := opened.(*file)
	s.sync = func([]byte, int) error { return unix.EIO }
	require.ErrorIs(t, s.Flush(0, 512), unix.EIO)
	s.sync = unix.Msync
	require.ErrorIs(t, s.Flush(512, 512), unix.EIO)
	require.NoError(t, os.Truncate(path, 2*size))
	grown, err := s.Grown()
	require.NoError(t, err)
	require.ErrorIs(t, grown.Flush(0, 512), unix.EIO)
	require.NoError(t, grown.Close())
	require.NoError(t, s.Close())
	opened, err = OpenFile(path, size)
	require.NoError(t, err)
	require.NoError(t, opened.Flush(0, 512), "the file is opened anew")
	require.NoError(t, opened.Close())
}

func TestWhatIsWrittenByACallIsInTheMemoryAndStable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	opened, err := OpenFile(path, size)
	require.NoError(t, err)
	s := opened.(*file)
	copy(s.Memory()[100:], "through the memory")
	n, err := s.WriteAt([]byte("by a call"), 600)
	require.NoError(t, err)
	require.Equal(t, 9, n)
	assert.Equal(t, "by a call", string(s.Memory()[600:609]))
	require.NoError(t, s.Flush(0, 4096))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, s.Memory(), b)
	for _, off := range []int64{-1, size - 1, size} {
		_, err = s.WriteAt(make([]byte, 2), off)
		require.Error(t, err, "at %d", off)
	}
	require.NoError(t, os.Truncate(path, 4096))
	_, err = s.WriteAt(make([]byte, 512), 4096)
	require.ErrorIs(t, err, ErrUnreadable, "a file that somebody has made shorter stays so")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, int64(4096), info.Size())
	require.NoError(t, os.Truncate(path, size))
	require.NoError(t, s.Close())
	_, err = s.WriteAt(make([]byte, 512), 0)
	require.ErrorIs(t, err, ErrClosed)
}
