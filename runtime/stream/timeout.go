package stream

import (
	"context"
	"errors"
	"os"
	"slices"
)

// timeout is an error of a call whose time is over. A net.OpError asks the error in it, and none deeper.
type timeout struct{ error }

// Timeout reports true.
func (timeout) Timeout() bool { return true }

// Temporary reports true, as it does for package net's time-outs.
func (timeout) Temporary() bool { return true }

// Unwrap returns the error.
func (t timeout) Unwrap() error { return t.error }

// timed is err, as a timeout if an error in it is one.
func timed(err error) error {
	if !isTimeout(err) && hasTimeout(err) {
		return timeout{err}
	}
	return err
}

func isTimeout(err error) bool {
	t, ok := err.(interface{ Timeout() bool })
	return ok && t.Timeout()
}

// hasTimeout reports whether err or an error in it is a time-out.
func hasTimeout(err error) bool {
	if isTimeout(err) {
		return true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return hasTimeout(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), hasTimeout)
	}
	return false
}

// expired is the error of a call whose context's deadline has passed, also if the program gave another cause.
type expired struct{ timeout }

// Is matches what the package context and a connection's deadline say.
func (expired) Is(target error) bool {
	return target == context.DeadlineExceeded || target == os.ErrDeadlineExceeded
}

// ofDeadline is err, as expired if the deadline of ctx is its reason.
func ofDeadline(ctx context.Context, err error) error {
	if ctx != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.Cause(ctx)) {
		return expired{timeout{err}}
	}
	return err
}

// silenced is the error of a connection that ended because the peer fell silent. It is a time-out, but no deadline
// passed: a program that sets a new one and calls again would do so for ever.
type silenced struct{ err error }

// Error is the error's text.
func (s silenced) Error() string { return s.err.Error() }

// Timeout reports true.
func (silenced) Timeout() bool { return true }

// Is matches what the error matches, but for a passed deadline.
func (s silenced) Is(target error) bool {
	return target != os.ErrDeadlineExceeded && target != context.DeadlineExceeded && errors.Is(s.err, target)
}

// As finds what is in the error. There is no Unwrap, past which errors.Is would go on.
func (s silenced) As(target any) bool { return errors.As(s.err, target) }

// ofCall is the error of a call of a connection.
func ofCall(err error) error {
	if err != os.ErrDeadlineExceeded && errors.Is(err, os.ErrDeadlineExceeded) {
		return silenced{err}
	}
	return timed(err)
}
