package yield

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"godat/internal/owner"
)

// Meet calls first and second at the same time, up to some hundred nanoseconds apart,
// as often as rounds says; under the race detector a twentieth of that. When the time is
// over it begins no more rounds: on a busy machine one takes milliseconds, because both
// calls have to run at once. It returns false if a call has not returned some seconds later.
//
// It is for tests of stores that other processors see late (package release), in
// builds without the race detector: the windows are some tens of nanoseconds wide, and
// nothing can widen them. The calls should spin where the protocol would sleep, with
// [Until], since goroutines that wake each other run by turns.
func Meet(rounds int, limit time.Duration, first, second func()) bool {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	if owner.Enabled {
		rounds /= 20
	}
	m := &meeting{done: make(chan struct{}, 2)}
	m.rounds.Store(int64(rounds))
	go m.play(first, true)
	go m.play(second, false)
	defer time.AfterFunc(limit, func() { m.over.Store(true) }).Stop()
	stuck := time.After(limit + 5*time.Second)
	for range 2 {
		select {
		case <-m.done:
		case <-stuck:
			return false
		}
	}
	return true
}

// meeting is a call of Meet.
type meeting struct {
	rounds  atomic.Int64  // how many there are; the first party changes it before it is ready
	over    atomic.Bool   // the time is
	arrived atomic.Int64  // how often a party was ready for a round
	done    chan struct{} // gets a value from each party that has played all rounds
}

func (m *meeting) play(call func(), isFirst bool) {
	for round := int64(0); ; round++ {
		if isFirst && m.over.Load() {
			m.rounds.Store(round)
		}
		m.arrived.Add(1)
		Until(func() bool { return m.arrived.Load() >= 2*(round+1) })
		if round >= m.rounds.Load() {
			break
		}
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
