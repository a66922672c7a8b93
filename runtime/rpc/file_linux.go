package rpc

import (
	"os"
	"syscall"
)

// mapFile maps n bytes of a file, until unmap is called. A file that is written gets room on the
// disk for them before, since writing to the mapped file would be a fault without.
func mapFile(f *os.File, offset int64, n int, write bool) (memory []byte, unmap func(), err error) {
	protection := syscall.PROT_READ
	if write {
		protection |= syscall.PROT_WRITE
		if err := syscall.Fallocate(int(f.Fd()), 0, offset, int64(n)); err != nil {
			return nil, nil, err
		}
	}
	before := int(offset % int64(os.Getpagesize()))
	pages, err := syscall.Mmap(int(f.Fd()), offset-int64(before), before+n, protection, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return pages[before:], func() { _ = syscall.Munmap(pages) }, nil
}
