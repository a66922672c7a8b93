//go:build unix

package mem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	readWrite = unix.PROT_READ | unix.PROT_WRITE
	private   = unix.MAP_PRIVATE | unix.MAP_ANON
)

// mapPages maps n bytes, a multiple of the page size.
func mapPages(n int, huge bool) ([]byte, error) {
	pages, err := mapHuge(n, huge)
	if err != nil {
		pages, err = unix.Mmap(-1, 0, n, readWrite, private)
		if err != nil {
			return nil, err
		}
	}
	advise(pages, huge)
	return pages, nil
}

// dropPages replaces the pages by fresh ones in one step: a program that still
// reads there by mistake reads old bytes or zeros.
func dropPages(pages []byte) error {
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(pages)), uintptr(len(pages)),
		readWrite, private|unix.MAP_FIXED)
	if err == nil {
		advise(pages, false)
	}
	return err
}

func unmapPages(pages []byte) error { return unix.Munmap(pages) }
