package owner

import "runtime"

// prefix begins what runtime.Stack writes: "goroutine 42 [running]:".
const prefix = len("goroutine ")

// GoroutineID is the number of the calling goroutine, never 0, and never used
// again by another one. It costs about a microsecond: it is for slow paths,
// such as to refuse a blocking call that comes from inside an upcall.
func GoroutineID() uint64 {
	var buf [prefix + 20]byte // 20 digits hold any uint64
	var id uint64
	for _, c := range buf[prefix:max(prefix, runtime.Stack(buf[:], false))] {
		if c < '0' || c > '9' {
			break
		}
		id = id*10 + uint64(c-'0')
	}
	return id
}
