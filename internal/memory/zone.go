package memory

import (
	"sync"

	"godat/hw"
	"godat/internal/keys"
)

// Table finds a region by its context. All zones of an adapter share one.
type Table = keys.Table[Region]

// Near has the region that a post named, for the next post.
type Near = keys.Near[Region]

// Segment is a range of memory with the context of its region. A Segment or
// RemoteSegment of package mem converts to it.
type Segment struct {
	Addr    uint64
	Len     uint32 // bytes
	Context uint32
}

// Region is what a post is checked against: a snapshot of a registered region that
// never changes. A freed region has none in the table.
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

// Zone is a protection zone: it checks segments against its regions, and counts
// what depends on it. Its methods may be called from any goroutine. Use, Resolve
// and LKey of a nil zone refuse.
type Zone struct {
	// Immutable.
	table  *Table
	attr   *hw.Attr
	device hw.Zone

	mu     sync.Mutex
	uses   int // endpoints, shared receive queues, regions and windows
	closed bool
}

// NewZone makes the zone for a device's zone. attr are the device's attributes;
// table holds the zone's regions.
func NewZone(device hw.Zone, attr *hw.Attr, table *Table) *Zone {
	return &Zone{table: table, attr: attr, device: device}
}

// Device returns the device's zone; nil for a nil zone. A caller that keeps the
// result calls Use first.
func (z *Zone) Device() hw.Zone {
	if z == nil {
		return nil
	}
	return z.device
}

// Use counts a dependant for the call op: Close refuses until Unuse was called as
// often as Use. A closed zone is INVALID_HANDLE/PZ.
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

// Unuse undoes one Use. It panics if there is none to undo.
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

// Close frees the zone for the call op. With a dependant it is INVALID_STATE/PZ_IN_USE and has
// no effect. With force it asks the device in spite of dependants, because the device knows
// whether a queue pair is left. The call that closes the zone runs gone before any other call
// sees the zone closed; a later call does nothing.
func (z *Zone) Close(op string, force bool, gone func()) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	switch {
	case z.closed:
		return nil
	case z.uses > 0 && !force:
		return hw.Errorf(op, hw.InvalidState, hw.StatePZInUse, "%d regions, windows, endpoints and shared receive queues are in it: free or close these first", z.uses)
	}
	if err := z.device.Close(); err != nil {
		return Refused(op, hw.ResourceProtectionDomain, err)
	}
	z.closed = true
	gone()
	return nil
}

// ClosedZone returns the error of the call op for a zone that is nil or closed.
func ClosedZone(op string) *hw.Error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "the protection zone is nil or closed")
}
