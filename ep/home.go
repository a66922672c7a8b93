package ep

import (
	"godat/ep/internal/life"
	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
)

// home is an endpoint as the owner of its mailbox.
type home Endpoint

func (h *home) machine() *machine { return (*machine)(h) }

func (h *home) Handle(told uint32) { h.machine().handle(told) }
func (h *home) Execute()           { h.machine().execute() }
func (h *home) Ended()             { h.machine().ended() }
func (h *home) Failed(err error)   { h.machine().take(life.InFailure, life.Detail{Err: err}) }

var errForeignShot = &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleEVDRequest, Text: "the one-shot's dispatcher is another adapter's"}

func (h *home) Arm(shot *evd.OneShot, to *delivery.Dispatcher) (*delivery.Queue, error) {
	wired := shot.Wiring(door.Key{})
	if !wired.Serves(to, h.adapter.cfg.IA) {
		return nil, errForeignShot
	}
	return wired.Arm()
}

// NoRoom is line.Owner.NoRoom. A dispatcher that was aborted with its adapter has no room either; its
// endpoint was closed before, and the error says so.
func (h *home) NoRoom(call string, to *delivery.Queue) error {
	if s := (*Endpoint)(h).at(); s == life.Closed {
		return s.Refusal(call)
	}
	return fullQueue((*Endpoint)(h), call, to)
}

// NotIn is line.Owner.NotIn. It names the state that the poster has seen, which may be another by now.
func (h *home) NotIn(call string, s line.State) error { return life.State(s.Number()).Refusal(call) }

func (h *home) Why() *hw.Cause { return h.cause.Load() }

func (h *home) Refused(op hw.Op, status hw.Status) {
	h.record.note(chapter{what: whatFailed, op: op, status: status})
}

func (h *home) Took(posted int64, to *delivery.Queue) { h.adapter.latency.took(posted, to) }

func (h *home) TookShared(n int) {
	if h.marks.taken(h.adapter.cfg.Async, n) {
		h.box.Tell(line.TellOverrun)
	}
}
