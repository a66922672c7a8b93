package ibv

import (
	"math"
	"time"
)

// rnrDelays are the times for which a receiver that is not ready can make a sender
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
	// rnrUsual is the total wait that a receiver grants its peer when its own
	// configuration names none: DAT's default, divided into rnrMost delays.
	rnrUsual = time.Second
)

// rnr translates NotReady into verbs' terms: how often this side's sends are retried,
// and the code of the delay that its receive side asks of the peer each time. The delay
// of this side's sends is the peer's, so the total is right when both sides configure
// the same NotReady. A wait longer than verbs can express (4 s) never runs out, so its
// delay is the usual one: of several senders that wait for the same shared receives, each
// asks often enough that none is kept waiting by the others.
func rnr(notReady time.Duration) (retries, code int) {
	if notReady <= 0 {
		return 0, rnrCode(rnrUsual)
	}
	code = rnrCode(notReady)
	if notReady > rnrMost*rnrDelays[code] {
		return rnrForever, rnrCode(rnrUsual)
	}
	return int(math.Ceil(float64(notReady) / float64(rnrDelays[code]))), code
}

// rnrCode is the code of the shortest delay that reaches d in rnrMost repetitions, or
// of the longest delay when none does.
func rnrCode(d time.Duration) int {
	best := 0
	for code, delay := range rnrDelays {
		if rnrMost*delay >= d && delay <= rnrDelays[best] {
			best = code
		}
	}
	return best
}
