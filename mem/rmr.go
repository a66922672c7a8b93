package mem

import (
	"sync"

	"godat/hw"
)

// RMR is a remote memory region, a window: a context of its own under which peers
// reach a part of a region. An endpoint binds it ([godat/ep.Endpoint.PostBind]),
// which is cheap beside making a region, and each bind gives another context. Its
// methods may be called from any goroutine. It answers to DAT_RMR_HANDLE.
type RMR struct {
	// Immutable.
	pz     *PZ
	owner  any // the endpoint of RMRScopeEP
	window hw.Window

	mu     sync.Mutex
	posted int  // binds that have not completed
	keyed  bool // one of them gives a context
	bound  Binding
	remote uint32 // the context that bound has; 0: it is not bound
	closed bool
}

// RMRScope says which endpoints a window belongs to: DAT_RMR_SCOPE.
type RMRScope uint8

// The scopes.
const (
	RMRScopeEP  RMRScope = 0 // one endpoint binds it, and only its peer reaches it
	RMRScopePZ  RMRScope = 1 // the endpoints of a zone
	RMRScopeAny RMRScope = 2 // as an attribute of a provider: either
)

// Binding is what a window is bound to. The zero Binding is to nothing: it
// unbinds, as does any with no privileges or a segment of length 0.
type Binding struct {
	// Segment is the part of a region of the window's zone that peers may reach.
	Segment Segment
	// Privileges are what they may do with it: RemoteRead, for which the region
	// needs LocalRead, RemoteWrite and RemoteAtomic, for which it needs LocalWrite.
	// Local privileges mean nothing here.
	Privileges hw.Privileges
	// ZeroBased has peers count addresses from 0, the segment's first byte, where
	// the device can do that (hw.Attr.ZeroBased).
	ZeroBased bool
}

const remotePrivileges = hw.RemoteRead | hw.RemoteWrite | hw.RemoteAtomic

// unbinds reports whether the binding is to nothing.
func (b *Binding) unbinds() bool { return b.Segment.Len == 0 || b.Privileges == hw.NoPrivileges }

// NewRMR makes a window that is not bound. A device without windows is
// MODEL_NOT_SUPPORTED. It may block. It answers to dat_rmr_create.
func (p *PZ) NewRMR() (*RMR, error) { return p.NewRMRFor(nil, nil) }

// NewRMRFor makes a window for one endpoint, given its queue pair and itself. It
// is for package ep, whose [godat/ep.Endpoint.NewRMR] programs call.
func (p *PZ) NewRMRFor(qp hw.QP, owner any) (*RMR, error) {
	const op = "mem.NewRMR"
	if p == nil {
		return nil, closedPZ(op)
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
	if err := p.use(op); err != nil {
		return nil, err
	}
	window, err := binder.NewWindow(p.zone, qp)
	if err != nil {
		p.Unuse()
		return nil, refused(op, hw.ResourceMemoryRegion, err)
	}
	r := &RMR{pz: p, owner: owner, window: window}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rmrs[r] = struct{}{}
	d.counters.Windows++
	return r, nil
}

// PZ is the zone the window is in; nil for a nil window.
func (r *RMR) PZ() *PZ {
	if r == nil {
		return nil
	}
	return r.pz
}

// Free ends the window. If it is bound it is unbound: a peer's access through it
// fails with REMOTE_ACCESS from then on, and the wait for one in progress is as
// that of [LMR.Free]. While a bind is outstanding it is INVALID_STATE and nothing
// happens. Freeing it again does nothing. It answers to dat_rmr_free.
func (r *RMR) Free() error {
	if r == nil {
		return deadRMR("mem.RMR.Free")
	}
	return r.free(false)
}

// free is Free; with force an outstanding bind is no reason to refuse.
func (r *RMR) free(force bool) error {
	const op = "mem.RMR.Free"
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil
	case r.posted > 0 && !force:
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "%d binds are outstanding", r.posted)
	}
	if err := r.window.Close(); err != nil {
		return refused(op, hw.ResourceMemoryRegion, err)
	}
	r.closed = true
	r.pz.domain.dropRMR(r)
	r.pz.Unuse()
	return nil
}

// RMRField is a mask of what [RMR.Query] is asked for: DAT_RMR_PARAM_MASK, with
// its numbers.
type RMRField uint32

// The fields of a window.
const (
	RMRFieldIA            RMRField = 1 << iota // Domain, which stands for the adapter here
	RMRFieldPZ                                 // PZ
	RMRFieldSegment                            // Segment
	RMRFieldPrivileges                         // Privileges
	RMRFieldRemoteContext                      // RemoteContext
	RMRFieldScope                              // Scope
	RMRFieldVAType                             // ZeroBased
	RMRFieldAll           = 1<<iota - 1
)

// RMRParam describes a window: DAT_RMR_PARAM. Of one that is not bound Segment,
// Privileges and RemoteContext are zero.
type RMRParam struct {
	Domain        *Domain
	PZ            *PZ
	Segment       Segment // what it is bound to
	Privileges    hw.Privileges
	RemoteContext uint32
	Scope         RMRScope
	ZeroBased     bool
}

// Query reports what mask asks for; the other fields are zero. What it is bound to
// is what the last bind that completed has said, unless the device tells that a
// peer has invalidated it since. A bit that is no field is INVALID_PARAMETER, a
// freed window INVALID_HANDLE/RMR. It answers to dat_rmr_query.
func (r *RMR) Query(mask RMRField) (RMRParam, error) {
	const op = "mem.RMR.Query"
	if r == nil {
		return RMRParam{}, deadRMR(op)
	}
	if mask&^RMRFieldAll != 0 {
		return RMRParam{}, hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "mask %#x", uint32(mask))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return RMRParam{}, deadRMR(op)
	}
	if w, ok := r.window.(hw.Bound); ok && r.posted == 0 && !w.Bound() {
		r.bound, r.remote = Binding{}, 0
	}
	scope := RMRScopePZ
	if r.owner != nil {
		scope = RMRScopeEP
	}
	var q RMRParam
	fill(mask&RMRFieldIA, &q.Domain, r.pz.domain)
	fill(mask&RMRFieldPZ, &q.PZ, r.pz)
	fill(mask&RMRFieldSegment, &q.Segment, r.bound.Segment)
	fill(mask&RMRFieldPrivileges, &q.Privileges, r.bound.Privileges)
	fill(mask&RMRFieldRemoteContext, &q.RemoteContext, r.remote)
	fill(mask&RMRFieldScope, &q.Scope, scope)
	fill(mask&RMRFieldVAType, &q.ZeroBased, r.bound.ZeroBased)
	return q, nil
}

func deadRMR(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleRMR, "the window is nil or freed")
}

// HasRMR reports whether there is a window that was made for that endpoint. It is
// for package ep.
func (d *Domain) HasRMR(owner any) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for r := range d.rmrs {
		if r.owner == owner {
			return true
		}
	}
	return false
}
