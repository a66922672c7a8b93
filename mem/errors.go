package mem

import (
	"errors"
	"fmt"
	"syscall"

	"godat/hw"
	"godat/internal/memory"
)

// lockedMemory returns why a device refused a region.
func lockedMemory(op string, size int, err error) error {
	if !errors.Is(err, syscall.ENOMEM) && !errors.Is(err, syscall.EAGAIN) {
		return memory.Refused(op, hw.ResourceMemoryRegion, err)
	}
	limit, known := memlock()
	return lockedOut(op, size, limit, known, err)
}

// lockedOut names the usual reason: a limit that the kernel reports by an error
// number only.
func lockedOut(op string, size int, limit uint64, known bool, err error) error {
	need := byteSize(uint64(size))
	if !known {
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemory, "the device can't lock %s: %w", need, err)
	}
	if uint64(size) <= limit {
		need += " on top of what is locked already"
	}
	return hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemory,
		"locked-memory limit is %s; this region needs %s: raise RLIMIT_MEMLOCK (ulimit -l): %w", byteSize(limit), need, err)
}

// byteSize writes a size as people set limits: in the largest unit that divides it.
func byteSize(n uint64) string {
	units := [...]string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n != 0 && n%1024 == 0 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return fmt.Sprintf("%d %s", n, units[i])
}
