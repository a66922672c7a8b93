package stream

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"

	dat "godat/runtime"
)

// addr is the address of an end: its provider is the network, and the address is
// "host:port", as a dialer takes it.
type addr struct{ network, hostPort string }

// Network is the name of the provider.
func (a addr) Network() string { return a.network }

// String is "host:port".
func (a addr) String() string { return a.hostPort }

// newAddr makes an address of a provider's own one, which need not have the port in it.
func newAddr(ia *dat.IA, a net.Addr, qual uint64) addr {
	named := addr{network: ia.Attr().Provider}
	if a == nil {
		return named
	}
	named.hostPort = a.String()
	if _, _, err := net.SplitHostPort(named.hostPort); err != nil {
		named.hostPort = net.JoinHostPort(named.hostPort, strconv.FormatUint(qual, 10))
	}
	return named
}

// addressError is the error of a call that was given an address, and maybe no adapter.
func addressError(ctx context.Context, op string, ia *dat.IA, address string, err error) error {
	network := cmp.Or(ia.Attr().Provider, "rdma")
	return &net.OpError{Op: op, Net: network, Addr: addr{network, address}, Err: timed(ofDeadline(ctx, err))}
}

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

// portOf is the port of "host:port", or 0.
func portOf(address string) uint64 {
	_, port, _ := net.SplitHostPort(address)
	qual, _ := strconv.ParseUint(port, 10, 16)
	return qual
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
