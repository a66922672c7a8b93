//go:build race && (linux || darwin)

package iwarp

import "syscall"

// vector is empty: this build writes and reads with package syscall, from which the race
// detector knows that one end's write comes before the other end's read of it.
type vector struct{}

func (*vector) writev(fd int, parts [][]byte) (int, error) { return each(fd, parts, syscall.Write) }

func (*vector) readv(fd int, parts [][]byte) (int, error) { return each(fd, parts, syscall.Read) }

func readNow(fd int, b []byte) (int, error) { return syscall.Read(fd, b) }

// each calls the system for one part after the other, until it takes less than all of one.
func each(fd int, parts [][]byte, call func(fd int, b []byte) (int, error)) (n int, err error) {
	for _, p := range parts {
		if len(p) == 0 {
			continue
		}
		k, err := call(fd, p)
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
