//go:build !linux

package polling

import (
	"errors"
	"fmt"
)

// setAffinity can't be done here.
func setAffinity(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	return fmt.Errorf("processor affinity: %w", errors.ErrUnsupported)
}
