package posts

import (
	"bytes"
	"os"
	"runtime"
	"testing"
	"time"
)

// resources is what a process holds and must give back.
type resources struct {
	goroutines  int
	descriptors int // 0 where they can't be counted
	mappings    int // of registered memory; 0 where they can't be counted
}

func heldResources() resources {
	warmUp()
	return resources{goroutines: runtime.NumGoroutine(), descriptors: countDescriptors(), mappings: countMappings()}
}

// compare fails unless the process holds what it held when s was taken. It waits for goroutines that are ending.
// Goroutines may be fewer: some that were ending when s was taken may have ended.
func (s resources) compare(t *testing.T) {
	var now resources
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		last := time.Now().After(deadline)
		if runtime.NumGoroutine() > s.goroutines && !last {
			continue // the others take far longer to count
		}
		now = heldResources()
		if now.goroutines = max(now.goroutines, s.goroutines); now == s || last {
			break
		}
	}
	if now != s {
		stacks := make([]byte, 1<<16)
		t.Errorf("before: %+v, afterwards: %+v, goroutines: %s", s, now, stacks[:runtime.Stack(stacks, true)])
	}
}

// warmUp makes the Go runtime open the descriptors of its network poller, which it
// keeps open for good.
func warmUp() {
	r, w, err := os.Pipe()
	if err != nil {
		return
	}
	_ = r.SetReadDeadline(time.Now())
	_, _ = r.Read(make([]byte, 1))
	_ = r.Close()
	_ = w.Close()
}

// countDescriptors counts the open descriptors.
func countDescriptors() int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(names)
}

// countMappings counts the mappings that a child process would not inherit
// (dontfork). Nothing of the program but registered memory is mapped so.
func countMappings() (n int) {
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(maps) {
		if flags, ok := bytes.CutPrefix(line, []byte("VmFlags:")); ok && bytes.Contains(flags, []byte(" dc")) {
			n++
		}
	}
	return n
}
