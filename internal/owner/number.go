//go:build race || (!amd64 && !arm64)

package owner

import "runtime"

// prefix begins what runtime.Stack writes: "goroutine 42 [running]:".
const prefix = len("goroutine ")

// number returns the number that the calling goroutine has in stack traces.
func number() uint64 {
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
