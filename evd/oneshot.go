package evd

import (
	"context"
	"fmt"

	"godat/internal/delivery"
	"godat/internal/door"
)

// OneShot is where one operation's event goes, for the goroutine that waits for
// just that one. A post that names it arms it; it takes one event, and when that was
// received another post may name it.
//
// Any goroutine may call its methods; its holder decides who posts with a OneShot,
// receives its event and releases it.
type OneShot struct{ inner delivery.OneShot }

// NewOneShot takes a OneShot from the dispatcher's pool, or makes one. Its
// events count in no queue.
func (d *Dispatcher) NewOneShot() *OneShot {
	if d == nil {
		return nil
	}
	if s, ok := d.inner.PooledOneShot().(*OneShot); ok {
		return s
	}
	s := new(OneShot)
	s.inner.Init(&d.inner, s)
	return s
}

// C is the channel on which the event comes.
func (s *OneShot) C() <-chan Event {
	if s == nil {
		return nil
	}
	return s.inner.C()
}

// Wait receives the event. The context's deadline is TIMEOUT_EXPIRED, its end
// INTERRUPTED_CALL, and an aborted dispatcher ABORT; the event may be waited for
// again then. It is INVALID_STATE if no operation was posted since the last event.
func (s *OneShot) Wait(ctx context.Context) (Event, error) {
	if s == nil {
		return Event{}, invalidHandle("evd.OneShot.Wait")
	}
	return s.inner.Wait(ctx)
}

// Release gives the OneShot back to the pool; its holder forgets it. If an
// event is outstanding, that is dropped when it comes, and only then is the
// OneShot used again. Releasing it twice panics if it is noticed.
func (s *OneShot) Release() {
	if s != nil {
		s.inner.Release()
	}
}

// String names the request.
func (s *OneShot) String() string { return fmt.Sprintf("OneShot(%p)", s) }

// Wiring is for the package of this module that posts: a program can't make its argument.
func (s *OneShot) Wiring(door.Key) *delivery.OneShot {
	if s == nil {
		return nil
	}
	return &s.inner
}
