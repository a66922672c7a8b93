// Package host describes the machine that a benchmark runs on, and counts the processor
// time that it uses.
package host

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// Line is what figures need to be understood: the machine and the program.
type Line struct {
	OS, Arch   string
	CPU        string // its model
	Cores      int
	GOMAXPROCS int
	Governor   string // of the processor's frequency
	Congestion string // how TCP paces what it sends; empty where the system does not say
	Go         string
	Commit     string
}

const unknown = "unknown"

// Describe describes this machine and this program.
func Describe() Line {
	return Line{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: model(), Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		Governor: governor(), Congestion: congestion(), Go: runtime.Version(), Commit: commit(),
	}
}

func (l Line) String() string {
	tcp := ""
	if l.Congestion != "" {
		tcp = "TCP " + l.Congestion + ", "
	}
	return fmt.Sprintf("%s/%s, %s, %d cores, GOMAXPROCS=%d, governor %s, %s%s, commit %s",
		l.OS, l.Arch, l.CPU, l.Cores, l.GOMAXPROCS, l.Governor, tcp, l.Go, l.Commit)
}

func model() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	return cpuModel(string(text))
}

// cpuModel finds the model in the text of /proc/cpuinfo.
func cpuModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

func governor() string {
	text, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	if err != nil {
		return unknown
	}
	return strings.TrimSpace(string(text))
}

// congestion is the algorithm of TCP's congestion control that new connections use, which
// is Linux's to say. Figures of plain connections and of iWARP depend on it, over loopback
// too.
func congestion() string {
	text, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	return strings.TrimSpace(string(text))
}

// commit is the one that the program was built from. `go run` records none, so git is
// asked then.
func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if rev := settings["vcs.revision"]; len(rev) > 12 {
			return rev[:12] + map[string]string{"true": " and changes"}[settings["vcs.modified"]]
		}
	}
	rev, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return unknown
	}
	// What the benchmark itself writes is no change to what it measures.
	changes, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no", "--",
		":/", ":(top,exclude)README.md", ":(top,exclude)bench/README.md", ":(top,exclude)bench/RESULTS*", ":(top,exclude)bench/CALLS.md", ":(top,exclude)bench/STORAGE*").Output()
	if err != nil || len(changes) > 0 {
		return strings.TrimSpace(string(rev)) + " and changes"
	}
	return strings.TrimSpace(string(rev))
}
