package mem

import (
	"sync"
	"unsafe"
)

// unmapped has the pages of programs for wasip1 that were given back, by their number of bytes: the
// system has no call that maps or unmaps, and its memory never shrinks.
var unmapped struct {
	mu    sync.Mutex
	pages map[int][][]byte
}

const pageSize = 1 << 12

// mapPages takes pages of the Go heap, which does not move.
func mapPages(n int, _ bool) ([]byte, error) {
	unmapped.mu.Lock()
	defer unmapped.mu.Unlock()
	if old := unmapped.pages[n]; len(old) > 0 {
		unmapped.pages[n] = old[:len(old)-1]
		clear(old[len(old)-1])
		return old[len(old)-1], nil
	}
	heap := make([]byte, n+pageSize)
	first := int(-uintptr(unsafe.Pointer(unsafe.SliceData(heap))) % pageSize)
	return heap[first : first+n : first+n], nil
}

func dropPages(pages []byte) error {
	clear(pages)
	return nil
}

func unmapPages(pages []byte) error {
	unmapped.mu.Lock()
	defer unmapped.mu.Unlock()
	if unmapped.pages == nil {
		unmapped.pages = make(map[int][][]byte)
	}
	unmapped.pages[len(pages)] = append(unmapped.pages[len(pages)], pages)
	return nil
}

func discard([]byte) {}
