package guest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// console takes what comes out of the guest's second serial line, where the
// program writes to, and tells the program's output from what init reports. A
// report is a line that begins with a word which nobody can know, after a line
// break that is not the program's:
//
//	\n5f0c… booted\n
//	\n5f0c… exit 3\n
//	\n5f0c… failed no module siw\n
type console struct {
	out    io.Writer
	prefix []byte // what begins a report
	held   []byte // the last bytes, while they may be the beginning of a report
	deaf   bool   // out takes nothing more

	booted   func()        // called at the report
	status   int           // the program's
	ended    bool          // status is known
	failed   error         // what init could not do
	finished chan struct{} // closed when there is nothing more to hear
}

// longestReport bounds what is held back for the end of a line.
const longestReport = 4096

func newConsole(secret string, out io.Writer, booted func()) *console {
	return &console{out: out, prefix: []byte("\n" + secret + " "), booted: booted, finished: make(chan struct{})}
}

// Write takes the next bytes, in pieces of any size. It never fails: the guest
// must be heard to its end.
func (c *console) Write(p []byte) (int, error) {
	buf := append(c.held, p...)
	for {
		i := bytes.Index(buf, c.prefix)
		if i < 0 {
			i = len(buf) - overlap(buf, c.prefix)
			c.emit(buf[:i])
			c.held = bytes.Clone(buf[i:])
			return len(p), nil
		}
		c.emit(buf[:i])
		line, rest, whole := bytes.Cut(buf[i+len(c.prefix):], []byte("\n"))
		if !whole && len(line) < longestReport {
			c.held = bytes.Clone(buf[i:])
			return len(p), nil
		}
		c.report(string(line))
		buf = rest
	}
}

// emit hands output on, until the writer fails.
func (c *console) emit(b []byte) {
	if len(b) == 0 || c.over() || c.deaf {
		return
	}
	_, err := c.out.Write(b)
	c.deaf = err != nil
}

func (c *console) over() bool { return c.ended || c.failed != nil }

func (c *console) report(line string) {
	if c.over() {
		return
	}
	what, arg, _ := strings.Cut(strings.TrimRight(line, "\r"), " ")
	switch what {
	case "booted":
		c.booted()
		return
	case "exit":
		n, err := strconv.Atoi(arg)
		if err != nil {
			c.failed = fmt.Errorf("exit status %q", arg)
			break
		}
		c.status, c.ended = n, true
	case "failed":
		c.failed = errors.New(arg)
	default:
		c.failed = fmt.Errorf("strange report %q", line)
	}
	close(c.finished)
}

// overlap is the length of the longest end of b that begins prefix.
func overlap(b, prefix []byte) int {
	for n := min(len(b), len(prefix)-1); n > 0; n-- {
		if bytes.HasSuffix(b, prefix[:n]) {
			return n
		}
	}
	return 0
}
