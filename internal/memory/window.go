package memory

import (
	"sync"
	"sync/atomic"

	"godat/hw"
)

// Binding is what a window is bound to. A Binding with no privileges or of length 0
// unbinds the window.
type Binding struct {
	Segment    Segment
	Privileges hw.Privileges
	ZeroBased  bool // peers count addresses from 0
}

const remotePrivileges = hw.RemoteRead | hw.RemoteWrite | hw.RemoteAtomic

func (b *Binding) unbinds() bool { return b.Segment.Len == 0 || b.Privileges == hw.NoPrivileges }

// Remote returns the name by which peers reach the memory, if the binding has that
// context.
func (b *Binding) Remote(context uint32) Segment {
	switch {
	case b.unbinds():
		return Segment{}
	case b.ZeroBased:
		return Segment{Len: b.Segment.Len, Context: context}
	}
	return Segment{Addr: b.Segment.Addr, Len: b.Segment.Len, Context: context}
}

// Owner counts the windows that only one endpoint may bind. That endpoint has one
// Owner, which identifies it to its windows.
type Owner struct{ windows atomic.Int32 }

// HasWindows reports whether the owner has a window that is not freed.
func (o *Owner) HasWindows() bool { return o.windows.Load() > 0 }

// Window is a remote memory region. Its methods may be called from any goroutine.
type Window struct {
	// Immutable.
	zone   *Zone
	owner  *Owner // nil: every endpoint of the zone may bind it
	device hw.Window

	mu     sync.Mutex
	posted int  // binds that have not completed
	keyed  bool // one of these binds gives a context
	bound  Binding
	remote uint32 // the context of bound; 0: the window is not bound
	closed bool
}

// NewWindow makes the window for a device's window. The caller has called Use on
// the zone; the window calls Unuse when it is closed.
func NewWindow(device hw.Window, zone *Zone, owner *Owner) *Window {
	if owner != nil {
		owner.windows.Add(1)
	}
	return &Window{zone: zone, owner: owner, device: device}
}

// Owner identifies the endpoint that alone may bind the window; nil if every one of the zone may.
func (w *Window) Owner() *Owner { return w.owner }

// OfEndpoint reports whether only one endpoint may bind the window.
func (w *Window) OfEndpoint() bool { return w.owner != nil }

// BeginBind checks a bind that an endpoint of zone z is about to post, describes it
// for the device, and counts it as outstanding until EndBind or CancelBind. owner
// identifies the endpoint.
//
// A window of another adapter is INVALID_HANDLE/RMR. Another zone is
// PROTECTION_VIOLATION, and so is another endpoint if the window has an owner. A
// range outside its region is INVALID_PARAMETER, a region without the local
// privilege PRIVILEGES_VIOLATION, a region that was freed INVALID_HANDLE/LMR. While
// a bind of the window that gives a context is outstanding, another such bind is
// INVALID_STATE, since nobody could tell which of the two a peer would reach.
func (w *Window) BeginBind(z *Zone, owner *Owner, b *Binding) (bind hw.Bind, err error) {
	const op = "mem.RMR.BeginBind"
	if w == nil {
		return bind, DeadWindow(op)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return bind, DeadWindow(op)
	case z.table != w.zone.table:
		return bind, hw.Errorf(op, hw.InvalidHandle, hw.HandleRMR, "the window is another adapter's")
	case w.zone != z:
		return bind, hw.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the window is in another protection zone")
	case w.owner != nil && w.owner != owner:
		return bind, hw.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the window is another endpoint's")
	case b.Privileges&^(hw.AllPrivileges|hw.RemoteAtomic) != 0:
		return bind, hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "privileges %v", b.Privileges)
	case b.unbinds():
		w.posted++
		return hw.Bind{Window: w.device}, nil
	}
	bind = hw.Bind{
		Window: w.device, Addr: b.Segment.Addr, Len: uint64(b.Segment.Len),
		Priv: b.Privileges & remotePrivileges, ZeroBased: b.ZeroBased,
	}
	if bind.MR, err = z.bindable(op, b); err != nil {
		return bind, err
	}
	if w.keyed {
		return bind, hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "another bind of the window is outstanding")
	}
	if bind.Key = w.device.NextKey(); bind.Key == 0 {
		return bind, hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemoryRegion, "the device has no contexts left")
	}
	w.posted++
	w.keyed = true
	return bind, nil
}

// bindable returns the device's region that the binding refers to, or why it can't
// be bound.
func (z *Zone) bindable(op string, b *Binding) (hw.MR, error) {
	var need hw.Privileges
	if b.Privileges&hw.RemoteRead != 0 {
		need |= hw.LocalRead
	}
	if b.Privileges&(hw.RemoteWrite|hw.RemoteAtomic) != 0 {
		need |= hw.LocalWrite
	}
	s := &b.Segment
	r := z.table.Lookup(s.Context)
	switch {
	case b.Privileges&remotePrivileges == 0:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "privileges %v give a peer nothing", b.Privileges)
	case b.ZeroBased && !z.attr.ZeroBased:
		return nil, hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "addresses from zero on %s", z.attr.Device)
	case r == nil:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleLMR, "context %#x names no region, or a freed one", s.Context)
	case r.Zone != z:
		return nil, hw.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the region is in another protection zone")
	case !r.Holds(s.Addr, s.Len):
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg3, "%s", r.Outside(s.Addr, s.Len))
	}
	if missing := need &^ r.Priv; missing != 0 {
		return nil, hw.Errorf(op, hw.PrivilegesViolation, privilege(missing), "the region has %v; this needs %v", r.Priv, need)
	}
	return r.MR, nil
}

// CancelBind undoes BeginBind: the bind was not posted. context is the one that
// BeginBind gave; no peer knows it.
func (w *Window) CancelBind(context uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endBind(context)
}

func (w *Window) endBind(context uint32) {
	w.posted--
	if context != 0 {
		w.keyed = false
	}
}

// EndBind records that a bind has completed; done reports whether it succeeded. It
// gives up the context of a failed bind, wherever the bind failed: a peer that was
// told that context must not reach what a later bind gives.
func (w *Window) EndBind(b *Binding, context uint32, done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endBind(context)
	switch {
	case !done:
		if context != 0 {
			w.device.Forget(context)
		}
	case context == 0:
		w.bound, w.remote = Binding{}, 0
	default:
		w.bound, w.remote = *b, context
	}
}

// Bound returns for the call op what the window is bound to, and under which
// context; both are zero when it is not bound. A freed window is
// INVALID_HANDLE/RMR.
func (w *Window) Bound(op string) (to Binding, context uint32, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return Binding{}, 0, DeadWindow(op)
	}
	if w.posted == 0 && !w.device.Bound() {
		w.bound, w.remote = Binding{}, 0 // a peer has invalidated it
	}
	return w.bound, w.remote, nil
}

// Close frees the window for the call op, which unbinds it. While a bind is
// outstanding it is INVALID_STATE and has no effect, unless force is set. The call
// that frees the window runs gone before any other call sees the window freed; a
// later call does nothing.
func (w *Window) Close(op string, force bool, gone func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return nil
	case w.posted > 0 && !force:
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "%d binds are outstanding", w.posted)
	}
	if err := w.device.Close(); err != nil {
		return Refused(op, hw.ResourceMemoryRegion, err)
	}
	w.closed = true
	gone()
	if w.owner != nil {
		w.owner.windows.Add(-1)
	}
	w.zone.Unuse()
	return nil
}

// DeadWindow returns the error of the call op for a window that is nil or freed.
func DeadWindow(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleRMR, "the window is nil or freed")
}
