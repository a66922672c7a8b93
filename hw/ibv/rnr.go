package ibv

import (
	"math"
	"time"
)

// rnrDelays are the times that a receiver which is not ready can ask a sender to
// wait, by verbs' code. Code 0 is the longest.
var rnrDelays = [32]time.Duration{
	655360 * time.Microsecond, 10 * time.Microsecond, 20 * time.Microsecond, 30 * time.Microsecond,
	40 * time.Microsecond, 60 * time.Microsecond, 80 * time.Microsecond, 120 * time.Microsecond,
	160 * time.Microsecond, 240 * time.Microsecond, 320 * time.Microsecond, 480 * time.Microsecond,
	640 * time.Microsecond, 960 * time.Microsecond, 1280 * time.Microsecond, 1920 * time.Microsecond,
	2560 * time.Microsecond, 3840 * time.Microsecond, 5120 * time.Microsecond, 7680 * time.Microsecond,
	10240 * time.Microsecond, 15360 * time.Microsecond, 20480 * time.Microsecond, 30720 * time.Microsecond,
	40960 * time.Microsecond, 61440 * time.Microsecond, 81920 * time.Microsecond, 122880 * time.Microsecond,
	163840 * time.Microsecond, 245760 * time.Microsecond, 327680 * time.Microsecond, 491520 * time.Microsecond,
}

const (
	rnrForever = 7 // a retry count that never runs out
	rnrMost    = 6
	// rnrUsual is the wait that a receiver helps its peer to when its own
	// configuration names none: DAT's default, in rnrMost parts.
	rnrUsual = time.Second
)

// rnr turns NotReady into what verbs have: how often this side's sends are retried,
// and how long its receive side asks the peer to wait each time. The peer's time
// counts for this side's sends, so the wait is right when both ask for the same;
// what is beyond verbs' reach (4 s) never runs out.
func rnr(notReady time.Duration) (retries, code int) {
	if notReady <= 0 {
		return 0, rnrCode(rnrUsual)
	}
	code = rnrCode(notReady)
	if notReady > rnrMost*rnrDelays[code] {
		return rnrForever, code
	}
	return int(math.Ceil(float64(notReady) / float64(rnrDelays[code]))), code
}

// rnrCode is the shortest delay of which rnrMost are at least d, or the longest.
func rnrCode(d time.Duration) int {
	best := 0
	for code, delay := range rnrDelays {
		if rnrMost*delay >= d && delay <= rnrDelays[best] {
			best = code
		}
	}
	return best
}
