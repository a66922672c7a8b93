package event

import (
	"errors"

	"godat/hw"
	"godat/internal/door"
)

// connectionEnd is the Data of the event that ends a connection, or the attempt at
// one, and the error that the event has.
type connectionEnd struct {
	number  Number
	private []byte
	cause   *hw.Cause
}

// ConnectionEnd makes the event of a connection's end, or of the end of an attempt
// at one. Only package ep makes such events.
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

// Is matches what the error of the number alone matches.
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

// Cause is why a connection, or the attempt at one, ended: of the event that tells of
// the end, an orderly one too, and of the completions that were flushed by it. It is
// nil for other events, and where nobody knew when the completion was flushed.
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

// Ended reports whether the event tells of the end of a connection, or of an attempt
// at one: it is the last event of that connection, and Err says why it ended, nil
// for an end in order.
func (e Event) Ended() bool { return e.Number != Established && e.Number.Stream() == StreamConnection }
