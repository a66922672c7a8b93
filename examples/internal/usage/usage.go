// Package usage is how the examples end when their command line makes no sense.
package usage

import (
	"errors"
	"os"

	"github.com/alecthomas/kong"

	"godat/hw"
)

// Status is the exit status of a program whose command line makes no sense, as Go's flag
// package and most shells have it.
const Status = 2

// Exit makes kong end the program with [Status] where it would with one of its own.
func Exit() kong.Option {
	return kong.Exit(func(status int) {
		if status != 0 {
			status = Status
		}
		os.Exit(status)
	})
}

// StatusOf is the exit status for an error: [Status] if an adapter can't be opened as the command line says, or 1.
func StatusOf(err error) int {
	for _, wrong := range []error{hw.ErrProviderNotFound, hw.ErrInvalidParameter, hw.ErrInvalidAddress} {
		if errors.Is(err, wrong) {
			return Status
		}
	}
	return 1
}
