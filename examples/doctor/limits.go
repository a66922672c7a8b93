package main

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
)

// container looks for what containers keep from programs.
func container(m *machine) line {
	const run = "docker run --device /dev/infiniband --cap-add IPC_LOCK --ulimit memlock=-1 --network host"
	if !m.has("/proc/self") || !m.has("/sys/class") {
		return line{State: note, Says: "/proc or /sys is missing", Do: "mount -t proc proc /proc; mount -t sysfs sys /sys"}
	}
	files := m.has("/dev/infiniband")
	l := good("no container is seen; /dev/infiniband: %t", files)
	if m.has("/.dockerenv") || m.has("/run/.containerenv") || m.has("/run/systemd/container") {
		l = good("a container; /dev/infiniband: %t", files).unless(files, note, "nothing for iwarp; for ibv, "+run)
	}
	return l.unless(files || len(m.ports) == 0, bad, "devices are seen, which can't be opened: "+run)
}

// groupLimits are limits of a control group: their files in version 2 and 1, and what is little.
var groupLimits = []struct {
	name, file, first string
	little            uint64
}{
	{"bytes of memory", "memory.max", "memory/memory.limit_in_bytes", 256 << 20},
	{"tasks", "pids.max", "pids/pids.max", 256},
	{"µs of processors in a period", "cpu.max", "cpu/cpu.cfs_quota_us", 100_000},
}

// controlGroup looks at the limits of the process's control group.
func controlGroup(m *machine) line {
	const dir = "/sys/fs/cgroup/"
	if !m.has(dir) {
		return unread(dir)
	}
	_, own, _ := strings.Cut("\n"+m.text("/proc/self/cgroup"), "\n0::")
	own, _, _ = strings.Cut(own, "\n")
	l := good("no limits")
	var says []string
	for _, g := range groupLimits {
		for _, file := range []string{path.Join(dir, own, g.file), dir + g.file, dir + g.first} {
			value, _, _ := strings.Cut(m.text(file), " ") // cpu.max has the period behind
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil || n >= math.MaxInt64>>12 { // not there, or no limit
				continue
			}
			l = l.unless(n >= g.little, note, "raise them: MemoryMax=, TasksMax=, CPUQuota= of a service; --memory, --pids-limit, --cpus of a container")
			says = append(says, fmt.Sprintf("%d %s", n, g.name))
			break
		}
	}
	if rdma := m.text(path.Join(dir, own, "rdma.max")); rdma != "" {
		l = l.unless(false, note, "raise rdma.max if a device refuses objects")
		says = append(says, "RDMA: "+rdma)
	}
	if says != nil {
		l.Says = strings.Join(says, "\n")
	}
	return l
}

// lockedMemory looks at the limit on memory that is registered with verbs devices.
func lockedMemory(m *machine) line {
	const enough = 64 << 20
	return good("%s for regions of ibv; loop and iwarp lock none", size(m.locked)).unless(m.locked == 0 || m.locked >= enough, m.severity(),
		"ulimit -l unlimited; LimitMEMLOCK=infinity of a service; memlock in /etc/security/limits.conf; --ulimit memlock=-1 of a container")
}

// descriptors looks at the limit on descriptors. Go raises it to the hard one when a program starts, so no
// ulimit of this user's raises it further.
func descriptors(m *machine) line {
	const enough = 4096
	return good("%d (0: unknown); a connection over iwarp takes one", m.files).unless(m.files == 0 || m.files >= enough, note,
		"raise the hard limit: LimitNOFILE=1048576 of a service; nofile in /etc/security/limits.conf; --ulimit nofile=1048576 of a container")
}

// size writes a limit in bytes; 0 is none.
func size(n uint64) string {
	switch {
	case n == 0 || n > math.MaxInt64:
		return "no limit"
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
