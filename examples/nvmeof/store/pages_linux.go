package store

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dropPages gives the pages of an anonymous mapping back, so that they read as zeros.
// It reports false for memory that does not begin and end with a page.
func dropPages(b []byte) bool {
	page := os.Getpagesize()
	if len(b)%page != 0 || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(page) != 0 {
		return false
	}
	return unix.Madvise(b, unix.MADV_DONTNEED) == nil
}
