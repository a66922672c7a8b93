package delivery

import (
	"fmt"
	"sync"
	"time"

	"godat/hw"
	"godat/hw/event"
)

// Config configures a dispatcher. Package evd has checked it and filled in the
// defaults; evd.Config says more of each field.
type Config struct {
	Kind               Kind
	QLen               int
	MaxLen             int // the length that memory is allocated for at the beginning
	ResizeMax          int // the greatest length that Resize accepts
	Streams            event.Streams
	BatchMin, BatchMax int
	Overcommit         bool
	Async              *Dispatcher // gets the overflow errors; nil drops them
	Callback           func([]event.Event)
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
	upcalls *upcalls      // KindCallback
	front   *Queue        // of an over-committed dispatcher
	stop    chan struct{} // closed with the dispatcher

	// Each of these guards itself.
	routes   routes
	async    asyncList
	shots    shotPool
	overflow overflow
	feeds    Feeds
	length   length
	tally    tally
	closing  sync.Once
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
	d.async.d = d
	d.feeds.d = d
	d.length.max = cfg.ResizeMax
	q := &d.main
	if cfg.Kind == KindChannel {
		q.initChannel(d, cfg.QLen, cfg.MaxLen)
		return
	}
	q.kind = cfg.Kind
	q.d = d
	q.places.limit.Store(uint64(cfg.QLen))
	if cfg.Kind == KindBatch {
		q.batches = newBatcher(q, cfg.MaxLen, cfg.BatchMin, cfg.BatchMax)
	} else {
		q.consumer.init(cfg.MaxLen)
	}
	if cfg.Kind == KindCallback {
		d.upcalls = newUpcalls(d, cfg)
	}
	if cfg.Overcommit {
		d.overcommit(cfg.Async)
	}
}

// initChannel makes q a queue of the given length that delivers by a channel.
func (q *Queue) initChannel(d *Dispatcher, qlen, maxLen int) {
	q.kind = KindChannel
	q.d = d
	q.places.limit.Store(uint64(qlen + ofMany.slack()))
	q.channel.init(q, maxLen, ofMany)
}

// OfOne has the channel of KindChannel take the memory that the events of one endpoint
// need; those of several are delivered all the same, with less room for what is on its way.
// The dispatcher's maker calls OfOne before the first event.
func (d *Dispatcher) OfOne() {
	q := &d.main
	if q.kind == KindChannel {
		q.places.limit.Add(uint64(ofOne.slack() - ofMany.slack()))
		q.channel.init(q, q.channel.maxLen, ofOne)
	}
}

// SetFilter sets the filter that sees each event of KindChannel or KindBatch before the
// event goes into the channel or a batch, and each success of a suppressed request, which
// makes no event whatever the filter reports. It does not see connection requests,
// asynchronous errors, and the events of routes and one-shots. Like the calls below, it is
// for the dispatcher's maker, before the first event.
func (d *Dispatcher) SetFilter(f Filter) { d.main.filter = f }

// FilterFailures keeps from the filter all completions but failures whose cookie has its
// highest bit set: the filter would accept the others.
func (d *Dispatcher) FilterFailures() { d.main.failures = true }

// EndWith keeps the channel of KindChannel or KindBatch open when the dispatcher is closed:
// last comes in place of that, behind all other events. So a select with the channel sleeps
// afterwards, where it would find a closed channel ready for ever.
func (d *Dispatcher) EndWith(last event.Event) {
	d.main.channel.last = &last
	if d.main.batches != nil {
		d.main.batches.last = &last
	}
}

// SetSink is SetFilter for a filter of KindChannel that refuses every event, and does not
// hear of suppressed requests that succeed. No event takes a place then: every post is
// admitted, and none is counted. The channel takes memory for listed events alone, and is
// closed with the dispatcher; then ended is called, which must not block.
func (d *Dispatcher) SetSink(f Filter, ended func()) {
	d.SetFilter(f)
	d.main.kind, d.main.quiet = kindSink, true
	d.main.places.limit.Store(0) // of what is counted, all is beyond the limit
	c := &d.main.channel
	c.ch, c.ended = make(chan event.Event, asyncRoom), ended
	d.main.places.lanes = nil
}

// C is the channel of events of KindChannel.
func (d *Dispatcher) C() <-chan event.Event { return d.main.channel.ch }

// AllBatches are all the batches of KindBatch.
func (d *Dispatcher) AllBatches() []Batch { return d.main.batches.all }

// SendBatches sets where batches go. send must not block, given room for all
// batches; end is called after the last batch was sent.
func (d *Dispatcher) SendBatches(send func(*Batch), end func()) {
	d.main.batches.sink, d.main.batches.end = send, end
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
		return invalidHandle(op)
	case d.streams&event.StreamSoftware == 0:
		return &hw.Error{Op: op, Type: hw.InvalidParameter, Sub: hw.Arg1, Text: "the dispatcher does not take software events"}
	case d.main.Reserve(1):
	case d.main.closed(): // it was closed meanwhile
		return invalidHandle(op)
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
