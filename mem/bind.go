package mem

import "godat/hw"

// BeginBind checks a bind that an endpoint of the zone is about to post, describes
// it for the device, and counts it as outstanding until EndBind. It is for package
// ep. owner is the endpoint.
//
// A window of another adapter is INVALID_HANDLE/RMR. Another zone, or another endpoint for a window of RMRScopeEP, is
// PROTECTION_VIOLATION; a range outside its region INVALID_PARAMETER, a region
// without the local privilege PRIVILEGES_VIOLATION, one that was freed
// INVALID_HANDLE/LMR. While a bind of the window that gives a context is
// outstanding, another such is INVALID_STATE: which of the two a peer would reach
// nobody could tell.
func (r *RMR) BeginBind(pz *PZ, owner any, b *Binding) (bind hw.Bind, err error) {
	const op = "mem.RMR.BeginBind"
	if r == nil {
		return bind, deadRMR(op)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return bind, deadRMR(op)
	case pz.Domain() != r.pz.domain:
		return bind, hw.Errorf(op, hw.InvalidHandle, hw.HandleRMR, "the window is another adapter's")
	case r.pz != pz:
		return bind, hw.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the window is in another protection zone")
	case r.owner != nil && r.owner != owner:
		return bind, hw.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the window is another endpoint's")
	case b.Privileges&^(hw.AllPrivileges|hw.RemoteAtomic) != 0:
		return bind, hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "privileges %v", b.Privileges)
	case b.unbinds():
		r.posted++
		return hw.Bind{Window: r.window}, nil
	}
	bind = hw.Bind{
		Window: r.window, Addr: b.Segment.Addr, Len: uint64(b.Segment.Len),
		Priv: b.Privileges & remotePrivileges, ZeroBased: b.ZeroBased,
	}
	if bind.MR, err = pz.bindable(op, b); err != nil {
		return bind, err
	}
	if r.keyed {
		return bind, hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "another bind of the window is outstanding")
	}
	if bind.Key = r.window.NextKey(); bind.Key == 0 {
		return bind, hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemoryRegion, "the device has no contexts left")
	}
	r.posted++
	r.keyed = true
	return bind, nil
}

// bindable is the device's region that a binding is to.
func (p *PZ) bindable(op string, b *Binding) (hw.MR, error) {
	var need hw.Privileges
	if b.Privileges&hw.RemoteRead != 0 {
		need |= hw.LocalRead
	}
	if b.Privileges&(hw.RemoteWrite|hw.RemoteAtomic) != 0 {
		need |= hw.LocalWrite
	}
	s := &b.Segment
	l := p.table.Lookup(s.Context)
	switch {
	case b.Privileges&remotePrivileges == 0:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "privileges %v give a peer nothing", b.Privileges)
	case b.ZeroBased && !p.domain.attr.ZeroBased:
		return nil, hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "addresses from zero on %s", p.domain.attr.Device)
	case l == nil:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleLMR, "context %#x names no region, or a freed one", s.Context)
	case l.pz != p:
		return nil, hw.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the region is in another protection zone")
	}
	if off := s.Addr - l.base; off > l.size || uint64(s.Len) > l.size-off {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg3,
			"%s", outside(*s, l.base, l.size))
	}
	if missing := need &^ l.priv; missing != 0 {
		return nil, hw.Errorf(op, hw.PrivilegesViolation, privilege(missing), "the region has %v; this needs %v", l.priv, need)
	}
	return l.mr, nil
}

// CancelBind takes BeginBind back: the bind was not posted after all. context is
// what it gave, which nobody knows.
func (r *RMR) CancelBind(context uint32) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endBind(context)
}

func (r *RMR) endBind(context uint32) {
	r.posted--
	if context != 0 {
		r.keyed = false
	}
}

// EndBind ends what BeginBind began: the bind has completed; done says whether it
// succeeded. The context of one that did not is given up, wherever it ended: what
// was told of it must not come true with a later bind.
func (r *RMR) EndBind(b *Binding, context uint32, done bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endBind(context)
	switch {
	case !done:
		if w, ok := r.window.(hw.Forgetter); ok && context != 0 {
			w.Forget(context)
		}
	case context == 0:
		r.bound, r.remote = Binding{}, 0
	default:
		r.bound, r.remote = *b, context
	}
}

// Remote is how peers name what a binding under a context gives them.
func (b *Binding) Remote(context uint32) RemoteSegment {
	if b.unbinds() {
		return RemoteSegment{}
	}
	addr := b.Segment.Addr
	if b.ZeroBased {
		addr = 0
	}
	return RemoteSegment{Addr: addr, Len: b.Segment.Len, Context: context}
}
