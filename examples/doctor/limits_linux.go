package main

import "golang.org/x/sys/unix"

// limits are the process's, on locked bytes and on descriptors.
func limits() (locked, files uint64) {
	return limit(unix.RLIMIT_MEMLOCK), limit(unix.RLIMIT_NOFILE)
}

func limit(resource int) uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(resource, &r) != nil {
		return 0
	}
	return r.Cur
}
