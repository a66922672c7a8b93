package process

import (
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// takeSystem adds what Linux tells. It takes no descriptor where the kernel counts them (6.2 and later).
func (p *Info) takeSystem() {
	p.DescriptorsLimit, p.LockedLimit = softLimit(unix.RLIMIT_NOFILE), softLimit(unix.RLIMIT_MEMLOCK)
	p.Descriptors = descriptors()
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.ParseUint(fields[1], 10, 64)
			p.Memory = pages * uint64(os.Getpagesize())
		}
	}
	if text, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		p.MemoryLimit = memoryLimit(string(text), os.ReadFile)
	}
}

func softLimit(resource int) uint64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(resource, &limit); err != nil || limit.Cur == unix.RLIM_INFINITY {
		return 0
	}
	return limit.Cur
}

func descriptors() uint64 {
	const all = "/proc/self/fd"
	if info, err := os.Stat(all); err == nil && info.Size() > 0 {
		return uint64(info.Size())
	}
	dir, err := os.Open(all)
	if err != nil {
		return softLimit(unix.RLIMIT_NOFILE) // none is left
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	return uint64(len(names))
}

// memoryLimit is the least limit of the process's control groups and of those above, given their list; 0 if
// there is none.
func memoryLimit(list string, read func(string) ([]byte, error)) uint64 {
	const none = math.MaxInt64 >> 1 // which version 1 writes otherwise, too
	least := uint64(none)
	for line := range strings.Lines(list) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[1] != "" && parts[1] != "memory" {
			continue
		}
		root, file := "/sys/fs/cgroup", "memory.max"
		if parts[1] != "" {
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			if text, err := read(path.Join(root, group, file)); err == nil {
				if limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
					least = min(least, limit)
				}
			}
			if group == "/" {
				break
			}
		}
	}
	if least >= none {
		return 0
	}
	return least
}
