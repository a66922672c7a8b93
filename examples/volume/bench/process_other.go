//go:build !unix

package main

import (
	"errors"
	"fmt"
	"time"
)

// errSystem is why nothing is measured here: a node's files want Linux, too.
var errSystem = fmt.Errorf("it measures on Linux only: %w", errors.ErrUnsupported)

func processorTime() (time.Duration, error) { return 0, errSystem }

func (p *process) stop(time.Duration, time.Duration) error { return errSystem }
