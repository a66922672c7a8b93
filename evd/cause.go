package evd

import (
	"errors"

	"godat/hw"
)

// connectionEnd is the Data of the event that ends a connection, or the attempt at
// one, and the error that the event has.
type connectionEnd struct {
	number  Number
	private []byte
	cause   *hw.Cause
}

// ConnectionEnd makes the event of a connection's end, or of the end of an attempt
// at one; package ep puts it.
func ConnectionEnd(n Number, source any, private []byte, cause *hw.Cause) Event {
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

// Cause is why a connection, or the attempt at one, ended; nil for other events, and
// where the event's number says all that is known.
func (e Event) Cause() *hw.Cause {
	if end, ok := e.Data.(*connectionEnd); ok {
		return end.cause
	}
	return nil
}
