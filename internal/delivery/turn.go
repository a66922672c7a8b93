package delivery

import (
	"context"
	"runtime"
	"sync/atomic"

	"godat/internal/owner"
	"godat/internal/release"
)

// turn says which goroutine is the consumer of a ring, of which there is one at a
// time, and counts the events that consumers took. Its model is check/models/turn.pml.
type turn struct {
	own    owner.Tag // the consumer's
	word   atomic.Uint64
	queued atomic.Int32  // how many iterators sleep for their turn
	next   chan struct{} // wakes one of them
}

// The low bits of a turn's word say of which kind the consumer is. The others count the events
// taken, so that one store both frees the places and lets the next consumer in.
const (
	turnFree     = 0
	turnBusy     = 1 // a Dequeue, a SetNotifier, or a Wait that looks for the first time; soon over
	turnWaiter   = 2 // a Wait that has to wait, or that a producer may rely on
	turnIterator = 3 // an iterator that waits
	turnMask     = 3
	turnShift    = 2
)

// tryAcquire makes the caller the consumer if there is none. w is the word as the
// caller has seen it.
func (t *turn) tryAcquire(w, as uint64) bool {
	if w&turnMask != turnFree || !t.word.CompareAndSwap(w, w|as) {
		return false
	}
	t.own.Acquire()
	return true
}

// acquire makes the caller the consumer. It waits for a Dequeue to finish, and
// reports false while a goroutine waits.
func (t *turn) acquire(as uint64) bool {
	for {
		w := t.word.Load()
		switch w & turnMask {
		case turnFree:
			if t.tryAcquire(w, as) {
				return true
			}
		case turnBusy:
			runtime.Gosched()
		default:
			return false
		}
	}
}

// stay makes a turnBusy consumer a turnWaiter.
func (t *turn) stay() {
	t.own.Check()
	t.word.Add(turnWaiter - turnBusy)
}

// release frees the places of the events taken so far, and lets other consumers in.
func (t *turn) release(taken uint64) {
	t.own.Release()
	t.word.Store(taken << turnShift)
}

// releaseSoon is release for a consumer that was turnBusy. Other goroutines may see it a
// moment after it has returned; but none of them sleeps until such a consumer leaves.
func (t *turn) releaseSoon(taken uint64) {
	t.own.Release()
	release.Uint64(&t.word, taken<<turnShift)
}

// taken counts the events whose places are free.
func (t *turn) taken() uint64 { return t.word.Load() >> turnShift }

// kind says of which kind the consumer is.
func (t *turn) kind() uint64 { return t.word.Load() & turnMask }

// awaited reports whether a goroutine waits for events, asleep or not.
func (t *turn) awaited() bool { return t.kind() > turnBusy }

// await sleeps until the current waiter has stopped; it reports false if the context
// ends or stop is closed before. Each side writes its own word before it reads the
// other's: await writes queued, the waiter word.
func (t *turn) await(ctx context.Context, stop <-chan struct{}) bool {
	t.queued.Add(1)
	defer t.queued.Add(-1)
	if !t.awaited() {
		return true
	}
	select {
	case <-t.next:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	return false
}

// signal wakes an iterator that sleeps for its turn, which signals when it leaves, too. So
// many releases may share one signal.
func (t *turn) signal() {
	if t.queued.Load() == 0 {
		return
	}
	select {
	case t.next <- struct{}{}:
	default:
	}
}
