package runtime

import "golang.org/x/sys/unix"

// pinnedWay is what polls a device for a program that names processors.
const pinnedWay = "thread"

// allCPUs are the processors that the process may use, to have a thread poll.
func allCPUs() (list []int) {
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return nil
	}
	for cpu := range 1024 {
		if may.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list
}
