package memory

import (
	"sync"

	"godat/hw"
	"godat/internal/keys"
)

// Table finds a region by its context. All zones of an adapter share one.
type Table = keys.Table[Region]

// Segment is a range of memory and the context of the region that it is in. Those of
// package mem convert to it.
type Segment struct {
	Addr    uint64
	Len     uint32 // bytes
	Context uint32
}

// Region is what a post is checked against: a snapshot of a registered region
// that never changes. A freed region's is no longer in the table.
type Region struct {
	Base uint64 // address of the first byte
	Size uint64 // bytes
	Zone *Zone
	LKey uint32
	Priv hw.Privileges
	MR   hw.MR
}

// Holds reports whether the range lies within the region.
func (r *Region) Holds(addr uint64, n uint32) bool {
	off := addr - r.Base // an address below the base wraps to an offset beyond every region
	return off <= r.Size && uint64(n) <= r.Size-off
}

// Zone is a protection zone: it knows its regions, and counts what depends on it.
// Its methods may be called from any goroutine. Those of a nil zone refuse.
type Zone struct {
	// Immutable.
	table  *Table
	attr   *hw.Attr
	device hw.Zone

	mu     sync.Mutex
	uses   int // endpoints, shared receive queues, regions and windows
	closed bool
}

// NewZone makes the zone of a device's. Its regions are in the table; attr is the
// device's.
func NewZone(device hw.Zone, attr *hw.Attr, table *Table) *Zone {
	return &Zone{table: table, attr: attr, device: device}
}

// Device is the device's zone; nil for a nil zone. Whoever keeps it calls Use first.
func (z *Zone) Device() hw.Zone {
	if z == nil {
		return nil
	}
	return z.device
}

// Use adds a dependant for the call op: the zone can't be closed until Unuse was
// called as often. A closed zone is INVALID_HANDLE/PZ.
func (z *Zone) Use(op string) error {
	if z == nil {
		return ClosedZone(op)
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.closed {
		return ClosedZone(op)
	}
	z.uses++
	return nil
}

// Unuse takes a dependant away. It panics if there is none.
func (z *Zone) Unuse() {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.uses == 0 {
		panic("memory: Zone.Unuse without Use")
	}
	z.uses--
}

// Closed reports whether the zone is closed.
func (z *Zone) Closed() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.closed
}

// Close frees the zone for the call op. With a dependant it is
// INVALID_STATE/PZ_IN_USE and nothing happens; with force it asks the device all
// the same, which knows whether a queue pair is left. The call that closes the zone
// runs gone before anybody else sees it closed; another does nothing.
func (z *Zone) Close(op string, force bool, gone func()) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	switch {
	case z.closed:
		return nil
	case z.uses > 0 && !force:
		return hw.Errorf(op, hw.InvalidState, hw.StatePZInUse, "%d regions and endpoints are in it", z.uses)
	}
	if err := z.device.Close(); err != nil {
		return Refused(op, hw.ResourceProtectionDomain, err)
	}
	z.closed = true
	gone()
	return nil
}

// ClosedZone is how the call op refuses a zone that is nil or closed.
func ClosedZone(op string) *hw.Error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "the protection zone is nil or closed")
}
