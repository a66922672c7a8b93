package polling

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// setAffinity makes the calling thread run on those processors only.
func setAffinity(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
		if !set.IsSet(c) {
			return fmt.Errorf("there is no processor %d", c)
		}
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("no thread may run there: sched_setaffinity: %w", err)
	}
	return nil
}
