package ledger

import (
	"bytes"
	"os"
	"time"
)

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
