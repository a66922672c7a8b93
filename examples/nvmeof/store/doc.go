// Package store keeps the contents of disks for a storage target.
//
// A Store is memory: RDMA moves data between a host and that memory directly, so a
// store has no calls to read and write. What it adds is when the contents are stable.
package store

import "errors"

// Store is the contents of a disk. Its methods may be called from any goroutine, and
// may block, except Memory and Volatile. Ranges are offsets and lengths in bytes, within the memory.
type Store interface {
	// Memory is the contents. It stays at its place until Close. Transfers may read and
	// write it at any time, also the same bytes at the same time; such bytes are then a
	// mixture of both.
	Memory() []byte
	// Volatile reports whether written contents may be lost before Flush.
	Volatile() bool
	// Flush makes stable what was written to a range before the call. What it returned
	// nil for survives the end of the process and, as far as the system keeps its
	// promises, a power failure.
	Flush(off, n int) error
	// Zero makes a range read as zeros; like a write, it is stable after a Flush. The
	// pages of the memory stay the same ones, and keep their space: a device that has
	// pinned them would go on with the old ones.
	Zero(off, n int) error
	// Close gives the memory back. Nothing may use it any more.
	Close() error
}

// ErrClosed is the error of calls after Close.
var ErrClosed = errors.New("store: it is closed")
