package store

import (
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
