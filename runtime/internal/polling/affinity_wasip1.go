package polling

import "fmt"

// setAffinity has nothing to do: there is one thread, and processor 0 runs it.
func setAffinity(cpus []int) error {
	for _, c := range cpus {
		if c != 0 {
			return fmt.Errorf("there is no processor %d", c)
		}
	}
	return nil
}
