package ep

import (
	"godat/ep/internal/line"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/door"
	"godat/mem"
)

// NewRMR makes a window that only this endpoint can bind and only its peer can
// reach. It outlives a Reset, and is freed before the endpoint's zone; the close of a connection
// of package runtime frees the windows of its endpoint. Errors are
// those of [mem.PZ.NewRMR]. It answers to dat_rmr_create_for_ep.
func (e *Endpoint) NewRMR() (*mem.RMR, error) {
	const op = "ep.NewRMR"
	if err := alive(op, e); err != nil {
		return nil, err
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	if e.box.QP() == nil {
		return nil, &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEPPZ, Text: "the endpoint has no protection zone yet"}
	}
	r, err := e.box.Requests.Rules().PZ.NewRMRFor(door.Key{}, e.box.QP(), &e.windows)
	return r, wrap(op, err)
}

// PostBind binds a window to a part of a region, in place of what it was bound to, and returns the
// name under which peers reach that part. The name is valid once the bind has completed; requests
// that are posted to this endpoint later find the bind done, so a message among them may carry the
// name at once. From then on the window's old name is dead: a peer that uses it gets REMOTE_ACCESS,
// and the connection breaks. The zero Binding unbinds.
//
// nil means that exactly one completion follows, or none if flags has Suppress and the bind
// succeeds: an event RMR_BIND_COMPLETION on the request dispatcher; [RMROf] returns its window.
// Legal flags are Suppress, BarrierFence, and Unsignalled if the endpoint's attributes have it.
//
// Errors beyond those of every post: INVALID_HANDLE/RMR for a window of another adapter;
// PROTECTION_VIOLATION for another zone, or for another endpoint if [Endpoint.NewRMR] made the
// window; INVALID_PARAMETER for a range outside its region; PRIVILEGES_VIOLATION for a region without
// the local privilege; INVALID_HANDLE/LMR for a region that was freed; INVALID_STATE for a second
// bind that gives a name while the first is outstanding, since nobody could tell which range a peer
// would reach; INVALID_STATE/EP_EVD_REQUEST for a dispatcher that does not take the stream
// StreamBind. See PostSend for the rest.
// It answers to dat_rmr_bind.
func (e *Endpoint) PostBind(cookie uint64, flags hw.Flags, rmr *mem.RMR, to mem.Binding) (mem.RemoteSegment, error) {
	if e == nil {
		return mem.RemoteSegment{}, line.NilEndpoint(hw.OpBind)
	}
	return e.box.PostBind(&e.windows, cookie, flags, rmr, to)
}

// RMROf returns the window that a RMR_BIND_COMPLETION event is about, or nil for another event.
func RMROf(ev event.Event) *mem.RMR {
	r, _ := ev.Data.(*mem.RMR)
	return r
}
