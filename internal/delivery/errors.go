package delivery

import (
	"errors"

	"godat/hw"
)

// errAborted ends a wait whose dispatcher was closed.
var errAborted = errors.New("the dispatcher was closed")

// errUnwaitable ends a wait whose dispatcher was made unwaitable.
var errUnwaitable = errors.New("the dispatcher is unwaitable")

// ErrNoContext refuses a wait without a context.
var ErrNoContext = errors.New("the context is nil")

// errThreshold ends a wait for more events than the queue can hold since a Resize.
var errThreshold = errors.New("the threshold is above the queue length")

// Errors of calls that a program may make often, made once.
var (
	errDequeueClosed error = &hw.Error{Op: "evd.Dequeue", Type: hw.InvalidHandle, Sub: hw.Handle1}
	errDequeueWaiter error = &hw.Error{Op: "evd.Dequeue", Type: hw.InvalidState, Sub: hw.StateEVDWaiter}
	errWaitWaiter    error = &hw.Error{Op: "evd.Wait", Type: hw.InvalidState, Sub: hw.StateEVDWaiter}
	errSoftwareFull  error = &hw.Error{Op: "evd.PostSoftware", Type: hw.QueueFull}
	errArmBusy       error = &hw.Error{Op: "evd.OneShot.Arm", Type: hw.InvalidState, Text: "the request is armed, or its event was not received"}
	errArmClosed     error = &hw.Error{Op: "evd.OneShot.Arm", Type: hw.InvalidHandle, Sub: hw.Handle1}
)

func invalidHandle(op string) error {
	return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.Handle1}
}
