package event

import (
	"errors"

	"godat/hw"
	"godat/internal/door"
)

// connectionEnd is the Data of the event that ends a connection, or the attempt at
// one. It is also the error that Err returns for the event.
type connectionEnd struct {
	number  Number
	private []byte
	cause   *hw.Cause
}

// ConnectionEnd makes the event of the end of a connection, or of an attempt at
// one. Only package ep makes such events.
func ConnectionEnd(_ door.Key, n Number, source any, private []byte, cause *hw.Cause) Event {
	ev := Event{Number: n, Source: source}
	if private != nil || cause != nil {
		ev.Data = &connectionEnd{n, private, cause}
	}
	return ev
}

// Error says what happened and why: "godat: connection: BROKEN: DDP: ...".
func (e *connectionEnd) Error() string {
	if e.cause == nil {
		return Error(e.number).Error()
	}
	return Error(e.number).Error() + ": " + e.cause.Error()
}

// Is reports whether the error of the number alone matches target.
func (e *connectionEnd) Is(target error) bool { return errors.Is(Error(e.number), target) }

// Unwrap returns the error of the number and the cause.
func (e *connectionEnd) Unwrap() []error {
	if e.cause == nil {
		return []error{Error(e.number)}
	}
	return []error{Error(e.number), e.cause}
}

// flushError is the error of a completion that the end of a connection flushed: the
// cause of that end.
type flushError hw.Cause

func (f *flushError) Error() string {
	return hw.StatusFlushed.Err().Error() + ": " + (*hw.Cause)(f).Error()
}

// Unwrap returns the error of the status and the cause.
func (f *flushError) Unwrap() []error { return []error{hw.StatusFlushed.Err(), (*hw.Cause)(f)} }

// Cause returns why a connection, or the attempt at one, ended: for the event of
// the end, an orderly one too, and for the completions that the end flushed. It is
// nil for other events, and for a completion whose cause was unknown when it was
// flushed.
func (e Event) Cause() *hw.Cause {
	switch data := e.Data.(type) {
	case *connectionEnd:
		return data.cause
	case *hw.Cause:
		if e.Number.Completion() {
			return data
		}
	}
	return nil
}

// Ended reports whether the event is the end of a connection, or of an attempt at
// one. It is the last event of that connection, and Err says why the connection
// ended: nil for an orderly end. It is true for Closed, too, the last event of a
// channel.
func (e Event) Ended() bool { return e.Number != Established && e.Number.Stream() == StreamConnection }
