package evd

import (
	"context"
	"log/slog"

	"godat/hw/event"
	"godat/internal/delivery"
	"godat/internal/door"
)

// OneShot takes the event of one operation, for a goroutine that waits for just
// that operation. A post that names the OneShot arms it. It takes one event; after
// that event was received, another post may name it.
//
// Any goroutine may call its methods; its holder decides which goroutine posts with
// it, receives its event and releases it.
//
// [Dispatcher.NewOneShot] makes one, and a [godat/ep.DTO] names it.
type OneShot struct{ inner delivery.OneShot }

// NewOneShot takes a OneShot from the dispatcher's pool, or makes one. Its events
// take no place of a queue. The holder gives it back with Release.
func (d *Dispatcher) NewOneShot() *OneShot {
	if d == nil {
		return nil
	}
	if s, ok := d.shots.Take().(*OneShot); ok {
		return s
	}
	s := new(OneShot)
	s.inner.Init(&d.inner, &d.shots, s)
	return s
}

// C is the channel that the event comes on.
func (s *OneShot) C() <-chan event.Event {
	if s == nil {
		return nil
	}
	return s.inner.C()
}

// Wait receives the event. It fails with TIMEOUT_EXPIRED when the context's
// deadline passes, with INTERRUPTED_CALL when the context is canceled, and with
// ABORT when the dispatcher is closed; after that the holder may wait for the event
// again. It returns INVALID_STATE if no event is to come: no operation was posted since the last event, or
// the operation has ended without one, as a suppressed one does that succeeds.
func (s *OneShot) Wait(ctx context.Context) (event.Event, error) {
	if s == nil {
		return event.Event{}, delivery.InvalidShot("evd.OneShot.Wait")
	}
	return s.inner.Wait(ctx)
}

// Release returns the OneShot to the pool; its holder must not use it any more. If
// an event is outstanding, it is dropped when it comes, and only then is the
// OneShot used again. A second Release panics if it is noticed.
func (s *OneShot) Release() {
	if s != nil {
		s.inner.Release()
	}
}

// String names the OneShot.
func (s *OneShot) String() string {
	if s == nil {
		return "OneShot(nil)"
	}
	return s.inner.String()
}

// LogValue is String, for log/slog.
func (s *OneShot) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Wiring returns the side of the OneShot that the posting package of this module
// uses. A program can't make the argument.
func (s *OneShot) Wiring(door.Key) *delivery.OneShot {
	if s == nil {
		return nil
	}
	return &s.inner
}
