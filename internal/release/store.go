//go:build !amd64 || race

package release

import "sync/atomic"

// Uint32 stores v into x.
func Uint32(x *atomic.Uint32, v uint32) { x.Store(v) }

// Uint64 stores v into x.
func Uint64(x *atomic.Uint64, v uint64) { x.Store(v) }
