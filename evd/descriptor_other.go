//go:build !linux

package evd

import (
	"errors"
	"fmt"
)

// descriptor stands for the eventfd, which only Linux has.
type descriptor struct{}

func newDescriptor() (*descriptor, error) {
	return nil, fmt.Errorf("a CNO's descriptor: %w", errors.ErrUnsupported)
}

func (*descriptor) number() uintptr { return 0 }
func (*descriptor) set(bool)        {}
func (*descriptor) close()          {}
