// Package mode has the ways in which completions reach a program, as loops that a
// benchmark can run over the same dispatcher settings.
package mode

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// Mode is one way of taking events.
type Mode struct {
	Name string

	delivery evd.Mode
	take     func(*Consumer, func(event.Event) bool) error
}

// The names of the modes.
const (
	poll       = "poll"
	wait       = "wait"
	channel    = "channel"
	batch      = "batch"
	perRequest = "per-request"
	callback   = "callback"
	iterator   = "iterator"
)

// The modes, in the order of their tables.
var (
	Poll       = Mode{Name: poll, take: (*Consumer).poll}                                         // d.Dequeue(buf)
	Wait       = Mode{Name: wait, take: (*Consumer).wait}                                         // d.Wait(ctx, 1)
	Channel    = Mode{Name: channel, delivery: evd.ModeChannel, take: (*Consumer).receive}        // <-d.C()
	Batch      = Mode{Name: batch, delivery: evd.ModeBatch, take: (*Consumer).receiveBatches}     // <-d.Batches()
	PerRequest = Mode{Name: perRequest, delivery: evd.ModeChannel, take: (*Consumer).receiveEach} // <-oneShot.C()
	Callback   = Mode{Name: callback, delivery: evd.ModeCallback, take: (*Consumer).callBack}     // Callback: f
	Iterator   = Mode{Name: iterator, take: (*Consumer).iterate}                                  // range d.Events(ctx)
)

// All returns the modes.
func All() []Mode { return []Mode{Poll, Wait, Channel, Batch, PerRequest, Callback, Iterator} }

func (m Mode) String() string { return m.Name }

// MarshalText is String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.Name), nil }

// UnmarshalText finds the mode of a name.
func (m *Mode) UnmarshalText(text []byte) error {
	for _, known := range All() {
		if known.Name == string(text) {
			*m = known
			return nil
		}
	}
	return fmt.Errorf("no mode %q: one of %v", text, All())
}

// Consumer takes the events of a dispatcher in one mode. One goroutine uses it.
type Consumer struct {
	mode Mode
	d    *evd.Dispatcher
	buf  []event.Event

	shots []*evd.OneShot // of PerRequest, one for each slot
	next  int            // the slot whose event PerRequest takes next
	dto   [1]ep.DTO

	loop string // that ran last

	// Of Callback: take gives f and waits for done.
	give chan func(event.Event) bool
	f    func(event.Event) bool
	done chan error
}

const atOnce = 32 // events that a poll takes at most

// NewConsumer makes a dispatcher for qlen events, and a consumer of it in mode m. Its
// receives have slots from 0 to slots-1.
func NewConsumer(ia *dat.IA, m Mode, qlen, slots int) (*Consumer, error) {
	c := &Consumer{mode: m, buf: make([]event.Event, atOnce)}
	cfg := evd.Config{Mode: m.delivery, QLen: qlen}
	if m.delivery == evd.ModeCallback {
		c.give, c.done = make(chan func(event.Event) bool, 1), make(chan error, 1)
		cfg.Callback = c.called
	}
	var err error
	if c.d, err = ia.NewDispatcher(cfg); err != nil {
		return nil, err
	}
	if m.Name == PerRequest.Name {
		for range slots {
			c.shots = append(c.shots, c.d.NewOneShot())
		}
	}
	return c, nil
}

// Close closes the dispatcher, which no endpoint may use any more, and ends a Take in
// Callback.
func (c *Consumer) Close() error {
	err := c.d.Close()
	select {
	case c.done <- io.ErrUnexpectedEOF: // nothing is called any more
	default:
	}
	return err
}

// Dispatcher is where the consumer's events come.
func (c *Consumer) Dispatcher() *evd.Dispatcher { return c.d }

