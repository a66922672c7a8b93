package guest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// console reads the guest's second serial line. The program and init both write to
// it, and console tells the program's output from init's reports. A report is a
// line that begins with a secret word, which no program can know. init writes a
// line break before it:
//
//	\n5f0c… clock 1.24\n
//	\n5f0c… booted\n
//	\n5f0c… exit 3\n
//	\n5f0c… failed no module siw\n
type console struct {
	out    io.Writer
	prefix []byte // the beginning of every report
	held   []byte // the last bytes, while they may begin a report
	deaf   bool   // out has failed, so it gets nothing more

	booted   func()        // called when init reports that the guest has booted
	clock    func(string)  // called when init reports a reading of its clock
	status   int           // the exit status of the program
	ended    bool          // status is known
	failed   error         // init's report of what it could not do
	finished chan struct{} // closed when the program has ended or init has failed
}

// longestReport bounds the bytes that console holds until a report's line ends.
const longestReport = 4096

func newConsole(secret string, out io.Writer, booted func(), clock func(string)) *console {
	return &console{out: out, prefix: []byte("\n" + secret + " "), booted: booted, clock: clock, finished: make(chan struct{})}
}

// Write reads the next bytes, in pieces of any size. It never fails, since console
// must read the guest's last report.
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

// emit writes output to out until out fails.
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
	case "clock":
		c.clock(arg)
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

// overlap is the length of the longest suffix of b that is a prefix of prefix.
func overlap(b, prefix []byte) int {
	for n := min(len(b), len(prefix)-1); n > 0; n-- {
		if bytes.HasSuffix(b, prefix[:n]) {
			return n
		}
	}
	return 0
}
