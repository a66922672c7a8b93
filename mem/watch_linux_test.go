package mem

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"godat/hw"
	"godat/internal/door"
)

// resident counts the pages of b that are in memory.
func resident(t *testing.T, b []byte) (n int) {
	in := make([]byte, len(b)/4096)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), uintptr(unsafe.Pointer(unsafe.SliceData(in))))
	require.Zero(t, errno)
	for _, page := range in {
		n += int(page & 1)
	}
	return n
}

// A pool may be larger than what a program uses of it.
func TestAWatchedPoolTouchesNoMemoryBeforeItIsUsed(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 4, Size: 16 << 20, Debug: true})
	assert.Zero(t, resident(t, p.lmr.buf))
	b := p.Get()
	b.Put()
	assert.LessOrEqual(t, resident(t, p.lmr.buf), 2*len(b.memory())/4096)
	require.NoError(t, p.Close())
}

// The heap has used memory before, and cleared it.
func TestALargeRegionOfTheHeapTakesNoMemoryBeforeItIsUsed(t *testing.T) {
	const size = 8<<20 + 100
	_, _, pz := newTestPZ(t)
	var r Regions
	r.In(door.Key{}, pz)
	for range 4 {
		used := make([]byte, size+4096)
		for i := range used {
			used[i] = 1
		}
		runtime.GC() // when this returns nobody has used any more
		l, err := r.Alloc("", size, hw.LocalRead)
		require.NoError(t, err)
		assert.Zero(t, resident(t, l.Bytes()[:8<<20]))
		assert.Equal(t, make([]byte, size), l.Bytes())
		l.Bytes()[size-1] = 1
		require.NoError(t, l.Free())
	}
}
