package rpc

import (
	"context"
	"errors"
	"fmt"

	"godat/hw"
	dat "godat/runtime"
)

// The codes of failures that this package gives. A program's own begin at CodeUser.
const (
	CodeUnknown  uint16 = 1 // what the request wants is not known to the server
	CodeDraining uint16 = 2 // the server is being shut down, and has not begun the call: Config.Redial makes it again
	CodeTooLong  uint16 = 3 // the answer is longer than the client takes
	// CodeBusy: the server has not begun the call, because no handler would have been free in time, as
	// the text says; or because the server keeps as many requests as it can, which comes of connections
	// that have ended while handlers still hold their requests. The program makes the call again after a
	// while; Config.Redial does not.
	CodeBusy   uint16 = 4
	CodeFailed uint16 = 5 // the handler's error has no code
	CodeFull   uint16 = 6 // the server has no place for another connection
	CodeUser   uint16 = 256
)

// CodeText is a code as logs and errors have it: the name of its constant, such as "CodeBusy", or of the
// program's own codes "code 256".
func CodeText(code uint16) string {
	names := []string{
		CodeUnknown: "CodeUnknown", CodeDraining: "CodeDraining", CodeTooLong: "CodeTooLong", CodeBusy: "CodeBusy",
		CodeFailed: "CodeFailed", CodeFull: "CodeFull",
	}
	if int(code) < len(names) && names[code] != "" {
		return names[code]
	}
	return fmt.Sprintf("code %d", code)
}

// mostText is the most bytes of a failure's text that a server sends.
const mostText = 1024

// refusals say why a server did not begin a call, or a connection.
var refusals = map[uint16]string{
	CodeUnknown: "the server takes no such hello", CodeDraining: "the server is being shut down", CodeBusy: "the server is busy",
	CodeFull: "the server has no place for another connection",
}

// Error is the answer of a call that failed: the handler's, by [Request.Fail] or its return, or the
// server's own. errors.Is(err, &Error{Code: CodeFull}) asks for a code.
type Error struct {
	Code uint16
	Text string
}

func (e *Error) Error() string {
	if e == nil {
		return "rpc: a failure that is a nil *Error"
	}
	return fmt.Sprintf("rpc: %s (%s)", e.Text, CodeText(e.Code))
}

// Is reports whether target is an Error with the same code, and without a text or with the same.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error) //nolint:errorlint // errors.Is asks about this one
	return ok && e != nil && t != nil && t.Code == e.Code && (t.Text == "" || t.Text == e.Text)
}

// CallError is the error of a call that got no answer. Err is the cause of the context's
// end, or why the connection ended, which matches [ErrEnded], or the server's refusal to begin
// the call: an [Error] with CodeDraining or CodeBusy. Or it is why [Client.CallJSON] could not fetch the
// answer. It matches [context.DeadlineExceeded] and [context.Canceled]
// only if the caller's own context has ended so: a connection that broke because its peer was silent
// matches [godat/hw.ErrTimeout].
type CallError struct {
	// MayHaveRun is false if the server has certainly not begun the call, so that it does no
	// harm to make it again. It is true if the call was sent, on this connection or an earlier
	// one, and got no answer.
	MayHaveRun bool
	Err        error
}

func (e *CallError) Error() string {
	if e.MayHaveRun {
		return "rpc: no answer, though the call may have run: " + e.Err.Error()
	}
	return "rpc: the call has not run: " + e.Err.Error()
}

func (e *CallError) Unwrap() error { return e.Err }

// ErrEnded is matched by the errors of calls, and of requests, whose connection has ended. The text says
// who ended it, and why as far as this end knows. A client without Config.Redial has to dial again then.
var ErrEnded = errors.New("the connection has ended")

// ended is why a connection has ended, for its calls.
func ended(why error) error {
	if why == nil {
		return ErrEnded
	}
	return &endError{why}
}

// endError matches what its reason matches, but not the end of a context: a time limit of the connection's,
// or of another call, is not that of the caller.
type endError struct{ why error }

func (e *endError) Error() string { return ErrEnded.Error() + ": " + e.why.Error() }

func (e *endError) Is(target error) bool {
	return target == ErrEnded || target != context.DeadlineExceeded && target != context.Canceled && errors.Is(e.why, target)
}

// As is in place of Unwrap, by which errors.Is would find the end of a context.
func (e *endError) As(target any) bool { return errors.As(e.why, target) }

// notMade is the error of a method of a nil or zero value.
func notMade(op, what, by string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.NoSubtype, "a nil or zero %s: rpc.%s makes one", what, by)
}

// openFor checks that there is an adapter.
func openFor(op string, ia *dat.IA) error {
	if ia == nil {
		return hw.Errorf(op, hw.InvalidHandle, hw.NoSubtype, "a nil adapter: runtime.Open opens one")
	}
	return nil
}
