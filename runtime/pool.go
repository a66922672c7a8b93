package runtime

import (
	"cmp"
	"math"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/panjf2000/ants/v2"

	"godat/hw"
)

const (
	defaultUpcalls = 64
	mostPlaces     = math.MaxInt32 // ants counts in 32 bits
	releaseBound   = 5 * time.Second
	releaseYields  = 64

	// The pauses of release: each is twice as long as the one before.
	firstPause   = 20 * time.Microsecond
	longestPause = 10 * time.Millisecond
)

// pool runs the adapter's upcalls: callbacks, and lines of the log. Its goroutines begin with the first upcall,
// and those that have had nothing to do for a second end.
type pool struct {
	places int // immutable

	mu      sync.Mutex
	over    bool
	upcalls *ants.Pool // nil before the first upcall: two goroutines of ants' come with it
}

func newPool(upcalls int) (*pool, error) {
	if upcalls < 0 {
		return nil, hw.Errorf("runtime.Open", hw.InvalidParameter, hw.NoSubtype, "a pool of %d upcalls", upcalls)
	}
	return &pool{places: min(cmp.Or(upcalls, defaultUpcalls), mostPlaces)}, nil
}

// panicAgain undoes the pool's recovery of a panic: the program's panic ends the
// process, as it does when the pool has no place and the task has a goroutine of its
// own. The pool calls it before the stack unwinds, so the trace shows the code that
// panicked.
func panicAgain(v any) { panic(v) }

// upcall runs a task in the pool. It never blocks; an error means that no place is free, or
// that the pool is released.
func (p *pool) upcall(task func()) error {
	in, err := p.begun()
	if err != nil {
		return err
	}
	return in.Submit(task)
}

// begun returns ants' pool, which the first call makes.
func (p *pool) begun() (*ants.Pool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil, ants.ErrPoolClosed
	}
	var err error
	if p.upcalls == nil {
		p.upcalls, err = ants.NewPool(p.places, ants.WithNonblocking(true), ants.WithPanicHandler(panicAgain))
	}
	return p.upcalls, err
}

// release ends the pool's goroutines. Its tasks have ended, or are about to; a goroutine
// whose task takes longer than release waits ends after the task. Before it sleeps, release
// yields the processor to the goroutines, which have nothing left to do but to end: a sleep
// takes a whole millisecond in a process that is idle, however short the pause is.
//
// release does not wait by ants' ReleaseTimeout, which spins until two goroutines of the
// pool's own have ended. On the only processor they run when the scheduler preempts the
// spinning goroutine, after 10 ms.
func (p *pool) release() {
	p.mu.Lock()
	if p.over = true; p.upcalls != nil {
		p.upcalls.Release()
	}
	p.mu.Unlock()
	for yields := 0; p.running() && yields < releaseYields; yields++ {
		goruntime.Gosched()
	}
	pause := firstPause
	for end := time.Now().Add(releaseBound); p.running() && time.Now().Before(end); pause = min(2*pause, longestPause) {
		time.Sleep(pause)
	}
}

// running reports whether a goroutine of the pool is left.
func (p *pool) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upcalls != nil && p.upcalls.Running() > 0
}
