package mem

import (
	"sync"

	"godat/hw"
	"godat/internal/keys"
)

// PZ is a protection zone: endpoints reach only memory of their own zone. Its
// methods may be called from any goroutine. It answers to DAT_PZ_HANDLE.
type PZ struct {
	// Immutable after NewPZ.
	domain *Domain
	table  *keys.Table[region] // the domain's
	zone   hw.Zone

	mu     sync.Mutex
	uses   int // endpoints, shared receive queues and regions
	closed bool
}

// Domain is the domain the zone was made in; nil for a nil zone.
func (p *PZ) Domain() *Domain {
	if p == nil {
		return nil
	}
	return p.domain
}

// Zone is the device's zone, for a queue pair's configuration; nil for a nil
// zone. Whoever keeps it calls Use first.
func (p *PZ) Zone() hw.Zone {
	if p == nil {
		return nil
	}
	return p.zone
}

// Use adds a dependant: the zone can't be closed until Unuse was called as often.
// A closed zone is INVALID_HANDLE/PZ.
func (p *PZ) Use() error { return p.use("mem.PZ.Use") }

func (p *PZ) use(op string) error {
	if p == nil {
		return closedPZ(op)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return closedPZ(op)
	}
	p.uses++
	return nil
}

// Unuse takes a dependant away. It panics if there is none, and does nothing to a nil
// zone, which never had one.
func (p *PZ) Unuse() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.uses == 0 {
		panic("mem: PZ.Unuse without Use")
	}
	p.uses--
}

// Close frees the zone. With a region or an endpoint in it, it is
// INVALID_STATE/PZ_IN_USE and nothing happens. Closing it again does nothing. It
// answers to dat_pz_free.
func (p *PZ) Close() error {
	if p == nil {
		return closedPZ("mem.PZ.Close")
	}
	return p.close(false)
}

// close frees the zone. With force it asks the device although there are
// dependants: the device knows whether a queue pair is left.
func (p *PZ) close(force bool) error {
	const op = "mem.PZ.Close"
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil
	case p.uses > 0 && !force:
		return hw.Errorf(op, hw.InvalidState, hw.StatePZInUse, "%d regions and endpoints are in it", p.uses)
	}
	if err := p.zone.Close(); err != nil {
		return refused(op, hw.ResourceProtectionDomain, err)
	}
	p.closed = true
	p.domain.mu.Lock()
	defer p.domain.mu.Unlock()
	delete(p.domain.zones, p)
	p.domain.counters.ZonesFreed++
	return nil
}

func closedPZ(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "the protection zone is nil or closed")
}
