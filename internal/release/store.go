//go:build !amd64 || race

package release

import "sync/atomic"

// Uint32 stores v into x.
func Uint32(x *atomic.Uint32, v uint32) { x.Store(v) }

// Uint64If stores v into x and returns true, if the caller sees old in x. It is no
// compare-and-swap: a value that another goroutine stores meanwhile may be lost.
func Uint64If(x *atomic.Uint64, old, v uint64) bool {
	if x.Load() != old {
		return false
	}
	x.Store(v)
	return true
}

// Uint64 stores v into x.
func Uint64(x *atomic.Uint64, v uint64) { x.Store(v) }
