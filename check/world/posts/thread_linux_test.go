package posts

import (
	"golang.org/x/sys/unix"

	dat "godat/runtime"
)

// onThread is the simulated device, polled by a thread that may run on each processor of the process.
func onThread() (list []provider) {
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return nil
	}
	var cpus []int
	for cpu := range 1024 {
		if may.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return []provider{simulated("sim, polled by a thread", dat.WithPoller(dat.PollerConfig{CPUs: cpus}))}
}
