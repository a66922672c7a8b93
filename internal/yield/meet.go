package yield

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"
)

// Meet calls first and second at the same time, up to some hundred nanoseconds apart,
// as often as rounds says; under the race detector a twentieth of that. It returns
// false if one of the calls has not returned when the time is over.
//
// It is for tests of stores that other processors see late (package release), in
// builds without the race detector: the windows are some tens of nanoseconds wide, and
// nothing can widen them. The calls should spin where the protocol would sleep, with
// [Until], since goroutines that wake each other run by turns.
func Meet(rounds int, limit time.Duration, first, second func()) bool {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	if raceBuild {
		rounds /= 20
	}
	m := &meeting{rounds: int64(rounds), done: make(chan struct{}, 2)}
	go m.play(first)
	go m.play(second)
	over := time.After(limit)
	for range 2 {
		select {
		case <-m.done:
		case <-over:
			return false
		}
	}
	return true
}

// meeting is a call of Meet.
type meeting struct {
	rounds  int64
	arrived atomic.Int64  // how often a party was ready for a round
	done    chan struct{} // gets a value from each party that has played all rounds
}

func (m *meeting) play(call func()) {
	for round := range m.rounds {
		m.arrived.Add(1)
		Until(func() bool { return m.arrived.Load() >= 2*(round+1) })
		for range rand.IntN(200) {
		}
		call()
	}
	m.done <- struct{}{}
}

// Until spins until cond is true. It yields the processor when that takes long.
func Until(cond func() bool) {
	for looks := 0; !cond(); looks++ {
		if looks > 1000 {
			runtime.Gosched()
		}
	}
}