// PostRecv posts a receive, whose event has the slot as its cookie. The slots of
// successive receives go around.
func (c *Consumer) PostRecv(e *ep.Endpoint, slot int, seg mem.Segment) error {
	if c.shots == nil {
		return e.PostRecv(uint64(slot), 0, seg)
	}
	c.dto[0] = ep.DTO{Cookie: uint64(slot), Segment: seg, OneShot: c.shots[slot]}
	_, err := e.PostRecvBatch(c.dto[:])
	return err
}

// PostWrite posts an RDMA write, whose event has the slot as its cookie. The slots of
// successive writes go around.
func (c *Consumer) PostWrite(e *ep.Endpoint, slot int, to mem.RemoteSegment, from mem.Segment) error {
	if c.shots == nil {
		return e.PostRDMAWrite(uint64(slot), 0, to, from)
	}
	c.dto[0] = ep.DTO{Op: hw.OpWrite, Cookie: uint64(slot), Segment: from, Remote: to, OneShot: c.shots[slot]}
	_, err := e.PostBatch(c.dto[:])
	return err
}

// Take hands each event to f, until f returns false or an event is of a failure. When f
// returns false, no further event may be outstanding.
func (c *Consumer) Take(f func(event.Event) bool) error { return c.mode.take(c, f) }

// Loop is the name of the mode whose loop took the events. Each loop says its own. No Take may be under way.
func (c *Consumer) Loop() string { return c.loop }

func (c *Consumer) poll(f func(event.Event) bool) error {
	c.loop = poll
	for {
		n, err := c.d.Dequeue(c.buf)
		if err != nil {
			return err
		}
		if more, err := all(c.buf[:n], f); !more {
			return err
		}
		if n == 0 {
			runtime.Gosched()
		}
	}
}

// all hands events to f, until it returns false.
func all(events []event.Event, f func(event.Event) bool) (more bool, err error) {
	for i := range events {
		if err := events[i].Err(); err != nil {
			return false, err
		}
		if !f(events[i]) {
			return false, nil
		}
	}
	return true, nil
}

func (c *Consumer) wait(f func(event.Event) bool) error {
	c.loop = wait
	ctx := context.Background()
	for {
		ev, _, err := c.d.Wait(ctx, 1)
		if err != nil {
			return err
		}
		if more, err := one(ev, f); !more {
			return err
		}
	}
}

func one(ev event.Event, f func(event.Event) bool) (more bool, err error) {
	if err := ev.Err(); err != nil {
		return false, err
	}
	return f(ev), nil
}

func (c *Consumer) receive(f func(event.Event) bool) error {
	c.loop = channel
	for ev := range c.d.C() {
		if more, err := one(ev, f); !more {
			return err
		}
	}
	return io.ErrUnexpectedEOF
}

func (c *Consumer) receiveBatches(f func(event.Event) bool) error {
	c.loop = batch
	for b := range c.d.Batches() {
		more, err := all(b.Events(), f)
		b.Release()
		if !more {
			return err
		}
	}
	return io.ErrUnexpectedEOF
}

func (c *Consumer) receiveEach(f func(event.Event) bool) error {
	c.loop = perRequest
	for {
		ev := <-c.shots[c.next].C()
		c.next = (c.next + 1) % len(c.shots)
		if more, err := one(ev, f); !more {
			return err
		}
	}
}

func (c *Consumer) iterate(f func(event.Event) bool) error {
	c.loop = iterator
	for ev := range c.d.Events(context.Background()) {
		if more, err := one(ev, f); !more {
			return err
		}
	}
	return io.ErrUnexpectedEOF
}

// callBack lets the pool's goroutines call f.
func (c *Consumer) callBack(f func(event.Event) bool) error {
	c.loop = callback
	c.give <- f
	return <-c.done
}

// called is the dispatcher's callback. Calls come one at a time; the first of a Take
// waits until Take has said what to call. No Take waits for what the end of a
// connection flushes.
func (c *Consumer) called(events []event.Event) {
	if c.f == nil {
		if events[0].Err() != nil {
			return
		}
		c.f = <-c.give
	}
	if more, err := all(events, c.f); !more {
		c.f = nil
		c.done <- err
	}
}
