package stream

import (
	"runtime"
	"sync"
	"sync/atomic"

	"godat/ep"
	"godat/internal/release"
	"godat/internal/yield"
	dat "godat/runtime"
)

// turn is a mutex with a short way for what is done most often: a call that posts one send on
// an idle endpoint takes the turn by a claim on the endpoint. A post takes and releases
// the endpoint's token anyway, so the turn costs no locked instruction beyond those two.
//
// The two ways exclude each other, because each says that it comes by a locked
// instruction, and then looks at what the other says. If both see each other, the short way
// gives way. It does so also to a call that has come and gone while it looked: such a call may
// have posted behind the claim, which does not know of that. The long way waits for a call on
// the short one without being woken, so the short one is for what does not block.
type turn struct {
	mu    sync.Mutex
	long  atomic.Uint64 // grows when the holder of mu comes and when it goes, so it is odd meanwhile; the holder writes it
	short ep.Claim      // of the endpoint; a call on the short way has it
}

// Lock takes the turn by the long way.
func (t *turn) Lock() {
	t.mu.Lock()
	t.come()
	for t.short.Claimed() {
		runtime.Gosched()
	}
}

// come says that the holder of mu comes.
func (t *turn) come() {
	t.long.Store(t.long.Load() + 1)
	yield.Point()
}

// Unlock gives back what Lock has taken. A short way that does not see that yet is the
// longer one.
func (t *turn) Unlock() {
	release.Uint64(&t.long, t.long.Load()+1)
	t.mu.Unlock()
}

// claim takes the turn by the short way, for a send from within a segment, if no call has
// it. Send or Release of t.short gives the turn back.
func (t *turn) claim(from *dat.Segment) bool {
	before := t.long.Load()
	if before%2 != 0 || !t.short.Claim(from) {
		return false
	}
	yield.Point()
	if t.long.Load() == before {
		return true
	}
	t.short.Release()
	return false
}
