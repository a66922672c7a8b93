package delivery

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/yield"
)

// OneShot is what is behind an evd.OneShot: it takes one operation's event. A post
// arms it. It takes one event; after that event was received it may be armed again.
//
// Any goroutine may call Arm and Release; the holder decides which goroutine posts
// with the OneShot, receives its event and releases it.
type OneShot struct {
	queue  Queue
	ch     chan event.Event
	none   chan struct{} // wakes a Wait when an arming has ended without an event
	d      *Dispatcher
	home   *Shots
	public any // the *evd.OneShot
	number uint64
	state  atomic.Uint32
	next   *OneShot // the next one in the pool
}

// The states of a OneShot.
const (
	shotIdle      = iota // no event outstanding or in the channel
	shotArmed            // an event will come
	shotSending          // the event is being sent
	shotSent             // the event was sent; it was received if the channel is empty
	shotAbandoned        // armed, and released by its holder
	shotPooled
)

// Shots has the OneShots of a dispatcher without a holder.
type Shots struct {
	mu   sync.Mutex
	free *OneShot
}

// Take takes a OneShot from the pool, and returns the *evd.OneShot that it was
// made with; nil when the pool is empty.
func (p *Shots) Take() (public any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.free
	if s == nil {
		return nil
	}
	p.free, s.next = s.next, nil
	s.state.Store(shotIdle)
	return s.public
}

// Init makes s a OneShot of the dispatcher and its pool, for the *evd.OneShot that it is behind.
func (s *OneShot) Init(d *Dispatcher, pool *Shots, public any) {
	s.d, s.home, s.number = d, pool, shots.Add(1)
	s.public = public
	s.queue.d = d
	s.queue.SinkTo(s)
	s.ch = make(chan event.Event, 1)
	s.none = make(chan struct{}, 1)
}

// shots numbers the OneShots of the process, from 1 on.
var shots atomic.Uint64

// String names the OneShot.
func (s *OneShot) String() string { return fmt.Sprintf("OneShot(%d)", s.number) }

// C is the channel that the event comes on.
func (s *OneShot) C() <-chan event.Event { return s.ch }

// Wait receives the event; see evd.OneShot.Wait.
func (s *OneShot) Wait(ctx context.Context) (event.Event, error) {
	const op = "evd.OneShot.Wait"
	if ctx == nil {
		return event.Event{}, waitError(op, ErrNoContext)
	}
	for {
		select {
		case ev := <-s.ch:
			return ev, nil
		default:
		}
		switch s.state.Load() {
		case shotSent:
			if len(s.ch) != 0 {
				break // the event came meanwhile
			}
			fallthrough
		case shotIdle:
			return event.Event{}, &hw.Error{Op: op, Type: hw.InvalidState, Text: "no event is to come: nothing was posted, or what was posted has ended without one"}
		case shotPooled, shotAbandoned:
			return event.Event{}, InvalidShot(op)
		}
		select {
		case ev := <-s.ch:
			return ev, nil
		case <-ctx.Done():
			return event.Event{}, waitError(op, ctx.Err())
		case <-s.none: // by this arming, or by one before: look again
			continue
		case <-s.d.stop:
		}
		select {
		case ev := <-s.ch:
			return ev, nil
		default:
			return event.Event{}, waitError(op, errAborted)
		}
	}
}

// Serves reports whether posts that complete to a dispatcher of an adapter may name
// the OneShot: not if its own dispatcher is another adapter's.
func (s *OneShot) Serves(d *Dispatcher, ia any) bool { return s.d == d || s.d.Serves(ia) }

// Arm returns the queue for one event, with its place reserved. It fails with
// INVALID_STATE while an event is outstanding or was not received. Posters call
// Arm; programs name the OneShot in a post.
func (s *OneShot) Arm() (*Queue, error) {
	if s == nil || s.d.main.closed() {
		return nil, errArmClosed
	}
	for {
		switch now := s.state.Load(); now {
		case shotIdle:
			if s.state.CompareAndSwap(now, shotArmed) {
				return &s.queue, nil
			}
		case shotSending:
			runtime.Gosched() // it may have been received before its sender noted that it was sent
		case shotSent:
			if len(s.ch) != 0 {
				return nil, errArmBusy
			}
			if s.state.CompareAndSwap(now, shotArmed) {
				return &s.queue, nil
			}
		case shotArmed:
			return nil, errArmBusy
		default:
			return nil, errArmClosed
		}
	}
}

// Put delivers the event, or drops it if the holder has released the OneShot.
func (s *OneShot) Put(evs []event.Event) {
	for i := range evs {
		s.put(&evs[i])
	}
}

func (s *OneShot) put(ev *event.Event) {
	if s.state.CompareAndSwap(shotArmed, shotSending) {
		yield.Point()
		if assertions && len(s.ch) != 0 {
			panic("evd: a one-shot request got two events")
		}
		s.ch <- *ev
		yield.Point()
		s.state.Store(shotSent)
		return
	}
	s.disarm()
}

// Flush does nothing: the event is in the channel.
func (*OneShot) Flush(bool) {}

// Free ends an arming without an event.
func (s *OneShot) Free(int) { s.disarm() }

// Counts has nothing to count.
func (*OneShot) Counts() (came uint64, listed int) { return 0, 0 }

// disarm ends an arming without an event.
func (s *OneShot) disarm() {
	if s.state.CompareAndSwap(shotArmed, shotIdle) {
		select {
		case s.none <- struct{}{}:
		default:
		}
		return
	}
	if !s.state.CompareAndSwap(shotAbandoned, shotPooled) {
		panic("evd: a one-shot request was completed twice")
	}
	s.pool()
}

// Release returns the OneShot to the pool; see evd.OneShot.Release.
func (s *OneShot) Release() {
	for {
		switch now := s.state.Load(); now {
		case shotArmed:
			if s.state.CompareAndSwap(now, shotAbandoned) {
				return
			}
		case shotIdle, shotSent:
			if s.state.CompareAndSwap(now, shotPooled) {
				s.pool()
				return
			}
		case shotSending:
			runtime.Gosched()
		default:
			panic("evd: a one-shot request was released twice")
		}
	}
}

func (s *OneShot) pool() {
	select {
	case <-s.ch: // sent and not received
	default:
	}
	p := s.home
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free, s.next = s, p.free
}
