//go:build unix

package host

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// memory is a program's. All addresses that it may ever have are its own from the beginning, so nothing is copied
// when it grows.
type memory struct {
	all  []byte
	size uint64 // of what the program has
}

// withMemory has runs under ctx use such memory.
func withMemory(ctx context.Context) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, most uint64) experimental.LinearMemory {
		all, err := unix.Mmap(-1, 0, int(most), unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			panic(fmt.Sprintf("no addresses for %d bytes of a program: %v", most, err))
		}
		return &memory{all: all}
	}))
}

// Reallocate implements experimental.LinearMemory.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.size {
		if unix.Mprotect(m.all[m.size:size], unix.PROT_READ|unix.PROT_WRITE) != nil {
			return nil
		}
		m.size = size
	}
	return m.all[:size]
}

// Free implements experimental.LinearMemory.
func (m *memory) Free() { _ = unix.Munmap(m.all) } // which fails for what was not mapped alone
