package ep

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"godat/ep/internal/line"
	"godat/hw"
	"godat/internal/release"
)

// Outbox gathers requests for an endpoint and posts them together: a server that
// handles all events at hand, then flushes the answers, rings the device's doorbell
// once for all of them. One goroutine at a time may use it: of several, most calls notice
// that and are INVALID_STATE. It allocates nothing after its first request.
type Outbox struct {
	ep     *Endpoint
	room   int // the most requests
	number uint64
	dtos   []DTO         // nil before the first request; all beyond its length are empty
	last   int           // how many requests there are up to the last one of Own.Next
	busy   atomic.Uint32 // 1 during a call, so that most calls of two goroutines at a time are noticed

	dropped func(cookie uint64) // told of each request of Own.Next that Reset drops; nil: nobody is
}

// NewOutbox makes an outbox that holds up to n requests for e. It panics unless n
// is within 1 and 2^20, the most requests that an endpoint takes.
func NewOutbox(e *Endpoint, n int) *Outbox {
	if n < 1 || n > maxDepth {
		panic(hw.Errorf("ep.NewOutbox", hw.InvalidParameter, hw.Arg2, "room for %d requests; there may be 1 to %d", n, maxDepth).Error())
	}
	return &Outbox{ep: e, room: n, number: outboxes.Add(1)}
}

// Add gathers a request; if the outbox is full it flushes first. If it returns an
// error, which is Flush's, the request was not added. A nil outbox is
// INVALID_HANDLE.
func (o *Outbox) Add(d DTO) error {
	next, err := o.Next()
	if err != nil {
		return err
	}
	*next = d
	return nil
}

// Next is Add for a caller that fills in the request where it is, which saves a copy. The
// request is empty. It is the caller's until the next call of the outbox.
func (o *Outbox) Next() (*DTO, error) {
	if o == nil {
		return nil, nilOutbox("ep.Outbox.Add")
	}
	if !o.enter() {
		return nil, busyOutbox("ep.Outbox.Add")
	}
	if len(o.dtos) == cap(o.dtos) {
		if err := o.full(); err != nil {
			o.leave()
			return nil, err
		}
	}
	n := len(o.dtos)
	o.dtos = o.dtos[:n+1]
	d := &o.dtos[n]
	o.leave()
	return d, nil
}

// enter begins a call, and reports whether no other is under way.
func (o *Outbox) enter() bool {
	if o.busy.Load() != 0 {
		return false
	}
	release.Uint32(&o.busy, 1)
	return true
}

func (o *Outbox) leave() { release.Uint32(&o.busy, 0) }

// full makes room for a request: at first for all, and later by a Flush.
func (o *Outbox) full() error {
	if o.dtos == nil {
		o.dtos = make([]DTO, 0, o.room)
		return nil
	}
	return o.flush()
}

// Flush posts the gathered requests, in order, as one batch. If it returns an error
// the requests that were not posted stay for the next Flush, or for Reset:
// INSUFFICIENT_RESOURCES says that the endpoint or a dispatcher has no room now;
// any other error is about the first request left and comes again until Reset. See
// [Endpoint.PostBatch].
func (o *Outbox) Flush() error {
	if o == nil {
		return nilOutbox("ep.Outbox.Flush")
	}
	if !o.enter() {
		return busyOutbox("ep.Outbox.Flush")
	}
	err := o.flush()
	o.leave()
	return err
}

func (o *Outbox) flush() error {
	if len(o.dtos) == 0 {
		return nil
	}
	if o.last > 0 {
		o.dtos[o.last-1].Flags &^= hw.Suppress
	}
	n, err := o.ep.PostBatch(o.dtos)
	o.last = max(o.last-n, 0)
	o.truncate(copy(o.dtos, o.dtos[n:]))
	return err
}

// Reset drops the gathered requests. Messages that a connection of package runtime has
// queued give their buffers back.
func (o *Outbox) Reset() {
	if o == nil {
		return
	}
	for i := range o.dtos {
		if d := &o.dtos[i]; d.OneShot == line.OwnShot && o.dropped != nil {
			o.dropped(d.Cookie)
		}
	}
	o.last = 0
	o.truncate(0)
}

// String names the outbox. It may be called at any time, as the String of every handle.
func (o *Outbox) String() string {
	if o == nil {
		return "Outbox(nil)"
	}
	return fmt.Sprintf("Outbox(%d)", o.number)
}

// LogValue is String, for log/slog.
func (o *Outbox) LogValue() slog.Value { return slog.StringValue(o.String()) }

func nilOutbox(op string) error {
	return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleEP, Text: "the outbox is nil"}
}

func busyOutbox(op string) error {
	return &hw.Error{Op: op, Type: hw.InvalidState, Text: "another goroutine is in a call of this outbox: let one goroutine queue and flush, or hold a mutex around both"}
}

func (o *Outbox) truncate(n int) {
	clear(o.dtos[n:]) // the DTOs may hold segments and one-shots
	o.dtos = o.dtos[:n]
}
