package ledger

import (
	"bytes"
	"os"
	"time"
)

// warmUp makes the Go runtime open what it keeps open for good: the descriptors of
// its network poller.
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

// countMappings counts the mappings that a child process would not inherit. That
// is how registered memory is mapped, and nothing else that is the program's.
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
