package mem

import (
	"errors"
	"sync"

	"godat/hw"
	"godat/internal/door"
	"godat/internal/keys"
	"godat/internal/memory"
)

// MaxRegions is the most regions of a domain, if the device has no lower limit.
const MaxRegions = 1 << 20

// Domain is all the memory of one interface adapter: its zones, regions and windows, and the
// table of contexts that posts are checked against. Only the adapter has it. Its methods may
// be called from any goroutine.
type Domain struct {
	// Immutable after NewDomain.
	ia    any
	dev   hw.Device
	attr  hw.Attr
	table *memory.Table

	// Every call that makes an object on the device holds gate shared. Close takes
	// it exclusively, so that no such call runs or begins after that.
	gate   sync.RWMutex
	closed bool // guarded by gate

	zones  set[*PZ]
	lmrs   set[*LMR]
	rmrs   set[*RMR]
	blocks set[*block]

	// mu guards the fields below, for a few instructions at a time.
	mu             sync.Mutex
	countersBefore Counters // at the last reset
	retired        []*block // blocks of freed regions that are still mapped, oldest first
	retiredBytes   int
}

// NewDomain makes the domain of a device, which stays the caller's and outlives the domain.
// ia is the interface adapter that the domain's objects return from their queries.
func NewDomain(_ door.Key, dev hw.Device, ia any) *Domain {
	attr := dev.Attr()
	return &Domain{ia: ia, dev: dev, attr: attr, table: keys.New[memory.Region](min(max(attr.MaxMRs, 1), MaxRegions))}
}

// NewPZ makes a protection zone. It may block. A closed domain is INVALID_HANDLE/IA.
func (d *Domain) NewPZ() (*PZ, error) {
	const op = "mem.NewPZ"
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.gate.RUnlock()
	zone, err := d.dev.NewZone()
	if err != nil {
		return nil, memory.Refused(op, hw.ResourceProtectionDomain, err)
	}
	p := &PZ{domain: d, number: zoneNumbers.Add(1), zone: memory.NewZone(zone, &d.attr, d.table)}
	d.zones.add(p, 0)
	return p, nil
}

// Has reports whether the zone belongs to the domain.
func (d *Domain) Has(p *PZ) bool { return p != nil && p.domain == d }

// Stats say what a domain has now.
type Stats struct {
	Zones, Windows int
	// Regions counts the regions whose Free has not returned; Bytes is their length
	// together.
	Regions int
	Bytes   int64
	// Mapped counts the ranges of memory that are mapped; MappedBytes is their
	// length together, in whole pages. The range of an allocated region stays
	// mapped for some time after Free; see [WithUnmapOnFree].
	Mapped      int
	MappedBytes int64
}

// Stats returns what the domain has now; zero for a nil domain.
func (d *Domain) Stats() (s Stats) {
	if d != nil {
		s.Zones, _ = d.zones.size()
		s.Windows, _ = d.rmrs.size()
		s.Regions, s.Bytes = d.lmrs.size()
		s.Mapped, s.MappedBytes = d.blocks.size()
	}
	return s
}

// Close frees every window, ends every region, closes every zone and unmaps the ranges
// that freed regions have left. It leaves the program what that still has: the memory of
// regions until [LMR.Free], and that of a pool until all buffers that were taken are back.
// It waits for calls in progress, and then for each region as Free does. It returns the
// errors of objects that could not be ended; those stay, and another Close tries them
// again. The caller closes the device's queue pairs before: a zone that still has one stays.
func (d *Domain) Close() error {
	if d == nil {
		return closedDomain("mem.Domain.Close")
	}
	d.gate.Lock()
	d.closed = true
	d.gate.Unlock()

	var errs []error
	for _, r := range d.rmrs.all() {
		errs = append(errs, r.free(true))
	}
	for _, l := range d.lmrs.all() {
		errs = append(errs, l.end())
	}
	for _, p := range d.zones.all() {
		errs = append(errs, p.close(true))
	}
	for _, b := range d.blocks.all() {
		if b.users.Load() == 0 { // else the program has the memory, or a region in it could not be ended
			errs = append(errs, d.unmap(b))
		}
	}
	return errors.Join(errs...)
}

// enter begins a call that makes an object on the device; gate.RUnlock ends it.
func (d *Domain) enter(op string) error {
	if d == nil {
		return closedDomain(op)
	}
	d.gate.RLock()
	if d.closed {
		d.gate.RUnlock()
		return closedDomain(op)
	}
	return nil
}

// unmap unmaps a range that no region uses. Of several calls one does it. A range that the
// system refuses to unmap stays the domain's.
func (d *Domain) unmap(b *block) error {
	if !d.blocks.drop(b, len(b.whole)) {
		return nil
	}
	if err := b.unmap(); err != nil {
		d.blocks.add(b, len(b.whole))
		return hw.Errorf("mem", hw.InternalError, hw.NoSubtype, "can't unmap %d bytes: %w", len(b.whole), err)
	}
	return nil
}

func closedDomain(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the adapter is closed")
}
