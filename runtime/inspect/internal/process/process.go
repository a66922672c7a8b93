// Package process says which process this is, and what it takes of what it may have.
package process

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// Info says which program this is, where it runs, and what it takes of what it may have. Descriptors,
// Memory and the limits are 0 where the system does not tell them, and a limit also where there is none.
type Info struct {
	Program string // its file's name, without the folder
	Module  string // of its main package; empty if it was built without modules
	Version string // of that module: "(devel)" if it was built in its own folder
	Commit  string // of which it was built, with "+changes" if files had changed; empty if that is not known
	Library string // the version of module godat
	Go      string // the version of Go

	Host    string
	PID     int
	Started time.Time // little later than the process
	Uptime  time.Duration

	Descriptors, DescriptorsLimit uint64 // open ones, and the soft limit of RLIMIT_NOFILE
	Memory, MemoryLimit           uint64 // bytes: resident, and the least limit of the control groups
	GoMemoryLimit                 uint64 // bytes: GOMEMLIMIT
	LockedLimit                   uint64 // bytes: the soft limit of RLIMIT_MEMLOCK, which bounds memory that is registered with a verbs device
	GOMAXPROCS, CPUs, Goroutines  int
}

// began is when the process began, or little later.
var began = time.Now()

// build is what does not change of an Info.
var build = sync.OnceValue(func() (p Info) {
	p.Program, p.Go, p.PID, p.Started, p.CPUs = filepath.Base(os.Args[0]), runtime.Version(), os.Getpid(), began, runtime.NumCPU()
	p.Host, _ = os.Hostname()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return p
	}
	p.Module, p.Version = info.Main.Path, info.Main.Version
	if p.Module == library {
		p.Library = p.Version
	}
	for _, d := range info.Deps {
		if d.Path == library {
			p.Library = d.Version
		}
	}
	changes := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			p.Commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changes = "+changes"
		}
	}
	if p.Commit != "" {
		p.Commit += changes
	}
	return p
})

// library is the module.
const library = "godat"

// Now describes the process now.
func Now() Info {
	p := build()
	p.Uptime = time.Since(began)
	p.GOMAXPROCS, p.Goroutines = runtime.GOMAXPROCS(0), runtime.NumGoroutine()
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		p.GoMemoryLimit = uint64(limit)
	}
	p.takeSystem()
	return p
}

// String says in short which process it is: "kv on db7, process 4711".
func (p Info) String() string {
	return fmt.Sprintf("%s on %s, process %d", p.Program, p.Host, p.PID)
}
