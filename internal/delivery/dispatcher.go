package delivery

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"godat/hw"
	"godat/hw/event"
)

// Config configures a dispatcher. Package evd has checked it and filled in the
// defaults; evd.Config says more of each field.
type Config struct {
	Way                *Way
	QLen               int
	MaxLen             int // the length that memory is allocated for at the beginning
	ResizeMax          int // the greatest length that Resize accepts
	Streams            event.Streams
	BatchMin, BatchMax int
	Callback           func([]event.Event)
	Func               func(event.Event)
	Submit             func(task func()) error
	IA                 any

	// Public is the *evd.Dispatcher, the source of the dispatcher's own events.
	Public fmt.Stringer
	// Closing is called once, when the dispatcher begins to close.
	Closing func()
	// Took is told how long operations took whose events come here, while that is measured. It
	// must not block.
	Took func(time.Duration)
}

// Filter reports whether an event goes into a channel or a batch. If it reports false, the
// event is dropped and its place is free again. The goroutine that completes the
// operation calls the filter, so the filter must not block, and of this library it
// may call only mem.Buffer.Put and what only reads.
//
// The parameters are the event's fields of these names, one by one, because they are in
// registers then: to build and copy an Event costs more than the function.
type Filter func(source any, number event.Number, status hw.Status, cookie uint64, data any) bool

// Dispatcher is what is behind an evd.Dispatcher: the queues that endpoints put
// events into, and the counts of what feeds them. Its methods may be called from
// any goroutine.
type Dispatcher struct {
	main Queue // first, so that the lines of a Queue are cache lines

	// Immutable.
	public  fmt.Stringer
	ia      any
	streams event.Streams
	onClose func()
	took    func(time.Duration)
	calls   caller        // the Sink, if it calls the program
	helps   bool          // as the Way has it
	front   *Queue        // of an over-committed dispatcher
	last    *event.Event  // comes behind all others; nil: a channel is closed
	stop    chan struct{} // closed with the dispatcher

	// Each of these guards itself.
	routes  routes
	async   asyncList
	lost    atomic.Uint64 // events that found no room, of an over-committed dispatcher
	feeds   Feeds
	length  length
	tally   tally
	closing sync.Once
	closer  atomic.Uintptr // the goroutine that closes now; 0: none
}

// Init makes d a dispatcher that is open and empty.
func (d *Dispatcher) Init(cfg *Config) {
	d.public = cfg.Public
	d.ia = cfg.IA
	d.streams = cfg.Streams
	d.onClose = cfg.Closing
	d.took = cfg.Took
	d.stop = make(chan struct{})
	d.main.consumer.d = d
	d.feeds.d = d
	d.length.max = cfg.ResizeMax
	q := &d.main
	q.d = d
	q.places.limit.Store(uint64(cfg.QLen))
	d.helps = cfg.Way.Helps
	cfg.Way.Begin(q, cfg)
	d.calls, _ = q.sink.(caller)
}

// SetFilter sets the filter that sees each event before it goes into a channel or a batch, and
// each success of a suppressed request, which
// makes no event whatever the filter reports. It does not see connection requests,
// asynchronous errors, and the events of routes and one-shots. Like the calls below, it is
// for the dispatcher's maker, before the first event.
func (d *Dispatcher) SetFilter(f Filter) { d.main.filter = f }

// FilterFailures keeps from the filter all completions but failures whose cookie has its
// highest bit set: the filter would accept the others.
func (d *Dispatcher) FilterFailures() { d.main.failures = true }

// EndWith has last come when the dispatcher is closed, behind all other events of a channel or
// of batches, which then stay open. So a select with the channel sleeps
// afterwards, where it would find a closed channel ready for ever.
func (d *Dispatcher) EndWith(last event.Event) { d.last = &last }

// Main returns the queue of all events that no route takes.
func (d *Dispatcher) Main() *Queue {
	if d.front != nil {
		return d.front
	}
	return &d.main
}

// C is the channel of events; nil where events come in another way.
func (d *Dispatcher) C() <-chan event.Event { return d.main.channel.ch }

// Sink returns what the dispatcher delivers by, if that is neither a ring nor a channel.
func (d *Dispatcher) Sink() Sink { return d.main.sink }

// Help has the consumers poll a device that wants their help, in the ways in which they can.
func (d *Dispatcher) Help(poll func(PollHint)) {
	if d.helps {
		d.main.consumer.SetPollDevice(poll)
	}
}

// Consumer returns the side of the dispatcher that takes events from its ring.
func (d *Dispatcher) Consumer() *Consumer { return &d.main.consumer }

// Closed reports whether the dispatcher is closed.
func (d *Dispatcher) Closed() bool { return d.main.closed() }

// Streams returns the kinds of events that the dispatcher takes.
func (d *Dispatcher) Streams() event.Streams { return d.streams }

// Serves reports whether objects of the adapter ia may use the dispatcher: not if it was
// made on another one.
func (d *Dispatcher) Serves(ia any) bool { return d.ia == nil || ia == nil || d.ia == ia }

// Takes reports whether the dispatcher takes events of all streams in s.
func (d *Dispatcher) Takes(s event.Streams) bool { return s&^d.streams == 0 }

// Flush makes silent events, and batches that are not full, visible to the consumer
// now: those of the dispatcher and of its routes.
func (d *Dispatcher) Flush() {
	d.main.expose()
	for _, r := range d.routes.all() {
		r.queue.expose()
	}
}

// PostSoftware queues a software event with the payload; evd.Dispatcher.PostSoftware
// says which errors there are.
func (d *Dispatcher) PostSoftware(payload any) error {
	const op = "evd.PostSoftware"
	switch {
	case d.main.closed():
		return InvalidHandle(op)
	case d.streams&event.StreamSoftware == 0:
		return &hw.Error{Op: op, Type: hw.InvalidParameter, Sub: hw.Arg1, Text: "the dispatcher does not take software events"}
	case d.main.Reserve(1):
	case d.main.closed(): // it was closed meanwhile
		return InvalidHandle(op)
	default:
		return errSoftwareFull
	}
	d.main.Put(&event.Event{Number: event.SoftwareEvent, Source: d.public, Data: payload})
	d.main.Flush()
	return nil
}

// Took notes how long an operation took whose event goes into the queue.
func (q *Queue) Took(d time.Duration) {
	if q.d.took != nil {
		q.d.took(d)
	}
}
