package host

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Disturbed ends a watch of the processors. It reports whether other programs used over a quarter of
// them, where ours is the processor time that the measured processes used since the watch began; negative
// if that is unknown. Without Linux nothing is known of other programs, and nothing reported.
type Disturbed func(ours time.Duration) bool

// WatchOthers begins to watch how much of the processors other programs use.
func WatchOthers() Disturbed {
	o := lookAtOthers()
	return o.disturbed
}

// others is how long the processors were busy until a time.
type others struct {
	began time.Time
	used  time.Duration // by all programs, and by the host of a guest
	known bool
}

func lookAtOthers() others {
	text, err := os.ReadFile("/proc/stat") // on Linux
	used, ok := busyTime(string(text))
	return others{time.Now(), used, err == nil && ok}
}

func (o others) disturbed(ours time.Duration) bool {
	now := lookAtOthers()
	if !o.known || !now.known || ours < 0 {
		return false
	}
	all := time.Duration(runtime.NumCPU()) * now.began.Sub(o.began)
	return now.used-o.used-ours > all/4
}

// SystemSwitches is how often the processors have changed from one thread to another since the system
// started; 0 where that is not known.
func SystemSwitches() int64 {
	text, _ := os.ReadFile("/proc/stat") // on Linux
	return switches(string(text))
}

func switches(stat string) int64 {
	_, rest, _ := strings.Cut(stat, "\nctxt ")
	count, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// busyTime is the time that processors were busy, of the text of /proc/stat: by programs, and for other
// guests. Interrupts are left out: those of the loopback are the measured programs' own.
func busyTime(stat string) (time.Duration, bool) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, false
	}
	var ticks int64
	for _, i := range []int{1, 2, 3, 8} { // user, nice, system, steal
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, false
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100), true
}
