package conformance

import (
	"errors"

	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
)

// capability is something that a provider may lack.
type capability struct {
	name string // in the table
	// has reports whether the provider has the capability. If not, has made a call
	// that needs it, and checked that the call was refused as it must be.
	has func(*rig) bool
}

// lacks returns the first of the capabilities that the provider lacks, or nil.
func (r *rig) lacks(needs []*capability) *capability {
	for _, c := range needs {
		if !c.has(r) {
			return c
		}
	}
	return nil
}

// granted reports whether a call succeeded, and then calls undo. If not, it checks that
// the provider refused the call because it does not support it.
func (r *rig) granted(err error, undo ...func() error) bool {
	if err == nil {
		for _, f := range undo {
			require.NoError(r, f())
		}
		return true
	}
	require.ErrorIs(r, err, errors.ErrUnsupported)
	require.ErrorIs(r, err, hw.ErrModelNotSupported)
	return false
}

func needs(c ...*capability) []*capability { return c }

// notReadyWait: a send waits until the peer posts a receive. Without this
// capability such a send breaks the connection at once.
var notReadyWait = &capability{"not-ready-wait", func(r *rig) bool {
	client, server := r.pair()
	if client.node.waitsForReceives() {
		return true
	}
	client.postSend(1, 8)
	client.connection(event.Broken)
	server.connection(event.Broken)
	return false
}}

// waitsForReceives reports whether the device says that it has notReadyWait.
func (n *node) waitsForReceives() bool { return n.ia.Attr().NotReadyWait }

// code returns an error that matches a return code.
func code(t hw.Type, sub hw.Subtype) error { return &hw.Error{Type: t, Sub: sub} }

// get returns what a call without arguments returns.
func get[T any](t require.TestingT, call func() (T, error)) T {
	v, err := call()
	require.NoError(t, err)
	return v
}

// ok requires that calls have succeeded.
func (r *rig) ok(errs ...error) {
	for _, err := range errs {
		require.NoError(r, err)
	}
}

// errorOf returns the last of a call's results, its error.
func errorOf(results ...any) error {
	err, _ := results[len(results)-1].(error)
	return err
}
