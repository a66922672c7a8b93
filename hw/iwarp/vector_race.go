//go:build race && (linux || darwin)

package iwarp

import "syscall"

// vector is empty: this build writes and reads with package syscall, from which the race
// detector knows that one end's write comes before the other end's read of it.
type vector struct{}

func (*vector) writev(fd int, parts [][]byte) (n int, err error) {
	for _, p := range parts {
		if len(p) == 0 {
			continue
		}
		k, err := syscall.Write(fd, p)
		if err != nil {
			if n > 0 {
				return n, nil
			}
			return 0, err
		}
		if n += k; k < len(p) {
			break
		}
	}
	return n, nil
}

func readNow(fd int, b []byte) (int, error) { return syscall.Read(fd, b) }

func (*vector) readv(fd int, parts [][]byte) (n int, err error) {
	for _, p := range parts {
		if len(p) == 0 {
			continue
		}
		k, err := syscall.Read(fd, p)
		if err != nil {
			if n > 0 {
				return n, nil
			}
			return 0, err
		}
		if n += k; k < len(p) {
			break
		}
	}
	return n, nil
}
