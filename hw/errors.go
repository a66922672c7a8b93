package hw

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

func (t Type) String() string {
	if s, ok := typeText[t]; ok {
		return s
	}
	return fmt.Sprintf("Type(%#x)", uint16(t))
}

func (s Subtype) String() string {
	if s == NoSubtype {
		return "no subtype"
	}
	return text(subtypeText[:], int(s), "Subtype")
}

// Error is a DAT return code, with the call that failed and the cause. A caller
// matches it with errors.Is against one of the Err variables, or against a *Error
// that holds the Type, and the Sub when that matters:
//
//	errors.Is(err, &hw.Error{Type: hw.InvalidState, Sub: hw.StateEPConnected})
type Error struct {
	Op   string // the call, "ep.PostSend"
	Type Type
	Sub  Subtype
	Text string // what exactly was wrong; may be empty
	Err  error  // the cause; may be nil
}

// Errorf makes an Error whose text is formatted; a %w in it becomes the cause.
func Errorf(op string, t Type, sub Subtype, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Op: op, Type: t, Sub: sub, Text: wrapped.Error(), Err: errors.Unwrap(wrapped)}
}

// Error implements error: "ep.PostSend: invalid state (EP unconnected): text".
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
		b.WriteString(": ")
	}
	b.WriteString(e.Type.String())
	said := e.Text != "" || e.Err != nil
	if e.Sub != NoSubtype && !(said && e.Sub >= Arg1 && e.Sub <= Arg10) { // C's argument numbers mean nothing in Go
		b.WriteString(" (" + e.Sub.String() + ")")
	}
	switch {
	case e.Text != "":
		b.WriteString(": " + e.Text)
	case e.Err != nil:
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches a *Error of the same Type, and the same Sub if the target has one.
// It also matches the standard library's error for the same condition:
// os.ErrDeadlineExceeded and context.DeadlineExceeded for a timeout,
// context.Canceled for an interrupted call, net.ErrClosed for an abort, and
// errors.ErrUnsupported for what the model or the provider does not have.
func (e *Error) Is(target error) bool {
	if t, ok := target.(*Error); ok {
		return e.Type == t.Type && (t.Sub == NoSubtype || t.Sub == e.Sub)
	}
	switch e.Type {
	case TimeoutExpired:
		return target == os.ErrDeadlineExceeded || target == context.DeadlineExceeded
	case InterruptedCall:
		return target == context.Canceled
	case Abort:
		return target == net.ErrClosed
	case ModelNotSupported, NotImplemented, CommNotSupported:
		return target == errors.ErrUnsupported
	}
	return false
}

// Timeout reports whether a time limit ran out.
func (e *Error) Timeout() bool { return e.Type == TimeoutExpired }

// Code is the DAT_RETURN that the C library would give: error class, type and
// subtype.
func (e *Error) Code() uint32 {
	if e.Type == Success {
		return 0
	}
	return 1<<31 | uint32(e.Type)<<16 | uint32(e.Sub)
}

// ParseCode splits a DAT_RETURN of the C library into type and subtype. It ignores
// the class (error, warning) in the two highest bits, because only some C
// providers set it.
func ParseCode(code uint32) (Type, Subtype) {
	return Type(code >> 16 & 0x3fff), Subtype(code)
}

// Strerror says in words what a DAT_RETURN of the C library means: major is its
// type, minor its subtype or empty if it has none. A number that DAT does not
// define comes out as a number. It answers to dat_strerror.
func Strerror(code uint32) (major, minor string) {
	t, s := ParseCode(code)
	if s == NoSubtype {
		return t.String(), ""
	}
	return t.String(), s.String()
}

// One error per return type, for errors.Is.
var (
	ErrAbort                     error = &Error{Type: Abort}
	ErrConnQualInUse             error = &Error{Type: ConnQualInUse}
	ErrInsufficientResources     error = &Error{Type: InsufficientResources}
	ErrInternal                  error = &Error{Type: InternalError}
	ErrInvalidHandle             error = &Error{Type: InvalidHandle}
	ErrInvalidParameter          error = &Error{Type: InvalidParameter}
	ErrInvalidState              error = &Error{Type: InvalidState}
	ErrLength                    error = &Error{Type: LengthError}
	ErrModelNotSupported         error = &Error{Type: ModelNotSupported}
	ErrProviderNotFound          error = &Error{Type: ProviderNotFound}
	ErrPrivileges                error = &Error{Type: PrivilegesViolation}
	ErrProtection                error = &Error{Type: ProtectionViolation}
	ErrQueueEmpty                error = &Error{Type: QueueEmpty}
	ErrQueueFull                 error = &Error{Type: QueueFull}
	ErrTimeout                   error = &Error{Type: TimeoutExpired}
	ErrProviderAlreadyRegistered error = &Error{Type: ProviderAlreadyRegistered}
	ErrProviderInUse             error = &Error{Type: ProviderInUse}
	ErrInvalidAddress            error = &Error{Type: InvalidAddress}
	ErrInterrupted               error = &Error{Type: InterruptedCall}
	ErrConnQualUnavailable       error = &Error{Type: ConnQualUnavailable}
	ErrCommNotSupported          error = &Error{Type: CommNotSupported}
	ErrNotImplemented            error = &Error{Type: NotImplemented}
)
