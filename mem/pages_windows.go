package mem

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// mapPages maps n bytes, a multiple of the page size.
func mapPages(n int, _ bool) ([]byte, error) {
	addr, err := windows.VirtualAlloc(0, uintptr(n), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	// The address is a number because the call is declared so. It is outside the Go
	// heap, so the garbage collector neither moves nor frees the memory.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n), nil
}

// dropPages replaces the pages by fresh ones.
func dropPages(pages []byte) error {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(pages)))
	if err := windows.VirtualFree(addr, uintptr(len(pages)), windows.MEM_DECOMMIT); err != nil {
		return err
	}
	_, err := windows.VirtualAlloc(addr, uintptr(len(pages)), windows.MEM_COMMIT, windows.PAGE_READWRITE)
	return err
}

func unmapPages(pages []byte) error {
	return windows.VirtualFree(uintptr(unsafe.Pointer(unsafe.SliceData(pages))), 0, windows.MEM_RELEASE)
}

func discard([]byte) {}
