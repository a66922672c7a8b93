package mem

import "golang.org/x/sys/unix"

// mapHuge maps from the reserved pool of huge pages, if that is asked for.
func mapHuge(n int, huge bool) ([]byte, error) {
	if !huge {
		return nil, unix.ENOTSUP
	}
	return unix.Mmap(-1, 0, n, readWrite, private|unix.MAP_HUGETLB|unix.MAP_HUGE_2MB)
}

// advise keeps pages from a child process, in which a device's memory must not
// become copy-on-write, and asks for huge ones. Both are wishes: a kernel without
// them fails, and the memory works all the same.
func advise(pages []byte, huge bool) {
	_ = unix.Madvise(pages, unix.MADV_DONTFORK)
	if huge {
		_ = unix.Madvise(pages, unix.MADV_HUGEPAGE)
	}
}
