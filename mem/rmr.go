package mem

import (
	"godat/hw"
	"godat/internal/door"
	"godat/internal/memory"
)

// RMR is a remote memory region, also called a window: a context of its own under
// which peers access a part of a region. An endpoint binds it
// ([godat/ep.Endpoint.PostBind]), which is cheap compared with making a region, and
// each bind gives another context. Its methods may be called from any goroutine. It
// answers to DAT_RMR_HANDLE.
//
// [PZ.NewRMR] makes one for the endpoints of a zone, [godat/ep.Endpoint.NewRMR] for one endpoint.
type RMR struct {
	pz     *PZ
	number uint64
	window *memory.Window
}

// RMRScope says which endpoints may bind a window: DAT_RMR_SCOPE.
type RMRScope uint8

// The scopes.
const (
	RMRScopeEP RMRScope = 0 // one endpoint may bind it, and only its peer may use it
	RMRScopePZ RMRScope = 1 // every endpoint of the zone may bind it
)

// Binding is what a window is bound to. The zero Binding unbinds, as does every
// Binding with no privileges or a segment of length 0.
type Binding struct {
	// Segment is the part of a region that peers may access. The region is of the
	// window's zone.
	Segment Segment
	// Privileges are what peers may do: RemoteRead, for which the region needs
	// LocalRead, and RemoteWrite and RemoteAtomic, for which it needs LocalWrite.
	// Local privileges have no effect here.
	Privileges hw.Privileges
	// ZeroBased makes peers count addresses from 0, the segment's first byte, if
	// the device can do that (hw.Attr.ZeroBased).
	ZeroBased bool
}

// NewRMR makes a window that is not bound. A device without windows is
// MODEL_NOT_SUPPORTED. It may block.
// It answers to dat_rmr_create.
func (p *PZ) NewRMR() (*RMR, error) { return p.NewRMRFor(door.Key{}, nil, nil) }

// NewRMRFor makes a window that only one endpoint may bind; qp is its queue pair,
// and owner identifies it. [godat/ep.Endpoint.NewRMR] calls it.
func (p *PZ) NewRMRFor(_ door.Key, qp hw.QP, owner *memory.Owner) (*RMR, error) {
	const op = "mem.NewRMR"
	if p == nil {
		return nil, memory.ClosedZone(op)
	}
	d := p.domain
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.gate.RUnlock()
	binder, ok := d.dev.(hw.Binder)
	if !ok {
		return nil, hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "windows on %s", d.attr.Device)
	}
	if err := p.zone.Use(op); err != nil {
		return nil, err
	}
	window, err := binder.NewWindow(p.zone.Device(), qp)
	if err != nil {
		p.zone.Unuse()
		return nil, memory.Refused(op, hw.ResourceMemoryRegion, err)
	}
	r := &RMR{pz: p, number: windowNumbers.Add(1), window: memory.NewWindow(window, p.zone, owner)}
	d.rmrs.add(r, 0)
	p.rmrs.add(r, 0)
	return r, nil
}

// Window returns what endpoints need of the window; nil for a nil window.
func (r *RMR) Window(door.Key) *memory.Window {
	if r == nil {
		return nil
	}
	return r.window
}

// PZ returns the zone of the window; nil for a nil window.
func (r *RMR) PZ() *PZ {
	if r == nil {
		return nil
	}
	return r.pz
}

// Free ends the window and unbinds it: a peer's access through it fails with
// REMOTE_ACCESS from then on. Free waits for an access in progress as [LMR.Free]
// does. While a bind is outstanding it is INVALID_STATE and has no effect. Freeing
// a freed window does nothing.
// It answers to dat_rmr_free.
func (r *RMR) Free() error {
	if r == nil || r.window == nil {
		return memory.DeadWindow(opFreeRMR)
	}
	return r.free(false)
}

// free is Free; with force it frees the window in spite of an outstanding bind.
func (r *RMR) free(force bool) error {
	return r.window.Close(opFreeRMR, force, func() {
		r.pz.rmrs.drop(r, 0)
		r.pz.domain.rmrs.drop(r, 0)
	})
}

const opFreeRMR = "mem.RMR.Free"

// RMRParam describes a window: DAT_RMR_PARAM. While the window is not bound
// Binding and RemoteContext are zero.
type RMRParam struct {
	Binding       // what the window is bound to
	RemoteContext uint32
	Scope         RMRScope
}

// Query describes the window. The binding is that of the last bind that completed, unless
// the device reports that a peer has invalidated it since. A freed window is
// INVALID_HANDLE/RMR. It answers to dat_rmr_query.
func (r *RMR) Query() (RMRParam, error) {
	const op = "mem.RMR.Query"
	if r == nil || r.window == nil {
		return RMRParam{}, memory.DeadWindow(op)
	}
	to, context, err := r.window.Bound(op)
	if err != nil {
		return RMRParam{}, err
	}
	scope := RMRScopePZ
	if r.window.OfEndpoint() {
		scope = RMRScopeEP
	}
	return RMRParam{
		Binding:       Binding{Segment: Segment(to.Segment), Privileges: to.Privileges, ZeroBased: to.ZeroBased},
		RemoteContext: context, Scope: scope,
	}, nil
}

// Home returns the adapter. Package runtime calls it.
func (r *RMR) Home(door.Key) (ia any, err error) {
	const op = "runtime.IAOf"
	if r == nil || r.window == nil {
		return nil, memory.DeadWindow(op)
	}
	if _, _, err := r.window.Bound(op); err != nil {
		return nil, err
	}
	return r.pz.domain.ia, nil
}
