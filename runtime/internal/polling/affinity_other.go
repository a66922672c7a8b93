//go:build !linux && !wasip1

package polling

import (
	"errors"
	"fmt"
)

// setAffinity fails if there are processors to bind to: it is not supported on this
// system.
func setAffinity(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	return fmt.Errorf("processor affinity: %w", errors.ErrUnsupported)
}
