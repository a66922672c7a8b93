package delivery

import (
	"errors"

	"godat/hw"
)

// What ends a wait, or refuses it.
var (
	errAborted    = errors.New("the dispatcher was closed")
	errUnwaitable = errors.New("the dispatcher is unwaitable")
	errThreshold  = errors.New("the threshold is above the queue length") // since a Resize
	ErrNoContext  = errors.New("the context is nil")
)

// waiterText says where the events of a dispatcher with a waiter come.
const waiterText = "another goroutine waits there, or the mode brings events by itself: by C, Batches or the callback"

// Errors of calls that a program may make often, made once.
var (
	errDequeueClosed       = InvalidHandle("evd.Dequeue")
	errDequeueWaiter error = &hw.Error{Op: "evd.Dequeue", Type: hw.InvalidState, Sub: hw.StateEVDWaiter, Text: waiterText}
	errWaitWaiter    error = &hw.Error{Op: "evd.Wait", Type: hw.InvalidState, Sub: hw.StateEVDWaiter, Text: waiterText}
	errSoftwareFull  error = &hw.Error{Op: "evd.PostSoftware", Type: hw.QueueFull}
	errArmBusy       error = &hw.Error{Op: "evd.OneShot.Arm", Type: hw.InvalidState, Text: "the request is armed, or its event was not received"}
	errArmClosed           = InvalidShot("evd.OneShot.Arm")
)

// InvalidHandle is the error of a call on a dispatcher that can't be used.
func InvalidHandle(op string) error {
	return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.Handle1, Text: "the dispatcher is nil, zero or closed; NewDispatcher makes one"}
}

// InvalidShot is the error of a call with a one-shot that can't be used.
func InvalidShot(op string) error {
	return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.Handle1, Text: "the one-shot is nil or was released, or its dispatcher is closed; NewOneShot makes one"}
}
