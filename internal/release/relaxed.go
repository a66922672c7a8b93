//go:build race || !(amd64 || arm64 || loong64 || ppc64 || ppc64le || riscv64 || s390x)

package release

import "sync/atomic"

// Relaxed stores a value that other goroutines load, and orders nothing that the caller may
// rely on: it is for a word that nobody follows to other memory.
func Relaxed(x *atomic.Uint64, v uint64) { x.Store(v) }

// Count adds n to a counter that has one writer and that other goroutines load.
func Count(x *atomic.Uint64, n uint64) { x.Store(x.Load() + n) }
