package posts

import (
	"bytes"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// resources is what a process holds and must give back.
type resources struct {
	goroutines  int
	descriptors int // 0 where they can't be counted
	mappings    int // of registered memory, which a child process would not inherit; 0 where they can't be counted
}

func heldResources() resources {
	if r, w, err := os.Pipe(); err == nil { // Go's poller opens descriptors for the first, and keeps them for good
		_, _ = r.Close(), w.Close()
	}
	names, _ := os.ReadDir("/proc/self/fd")
	maps, _ := os.ReadFile("/proc/self/smaps")
	held := resources{goroutines: runtime.NumGoroutine(), descriptors: len(names)}
	for line := range bytes.Lines(maps) {
		if flags, ok := bytes.CutPrefix(line, []byte("VmFlags:")); ok && bytes.Contains(flags, []byte(" dc")) {
			held.mappings++ // nothing of the program but registered memory is mapped so
		}
	}
	return held
}

// compare fails unless the process holds what it held when s was taken. It waits for goroutines that are ending.
// Goroutines may be fewer: some that were ending when s was taken may have ended.
func (s resources) compare(t *testing.T) {
	now := heldResources()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if runtime.NumGoroutine() > s.goroutines {
			continue // the others take far longer to count
		}
		if now = heldResources(); now.descriptors == s.descriptors && now.mappings == s.mappings {
			return
		}
	}
	stacks := make([]byte, 1<<16)
	assert.Fail(t, "something is left", "before: %+v, afterwards: %+v, goroutines: %s", s, now, stacks[:runtime.Stack(stacks, true)])
}
