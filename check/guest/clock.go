package guest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The guest's kernel reads the time from the processor's counter. Left alone, it finds the
// counter's rate by a comparison with a timer of the emulator, and when the host has no time
// for the emulator in between, it finds a wrong one. So it is told the rate, and the guest
// and the host compare their clocks until they know that both run alike, which is before
// the program starts.

const (
	// clockLimit is by how much the guest's clock may run faster or slower than the host's.
	clockLimit = 0.02
	// clockTime is how long the clocks are compared before nobody knows.
	clockTime = time.Minute
	// clockStep is what the guest's clock counts in.
	clockStep = 0.01
)

// The answers to a reading of the guest's clock, which init knows. All but the first are
// GODAT_GUEST_CLOCK of the program.
const (
	clockAgain   = "again" // the guest is to read its clock once more
	clockRight   = "right"
	clockWrong   = "wrong"
	clockUnknown = "unknown"
)

// reading is a comparison of the clocks: the guest read its own before the host had read its
// own, and then after.
type reading struct{ host, before, after float64 } // in seconds

// clock judges the guest's clock by the readings of a boot.
type clock struct {
	whole []reading // with their after
	last  *reading  // without
	low   float64   // the guest's clock runs at least so fast, where the host's has 1
	high  float64   // and at most so fast
}

// read adds a reading: what init reported, "BEFORE" or "BEFORE AFTER", where AFTER belongs
// to the reading before it. It returns the answer.
func (c *clock) read(host time.Duration, report string) (string, error) {
	before, after, hasAfter := strings.Cut(strings.TrimSpace(report), " ")
	r := reading{host: host.Seconds()}
	var err, err2 error
	r.before, err = strconv.ParseFloat(before, 64)
	if hasAfter != (c.last != nil) {
		err = errors.New("a reading too many or too few")
	}
	if hasAfter && err == nil {
		c.last.after, err2 = strconv.ParseFloat(after, 64)
		c.add(*c.last)
	}
	if err := errors.Join(err, err2); err != nil {
		return "", fmt.Errorf("a strange reading of the clock, %q: %w", report, err)
	}
	c.last = &r
	return c.judge(host), nil
}

// add narrows the bounds by a reading together with each of the earlier ones.
func (c *clock) add(r reading) {
	for _, o := range c.whole {
		passed := r.host - o.host
		if passed <= 0 {
			continue
		}
		low := (r.before - o.after - clockStep) / passed
		high := (r.after - o.before + clockStep) / passed
		if c.high == 0 {
			c.low, c.high = low, high
		}
		c.low, c.high = max(c.low, low), min(c.high, high)
	}
	c.whole = append(c.whole, r)
}

func (c *clock) judge(host time.Duration) string {
	switch {
	case c.high == 0:
		return clockAgain
	case c.low >= 1-clockLimit && c.high <= 1+clockLimit:
		return clockRight
	case c.high < 1-clockLimit || c.low > 1+clockLimit:
		return clockWrong
	case host-time.Duration(c.whole[0].host*float64(time.Second)) > clockTime:
		return clockUnknown
	}
	return clockAgain
}

func (c *clock) String() string {
	return fmt.Sprintf("the guest's clock runs at %.3f to %.3f of the host's", c.low, c.high)
}

// counter is a reading of the processor's counter and of the clock at one moment.
type counter struct {
	ticks uint64
	at    time.Time
}

// counterTime is how long the counter is watched to know its rate.
const counterTime = 50 * time.Millisecond

// readCounter returns the reading whose two halves are closest, of several.
func readCounter() (best counter) {
	narrowest := time.Duration(-1)
	for range 20 {
		before := time.Now()
		n := ticks()
		if took := time.Since(before); narrowest < 0 || took < narrowest {
			narrowest, best = took, counter{n, before.Add(took / 2)}
		}
	}
	return best
}

// rate returns how many thousand times a second the processor's counter counts, or 0 if
// nobody knows. It waits until the counter has been watched for long enough since c.
func (c counter) rate() int {
	time.Sleep(time.Until(c.at.Add(counterTime)))
	now := readCounter()
	return int(float64(now.ticks-c.ticks)/now.at.Sub(c.at).Seconds()/1000 + 0.5)
}
