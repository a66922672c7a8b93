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

// Grower is a Store whose contents may get longer while it is open.
type Grower interface {
	// Grown returns a store of the same contents at their present length, or nil if they
	// are not longer than the store has them. The caller closes both stores, in any order;
	// the shorter one serves its part as before.
	Grown() (Store, error)
}

// Staged is a Store that writes its memory to where it is kept: nothing else does. Stage writes a range and does not wait
// until it is stable; Flush writes one, too, which may be empty, and then makes stable all that was staged before. Without either a
// change of the memory is lost when the store is closed.
type Staged interface {
	Store
	Stage(off, n int) error
}

// Prober is a Store whose memory may fail when it is accessed. A provider accesses it in
// goroutines of its own, where a failure would end the process, so a target probes a range
// before it gives the range to one.
type Prober interface {
	// Probe touches the pages of a range, for writing if write is set, and returns an
	// error if one can't be accessed. It may wait for the disk, and allocates nothing.
	Probe(off, n int, write bool) error
}

// ErrUnreadable is the error of a range of a file with a page that can't be read or
// written: the file was made shorter, or its disk failed.
var ErrUnreadable = errors.New("store: a page of the file can't be accessed")

// ErrClosed is the error of calls after Close.
var ErrClosed = errors.New("store: it is closed")
