package ep

import (
	"godat/evd"
	"godat/hw"
	"godat/internal/door"
	"godat/internal/memory"
	"godat/mem"
)

// pendingBind is what a slot has more of when its operation is a bind.
type pendingBind struct {
	hw.Bind
	rmr *mem.RMR
	to  memory.Binding
}

// NewRMR makes a window that only this endpoint can bind and only its peer can
// reach. It outlives a Reset, and is freed before the endpoint's zone. Errors are
// those of [mem.PZ.NewRMR]. It answers to dat_rmr_create_for_ep.
func (e *Endpoint) NewRMR() (*mem.RMR, error) {
	const op = "ep.NewRMR"
	if err := alive(op, e); err != nil {
		return nil, err
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	if e.box.qp == nil {
		return nil, &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEPPZ, Text: "the endpoint has no protection zone yet"}
	}
	r, err := e.box.pz().NewRMRFor(door.Key{}, e.box.qp, &e.windows)
	return r, wrap(op, err)
}

// PostBind binds a window to a part of a region, in place of what it was bound to,
// and returns how peers name that part. The name is good when the bind has
// completed; what is posted to this endpoint later finds it done, so it may carry
// the name at once. The name that the window had before is dead then: a peer that
// uses it gets REMOTE_ACCESS, and the connection breaks. The zero Binding unbinds.
//
// nil means that exactly one completion follows, or none if flags has Suppress and
// it succeeds: an event RMR_BIND_COMPLETION on the request dispatcher; [RMROf] is
// its window. Legal flags are Suppress, BarrierFence, and Unsignalled if the
// endpoint's attributes have it. Errors beyond those of every post: a window of
// another adapter is INVALID_HANDLE/RMR; another zone, or another endpoint for a
// window that NewRMR made, PROTECTION_VIOLATION; a range outside its region
// INVALID_PARAMETER, a region without the local privilege PRIVILEGES_VIOLATION, one
// that was freed INVALID_HANDLE/LMR; a second bind that gives a name while the first is
// outstanding INVALID_STATE, since nobody could tell which a peer would reach; a
// dispatcher that does not take the stream StreamBind INVALID_STATE/EP_EVD_REQUEST.
// See PostSend for the rest.
// It answers to dat_rmr_bind.
func (e *Endpoint) PostBind(cookie uint64, flags hw.Flags, rmr *mem.RMR, to mem.Binding) (mem.RemoteSegment, error) {
	const op = "ep.PostBind"
	if e == nil {
		return mem.RemoteSegment{}, nilEndpoint(hw.OpBind)
	}
	q := &e.box.requests
	w := work{op: hw.OpBind, flags: flags, cookie: cookie}
	r := q.rules.Load()
	if _, err := r.check(&w, e.State()); err != nil {
		return mem.RemoteSegment{}, err
	}
	if d := r.evd; d != nil && !wiring(d).Takes(evd.StreamBind) {
		return mem.RemoteSegment{}, &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEPEVDRequest, Text: "the dispatcher does not take binds"}
	}
	window, binding := rmr.Window(door.Key{}), inner(&to)
	bind, err := window.BeginBind(r.zone, &e.windows, &binding)
	if err != nil {
		return mem.RemoteSegment{}, wrap(op, err)
	}
	ticket, word, mine, err := e.box.admit(q, r, &w, 0)
	if err != nil {
		window.CancelBind(bind.Key)
		return mem.RemoteSegment{}, err
	}
	p := &q.pendingBinds()[ticket&q.mask]
	p.Bind, p.rmr, p.to = bind, rmr, binding
	e.box.request(ticket, word, mine)
	return mem.RemoteSegment(binding.Remote(bind.Key)), nil
}

// inner is the binding as [memory.Window] knows it.
func inner(to *mem.Binding) memory.Binding {
	return memory.Binding{Segment: memory.Segment(to.Segment), Privileges: to.Privileges, ZeroBased: to.ZeroBased}
}

// pendingBinds are the slots' places for binds, for who has a ticket. Most
// endpoints never bind.
func (q *queue) pendingBinds() []pendingBind {
	if b := q.binds.Load(); b != nil {
		return *b
	}
	b := make([]pendingBind, len(q.slots))
	q.binds.CompareAndSwap(nil, &b)
	return *q.binds.Load()
}

// describeBind completes the request of a bind. It is always signaled, since its
// window has to hear of the end.
func (q *queue) describeBind(wr *hw.SendWR, t uint32) {
	wr.Bind = &(*q.binds.Load())[t&q.mask].Bind
	wr.Flags |= hw.WRSignaled
}

// endBind tells the window of the slot that its bind has completed.
func (q *queue) endBind(slot uint32, status hw.Status) {
	p := &(*q.binds.Load())[slot]
	p.rmr.Window(door.Key{}).EndBind(&p.to, p.Key, status == hw.StatusSuccess)
}

// RMROf is the window that a RMR_BIND_COMPLETION event is about, or nil.
func RMROf(ev evd.Event) *mem.RMR {
	r, _ := ev.Data.(*mem.RMR)
	return r
}
