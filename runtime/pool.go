package runtime

import (
	"math"
	goruntime "runtime"
	"time"

	"github.com/panjf2000/ants/v2"

	"godat/hw"
)

// PoolConfig bounds the goroutines of an adapter. Upcalls and control calls have
// a share each, which the other can't take: a program that blocks in control
// calls still gets its callbacks.
type PoolConfig struct {
	// Upcalls is how many callbacks of dispatchers may run at once in the pool; 0 means
	// 64. Further callbacks get goroutines of their own, so that events don't wait for
	// the callbacks of other dispatchers.
	Upcalls int
	// Control is how many blocking calls on the provider may run at once; 0 means
	// 16.
	Control int
}

const (
	defaultUpcalls = 64
	defaultControl = 16
	mostPlaces     = math.MaxInt32 // ants counts in 32 bits
	releaseBound   = 5 * time.Second
	releaseYields  = 64

	// The pauses of release: each is twice as long as the one before.
	firstPause   = 20 * time.Microsecond
	longestPause = 10 * time.Millisecond
)

// pool runs the adapter's tasks: callbacks in one share, blocking calls in another.
type pool struct {
	upcalls *ants.Pool
	control *ants.Pool
}

func newPool(cfg PoolConfig) (*pool, error) {
	const op = "runtime.Open"
	if cfg.Upcalls < 0 || cfg.Control < 0 {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype,
			"a pool of %d upcalls and %d control calls", cfg.Upcalls, cfg.Control)
	}
	if cfg.Upcalls == 0 {
		cfg.Upcalls = defaultUpcalls
	}
	if cfg.Control == 0 {
		cfg.Control = defaultControl
	}
	p := new(pool)
	var err error
	if p.upcalls, err = ants.NewPool(min(cfg.Upcalls, mostPlaces), ants.WithNonblocking(true), ants.WithPanicHandler(panicAgain)); err != nil {
		return nil, hw.Errorf(op, hw.InternalError, hw.NoSubtype, "%w", err)
	}
	if p.control, err = ants.NewPool(min(cfg.Control, mostPlaces), ants.WithNonblocking(true), ants.WithPanicHandler(panicAgain)); err != nil {
		p.upcalls.Release()
		return nil, hw.Errorf(op, hw.InternalError, hw.NoSubtype, "%w", err)
	}
	return p, nil
}

// panicAgain undoes the pool's recovery of a panic: the program's panic ends the
// process, as it does when the pool has no place and the task has a goroutine of its
// own. The pool calls it before the stack unwinds, so the trace shows the code that
// panicked.
func panicAgain(v any) { panic(v) }

// upcall runs a dispatcher's callbacks in the pool. It never blocks; an error means
// that the share is used up.
func (p *pool) upcall(task func()) error { return p.upcalls.Submit(task) }

// call runs in the pool a call that may block. It never blocks itself; an error means
// that the share is used up.
func (p *pool) call(task func()) error { return p.control.Submit(task) }

// release ends the pool's goroutines. Its tasks have ended, or are about to; a goroutine
// whose task takes longer than release waits ends after the task. Before it sleeps, release
// yields the processor to the goroutines, which have nothing left to do but to end: a sleep
// takes a whole millisecond in a process that is idle, however short the pause is.
//
// release does not wait by ants' ReleaseTimeout, which spins until two goroutines of the
// pool's own have ended. On the only processor they run when the scheduler preempts the
// spinning goroutine, after 10 ms.
func (p *pool) release() {
	p.abandon()
	for yields := 0; p.running() && yields < releaseYields; yields++ {
		goruntime.Gosched()
	}
	pause := firstPause
	for end := time.Now().Add(releaseBound); p.running() && time.Now().Before(end); pause = min(2*pause, longestPause) {
		time.Sleep(pause)
	}
}

// running reports whether a goroutine of the pool is left.
func (p *pool) running() bool { return p.upcalls.Running()+p.control.Running() > 0 }

// abandon is release without the wait. A caller that is itself a task of the pool calls
// it, because release would wait for that task.
func (p *pool) abandon() {
	p.upcalls.Release()
	p.control.Release()
}
