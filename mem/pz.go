package mem

import (
	"errors"

	"godat/internal/door"
	"godat/internal/memory"
)

// PZ is a protection zone: an endpoint can use only memory of its own zone. Its
// methods may be called from any goroutine. It answers to DAT_PZ_HANDLE.
//
// [godat/runtime.IA.NewPZ] makes one. It lives until Close, which fails while something is in it, or until
// the adapter closes.
type PZ struct {
	domain *Domain
	number uint64
	zone   *memory.Zone
	rmrs   set[*RMR]
}

// Zone returns what endpoints need of the zone; nil for a nil zone.
func (p *PZ) Zone(door.Key) *memory.Zone {
	if p == nil {
		return nil
	}
	return p.zone
}

// Close frees the zone. While a region, a window, an endpoint or a shared receive
// queue is in it, Close fails with INVALID_STATE/PZ_IN_USE and has no effect.
// Closing a closed zone does nothing.
// It answers to dat_pz_free.
func (p *PZ) Close() error {
	if p == nil || p.zone == nil {
		return memory.ClosedZone(opClosePZ)
	}
	return p.close(false)
}

// close frees the zone. With force it asks the device in spite of dependants,
// because the device knows whether a queue pair is left.
func (p *PZ) close(force bool) error {
	return p.zone.Close(opClosePZ, force, func() { p.domain.zones.drop(p, 0) })
}

const opClosePZ = "mem.PZ.Close"

// FreeWindows frees the windows of the zone that only one endpoint may bind, or all with a nil
// owner. Only a connection of package runtime calls it, which has closed its endpoint.
func (p *PZ) FreeWindows(_ door.Key, owner *memory.Owner) error {
	var errs []error
	for _, r := range p.rmrs.all() {
		if owner == nil || r.window.Owner() == owner {
			errs = append(errs, r.free(false))
		}
	}
	return errors.Join(errs...)
}

// Home returns the adapter. Package runtime calls it.
func (p *PZ) Home(door.Key) (ia any, err error) {
	if p == nil || p.zone == nil || p.zone.Closed() {
		return nil, memory.ClosedZone("runtime.IAOf")
	}
	return p.domain.ia, nil
}
