package inspect

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// Process says which program this is, where it runs, and what it takes of what it may have. Descriptors,
// Memory and the limits are 0 where the system does not tell them, and a limit also where there is none.
type Process struct {
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

// build is what does not change of a Process.
var build = sync.OnceValue(func() (p Process) {
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

const library = "godat" // the module

// ThisProcess describes the process now.
func ThisProcess() Process {
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
func (p Process) String() string {
	return fmt.Sprintf("%s on %s, process %d", p.Program, p.Host, p.PID)
}

// LeastMemory is the limit that memory meets: of the control groups, or else of Go's memory; 0 if there is none.
func (p Process) LeastMemory() uint64 { return cmp.Or(p.MemoryLimit, p.GoMemoryLimit) }

// built says what the program was built of.
func (p Process) built() string {
	commit, changes, _ := strings.Cut(p.Commit, "+")
	text := path.Base(p.Module) + " " + p.Version
	if commit = commit[:min(len(commit), 12)]; commit != "" {
		text += " of commit " + commit
	}
	if changes != "" {
		text += " with changes"
	}
	if p.Module != library {
		text += ", godat " + cmp.Or(p.Library, "of unknown version")
	}
	return text + ", " + p.Go
}

// facts are the process in lines.
func (p Process) facts() []fact {
	return []fact{
		{"built of", p.built()},
		{"started", p.Started.Format("2006-01-02 15:04:05") + ", " + ago(p.Uptime) + " ago"},
		{"descriptors", ofLimit(number(p.Descriptors), p.DescriptorsLimit, number[uint64])},
		{"memory", ofLimit(octets(p.Memory), p.MemoryLimit, octets)},
		{"limits of Go's memory and of locked memory", limitText(p.GoMemoryLimit) + ", " + limitText(p.LockedLimit)},
		{"processors", fmt.Sprintf("GOMAXPROCS %d, of %d; %s goroutines", p.GOMAXPROCS, p.CPUs, number(p.Goroutines))},
	}
}

func ofLimit(now string, limit uint64, text func(uint64) string) string {
	if limit == 0 {
		return now
	}
	return now + " of " + text(limit)
}

func limitText(limit uint64) string {
	if limit == 0 {
		return "none"
	}
	return octets(limit)
}

// process looks for what the process soon has no more of.
func (f *finder) process() {
	p := &f.now.Process
	if nearly(p.Descriptors, p.DescriptorsLimit) {
		f.addHead(1, "process descriptors", "", "", p.Program, fmt.Sprintf("has %s of %s open; raise ulimit -n, or close files and connections", many(p.Descriptors, "descriptor"), number(p.DescriptorsLimit)))
	}
	if limit := p.LeastMemory(); nearly(p.Memory, limit) {
		f.addHead(1, "process memory", "", "", p.Program, fmt.Sprintf("has %s of memory of the %s that it may have", octets(p.Memory), octets(limit)))
	}
	f.growth()
}

// growth looks for memory and goroutines of the process that grow without end.
func (f *finder) growth() {
	p, all := &f.now.Process, f.now.lows
	lasts := ago(f.now.At.Sub(all[0].at))
	if all.endless(f.now.At, ofGoroutines) && all.grown(ofGoroutines) >= ManyGoroutines {
		f.addHead(2, "process goroutines", "", "", p.Program, leak(p.Goroutines, all, lasts)+": /debug/pprof/goroutine?debug=1 shows them")
	}
	if all.endless(f.now.At, ofMemory) && all.grown(ofMemory) >= MuchMemory {
		f.addHead(2, "process memory grows", "", "", p.Program, fmt.Sprintf("has %s of memory, more and more for %s, %s since then; if that is no load or cache that grows, something is kept: look at /debug/pprof/heap", octets(p.Memory), lasts, octets(uint64(all.grown(ofMemory)))))
	}
}

// leak says what goroutines do that grow without end: whether they come with calls shows from how many answers there
// were in that time.
func leak(n int, all lows, lasts string) string {
	grown, answers := all.grown(ofGoroutines), all.grown(ofAnswers)
	text := fmt.Sprintf("has %s goroutines, more and more for %s, %s since then", number(n), lasts, number(int(grown)))
	if each := float64(grown) / float64(max(answers, 1)); each > 0.75 && each < 1.25 {
		return fmt.Sprintf("each call leaves a goroutine behind, which waits for something that does not come: it %s, for %s in that time", text, many(int(answers), "answer"))
	}
	return text + "; if that is no load that grows, they wait for something that does not come"
}

// What the lows of a process are of.
const (
	ofMemory = iota
	ofGoroutines
	ofAnswers // of rpc
)

// nearly reports whether there is a limit, and little left.
func nearly(n, limit uint64) bool { return limit > 0 && float64(n) >= Nearly*float64(limit) }
