//go:build race || wasip1

package yield

import (
	"os"
	"runtime"
	"strconv"
)

// All goroutines read and write state without order: an atomic would give the race
// detector a happens-before edge at every point, and hide the very races that the
// points are there to show. A lost update costs only randomness.
var state uint64

func init() {
	seed, err := strconv.ParseUint(os.Getenv("GODAT_YIELD_SEED"), 0, 64)
	if err != nil {
		seed = 1
	}
	Seed(seed)
}

// Seed sets where the sequence of yields begins. At the start of the program the
// environment variable GODAT_YIELD_SEED sets it.
//
//go:norace
func Seed(seed uint64) { state, shift = seed, shifts[seed%uint64(len(shifts))] }

// shift is the seed's: one call in 1<<shift yields. Some faults want two goroutines that take turns at each point, and
// others one that goes on for long.
var (
	shift  uint64
	shifts = [...]uint64{1, 3, 5, 2}
)

// visit, unless it is nil, is called at every point instead of a yield.
var visit func()

//go:norace
func setVisit(f func()) { visit = f }

// Point marks a window: some calls let other goroutines run, and a 32nd of these for long.
//
//go:norace
func Point() {
	if visit != nil {
		visit()
		return
	}
	state += 0x9e3779b97f4a7c15 // splitmix64
	x := state
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	rounds := 0
	switch {
	case x>>(59-shift) == 0:
		rounds = 16
	case x>>(64-shift) == 0:
		rounds = 1
	}
	for range rounds {
		runtime.Gosched()
	}
}
