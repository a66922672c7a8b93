package mem

import "golang.org/x/sys/unix"

// memlock returns how many bytes this process may lock, if there is a limit.
func memlock() (limit uint64, ok bool) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil || r.Cur == unix.RLIM_INFINITY {
		return 0, false
	}
	return r.Cur, true
}
