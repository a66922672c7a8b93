package load

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate is how messages are offered: a number per second, Closed or Max.
type Rate float64

const (
	// Closed keeps a number of messages outstanding, and nobody but the consumer posts:
	// each message that it has taken is followed by the next.
	Closed Rate = 0
	// Max has a second goroutine that posts whenever there is room.
	Max Rate = Rate(math.MaxFloat64)
)

// Open reports whether messages are offered at intended times, whatever has become of
// the ones before.
func (r Rate) Open() bool { return r != Closed && r != Max }

// UnmarshalText reads "closed", "max", or a number per second such as 10k or 1.5M.
func (r *Rate) UnmarshalText(text []byte) error {
	s := string(text)
	switch s {
	case "closed":
		*r = Closed
		return nil
	case "max":
		*r = Max
		return nil
	}
	number, unit := s, 1.0
	for suffix, u := range map[string]float64{"k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6} {
		if before, ok := strings.CutSuffix(s, suffix); ok {
			number, unit = before, u
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !(f*unit >= 1 && f*unit <= 1e9) {
		return fmt.Errorf("no rate %q: closed, max, or messages per second from 1 to 1000M, as in 10k", s)
	}
	*r = Rate(f * unit)
	return nil
}

func (r Rate) String() string {
	switch {
	case r == Closed:
		return "closed"
	case r == Max:
		return "max"
	case r >= 1e6:
		return strconv.FormatFloat(float64(r)/1e6, 'g', 4, 64) + "M"
	case r >= 1e3:
		return strconv.FormatFloat(float64(r)/1e3, 'g', 4, 64) + "k"
	}
	return strconv.FormatFloat(float64(r), 'g', 4, 64)
}

// MarshalText is String.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// intended is when the message with number n is to be posted, since the beginning. It
// depends on no message before.
func (r Rate) intended(n int64) time.Duration {
	return time.Duration(float64(n) / float64(r) * float64(time.Second))
}
