//go:build amd64 && !race

package release

import (
	"sync/atomic"
	"unsafe"
)

// Uint32 stores v into x.
//
//go:noinline
func Uint32(x *atomic.Uint32, v uint32) { *(*uint32)(unsafe.Pointer(x)) = v }

// Uint64 stores v into x.
//
//go:noinline
func Uint64(x *atomic.Uint64, v uint64) { *(*uint64)(unsafe.Pointer(x)) = v }
