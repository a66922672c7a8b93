package mem

import "golang.org/x/sys/unix"

// mapHuge maps from the reserved pool of huge pages, if huge is set.
func mapHuge(n int, huge bool) ([]byte, error) {
	if !huge {
		return nil, unix.ENOTSUP
	}
	return unix.Mmap(-1, 0, n, readWrite, private|unix.MAP_HUGETLB|unix.MAP_HUGE_2MB)
}

// advise keeps the pages out of child processes, because a fork would make a
// device's memory copy-on-write, and asks for huge pages. A kernel that knows
// neither returns an error, which is ignored: the memory works without.
func advise(pages []byte, huge bool) {
	_ = unix.Madvise(pages, unix.MADV_DONTFORK)
	if huge {
		_ = unix.Madvise(pages, unix.MADV_HUGEPAGE)
	}
}

// discard gives back pages that are private and zero. They are zero when they are touched
// again. It is for memory of the Go heap, which Go itself gives back in this way.
func discard(pages []byte) { _ = unix.Madvise(pages, unix.MADV_DONTNEED) }
