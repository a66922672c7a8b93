package ibv

import (
	"math"
	"time"
)

// rnrDelays are the times for which a receiver that is not ready can make a sender
// wait, by verbs' code. Code 0 is the longest.
var rnrDelays = [32]time.Duration{
	655360 * us, 10 * us, 20 * us, 30 * us, 40 * us, 60 * us, 80 * us, 120 * us,
	160 * us, 240 * us, 320 * us, 480 * us, 640 * us, 960 * us, 1280 * us, 1920 * us,
	2560 * us, 3840 * us, 5120 * us, 7680 * us, 10240 * us, 15360 * us, 20480 * us, 30720 * us,
	40960 * us, 61440 * us, 81920 * us, 122880 * us, 163840 * us, 245760 * us, 327680 * us, 491520 * us,
}

const us = time.Microsecond

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
