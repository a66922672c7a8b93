package ep

import (
	"godat/evd"
	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
)

// home is an endpoint as the owner of its mailbox.
type home Endpoint

// mailbox returns the endpoint's mailbox; nil for a nil endpoint.
func (e *Endpoint) mailbox() *mailbox {
	if e == nil {
		return nil
	}
	return &e.box
}

func (h *home) handle(told uint32) { h.machine.handle(told) }
func (h *home) execute()           { h.machine.execute() }
func (h *home) ended()             { h.machine.announceEndOnceFlushed() }
func (h *home) failed(err error) {
	h.machine.endConnection(inFailure, broken, nil, &hw.Cause{Text: "the device refused a request", Err: err})
}

var errForeignShot = &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleEVDRequest, Text: "the one-shot's dispatcher is another adapter's"}

func (h *home) arm(shot *evd.OneShot, to *delivery.Dispatcher) (*delivery.Queue, error) {
	wired := shot.Wiring(door.Key{})
	if !wired.Serves(to, h.adapter.cfg.IA) {
		return nil, errForeignShot
	}
	return wired.Arm()
}

// noRoom is boxOwner.noRoom. A dispatcher that was aborted with its adapter has no room either; its
// endpoint was closed before, and the error says so.
func (h *home) noRoom(call string, to *delivery.Queue) error {
	if h.box.State() == closed {
		return stateError(call, closed)
	}
	return fullQueue((*Endpoint)(h), call, to)
}

func (h *home) why() *hw.Cause { return h.cause.Load() }

func (h *home) refused(op hw.Op, status hw.Status) {
	h.record.note(chapter{what: whatFailed, op: op, status: status})
}

func (h *home) took(posted int64, to *delivery.Queue) { h.adapter.latency.took(posted, to) }

func (h *home) tookShared(n int) {
	if h.marks.taken(h.adapter.cfg.Async, n) {
		h.box.tell(tellOverrun)
	}
}
