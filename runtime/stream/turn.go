package stream

import (
	"runtime"
	"sync"
	"sync/atomic"

	"godat/internal/release"
	"godat/internal/yield"
)

// turn is a mutex with a short way for what is done most often: tryShort takes it by one
// locked instruction, and unlockShort gives it back without one.
//
// The two ways exclude each other, because each says that it comes by a locked
// instruction, and then looks at what the other says. If both see each other, the short way
// gives way. The long way waits for a call on the short one without being woken, so the
// short one is for what does not block.
type turn struct {
	mu    sync.Mutex
	long  atomic.Uint32 // 1 while the holder of mu has the turn, or waits for the short way
	short atomic.Uint32 // 1 while a call has the turn by the short way
}

// Lock takes the turn by the long way.
func (t *turn) Lock() {
	t.mu.Lock()
	t.long.Store(1)
	yield.Point()
	for t.short.Load() != 0 {
		runtime.Gosched()
	}
}

// Unlock gives back what Lock has taken. A short way that does not see that yet is the
// longer one.
func (t *turn) Unlock() {
	release.Uint32(&t.long, 0)
	t.mu.Unlock()
}

// tryShort takes the turn by the short way, if no call has it.
func (t *turn) tryShort() bool {
	if t.long.Load() != 0 || !t.short.CompareAndSwap(0, 1) {
		return false
	}
	yield.Point()
	if t.long.Load() == 0 {
		return true
	}
	t.unlockShort()
	return false
}

// unlockShort gives back what tryShort has taken. Nobody sleeps until it does.
func (t *turn) unlockShort() { release.Uint32(&t.short, 0) }
