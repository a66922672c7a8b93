package inspect

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"godat/runtime/inspect/internal/process"
	"godat/runtime/internal/thresholds"
)

// built says what the program was built of.
func built(p *process.Info) string {
	commit, changes, _ := strings.Cut(p.Commit, "+")
	text := path.Base(p.Module) + " " + p.Version
	if commit = commit[:min(len(commit), 12)]; commit != "" {
		text += " of commit " + commit
	}
	if changes != "" {
		text += " with changes"
	}
	if p.Module != "godat" {
		text += ", godat " + cmp.Or(p.Library, "of unknown version")
	}
	return text + ", " + p.Go
}

// processFacts are the process in lines.
func processFacts(p *process.Info) []fact {
	return []fact{
		{"built of", built(p)},
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
	if nearly(p.Memory, p.MemoryLimit) {
		f.addHead(1, "process memory", "", "", p.Program, fmt.Sprintf("has %s of memory of the %s that its control group may have; keep less, raise that limit, or set GOMEMLIMIT below it", octets(p.Memory), octets(p.MemoryLimit)))
	}
	f.growth()
}

// growth looks for memory and goroutines of the process that grow without end.
func (f *finder) growth() {
	p, all := &f.now.Process, f.now.lows
	lasts := ago(f.now.At.Sub(all[0].at))
	if all.endless(f.now.At, ofGoroutines) && all.grown(ofGoroutines) >= thresholds.ManyGoroutines {
		f.addHead(2, "process goroutines", "", "", p.Program, leak(p.Goroutines, all, lasts)+": /debug/pprof/goroutine?debug=1 shows them")
	}
	if all.endless(f.now.At, ofMemory) && all.grown(ofMemory) >= thresholds.MuchMemory {
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
func nearly(n, limit uint64) bool { return limit > 0 && float64(n) >= thresholds.Nearly*float64(limit) }
