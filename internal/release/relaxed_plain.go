//go:build !race && (amd64 || arm64 || loong64 || ppc64 || ppc64le || riscv64 || s390x)

package release

import (
	"sync/atomic"
	"unsafe"
)

// Relaxed stores a value that other goroutines load, and orders nothing: it is for a word
// that nobody follows to other memory. It is inlined, as an ordinary store of a word that the
// processor does not divide.
func Relaxed(x *atomic.Uint64, v uint64) { *(*uint64)(unsafe.Pointer(x)) = v }

// Count adds n to a counter that has one writer and that other goroutines load.
func Count(x *atomic.Uint64, n uint64) { *(*uint64)(unsafe.Pointer(x)) += n }
