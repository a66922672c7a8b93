package delivery

import (
	"fmt"
	"sync"
	"sync/atomic"

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
}

// Filter reports whether an event goes into a channel. If it reports false, the
// event is dropped and its place is free again. The goroutine that completes the
// operation calls the filter, so the filter must not block, and of this library it
// may call only mem.Buffer.Put and what only reads.
//
// The parameters are the event's fields of these names. They are passed one by one,
// because they are in registers then: to build an Event and copy it to a function
// costs more than the function.
type Filter func(source any, number event.Number, status hw.Status, cookie uint64, data any) bool

// Dispatcher is what is behind an evd.Dispatcher: the queues that endpoints put
// events into, and the counts of what feeds them. Its methods may be called from
// any goroutine.
type Dispatcher struct {
	// Immutable.
	public    fmt.Stringer
	ia        any
	streams   event.Streams
	resizeMax int
	onClose   func()
	upcalls   *upcalls // KindCallback
	filter    Filter   // nil: none; see SetFilter
	front     *Queue   // of an over-committed dispatcher
	stop      chan struct{}

	// Shared, without a lock.
	routes     atomic.Pointer[[]*Route] // nil: none; an empty list: see overcommit
	main       Queue
	async      asyncList
	shots      shotPool
	overflow   overflow
	notifier   atomic.Pointer[func()] // see SetNotifier
	pollDevice atomic.Pointer[func(PollHint)]
	sleeps     atomic.Uint64 // see Counters

	mu       sync.Mutex
	feeds    feeds
	expected int                     // the threshold of the goroutine in Wait, if more than one
	counted  Counters                // the counters at the last reset
	requests map[*AsyncNode]struct{} // not answered yet
	closing  sync.Once
}

// Init makes d a dispatcher that is open and empty.
func (d *Dispatcher) Init(cfg *Config) {
	d.public = cfg.Public
	d.ia = cfg.IA
	d.streams = cfg.Streams
	d.resizeMax = cfg.ResizeMax
	d.onClose = cfg.Closing
	d.stop = make(chan struct{})
	q := &d.main
	switch cfg.Kind {
	case KindChannel:
		q.initChannel(d, cfg.QLen, cfg.MaxLen)
		return
	case KindCallback:
		d.upcalls = newUpcalls(d, cfg)
	case KindRing:
		q.spins = spins
		q.token = make(chan struct{}, 1)
		q.turn = make(chan struct{}, 1)
	default:
	}
	q.kind = cfg.Kind
	q.d = d
	q.limit.Store(uint64(cfg.QLen))
	if cfg.Kind == KindBatch {
		q.batches = newBatcher(q, cfg.MaxLen, cfg.BatchMin, cfg.BatchMax)
	} else {
		q.ring.grow(cfg.MaxLen)
	}
	if cfg.Overcommit {
		d.overcommit(cfg.Async)
	}
}

// initChannel makes q a queue of the given length that delivers by a channel.
func (q *Queue) initChannel(d *Dispatcher, qlen, maxLen int) {
	q.kind = KindChannel
	q.d = d
	q.limit.Store(uint64(qlen + slack))
	q.ch = make(chan event.Event, maxLen+slack+asyncRoom)
	q.hold = make([]event.Event, 0, maxLen/2+1)
}

// SetFilter sets the filter that sees each event of KindChannel before the event goes
// into the channel. The filter does not see connection requests, asynchronous errors,
// and the events of routes and one-shots. The dispatcher's maker calls SetFilter before
// the first event.
func (d *Dispatcher) SetFilter(f Filter) { d.filter, d.main.filter = f, f != nil }

// C is the channel of events of KindChannel.
func (d *Dispatcher) C() <-chan event.Event { return d.main.ch }

// AllBatches are all the batches of KindBatch.
func (d *Dispatcher) AllBatches() []Batch { return d.main.batches.all }

// SendBatches sets where batches go. send must not block, given room for all
// batches; end is called after the last batch was sent. The program's side calls
// SendBatches before the first event.
func (d *Dispatcher) SendBatches(send func(*Batch), end func()) {
	d.main.batches.outlet, d.main.batches.end = send, end
}

// Closed reports whether the dispatcher is closed.
func (d *Dispatcher) Closed() bool { return d.main.closed() }

// Serves reports whether objects of the adapter ia may use the dispatcher: not if
// it was made on another one.
func (d *Dispatcher) Serves(ia any) bool { return d.ia == nil || ia == nil || d.ia == ia }

// Takes reports whether the dispatcher takes events of all streams in s.
func (d *Dispatcher) Takes(s event.Streams) bool { return s&^d.streams == 0 }

// Flush makes silent events, and batches that are not full, visible to the consumer
// now: those of the dispatcher and of its routes.
func (d *Dispatcher) Flush() {
	d.main.expose()
	if rs := d.routes.Load(); rs != nil {
		for _, r := range *rs {
			r.queue.expose()
		}
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
	d.main.Put(&event.Event{Number: event.SoftwareEvent, Source: d.public, Data: payload}, false)
	d.main.Flush()
	return nil
}

// Close frees the dispatcher; evd.Dispatcher.Close says when it is refused.
func (d *Dispatcher) Close() error {
	const op = "evd.Close"
	if d.InUpcall() {
		return &hw.Error{Op: op, Type: hw.InvalidState, Text: "called from the dispatcher's own callback"}
	}
	if err := d.beginClose(); err != nil {
		return err
	}
	d.endClose()
	if d.upcalls != nil {
		d.upcalls.stop()
	}
	return nil
}

// beginClose closes the dispatcher to further work, or returns why Close is
// refused.
func (d *Dispatcher) beginClose() error {
	const op = "evd.Close"
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.main.closed():
		return nil
	case d.feeds.total != 0:
		return &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEVDInUse}
	case d.main.cons.Load()&consMask == consWaiter:
		return &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEVDWaiter}
	case !d.Main().refuse():
		return &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEVDInUse, Text: "a post was taken whose completion is still to come"}
	}
	d.main.reserved.Or(closedBit) // Main is the queue in front, if there is one
	return nil
}

// Ending is the adapter's side of closing a dispatcher or a CNO.
type Ending interface {
	// Abort closes at once: it does not refuse, wakes all waiters, and does not
	// wait for upcalls.
	Abort()
	// InUpcall reports whether the calling goroutine is in an upcall of the object.
	InUpcall() bool
}

// Abort closes the dispatcher when its IA closes abruptly: it does not refuse, and
// a goroutine in Wait returns with ABORT. The queues still take events of
// outstanding operations; a channel is closed after the last of them. Abort does
// not wait for callbacks; Close does.
func (d *Dispatcher) Abort() {
	if d == nil {
		return
	}
	d.mu.Lock()
	d.main.reserved.Or(closedBit)
	d.mu.Unlock()
	d.endClose()
}

// endClose wakes all waiters and shuts the queues. It runs once; a second closer
// waits for the first.
func (d *Dispatcher) endClose() {
	d.closing.Do(func() {
		d.onClose()
		close(d.stop)
		d.dropRequests()
		d.main.shut()
		if d.front != nil {
			d.front.shut()
		}
		d.mu.Lock()
		routes := d.routes.Load()
		d.mu.Unlock()
		if routes != nil {
			for _, r := range *routes {
				r.queue.shut()
			}
		}
		d.async.stop()
	})
}

// refuse refuses further reservations. It returns false if the event of a
// reservation is still to come and would be lost: a post may have got its place
// while its endpoint still fed the dispatcher. A channel stays open for such
// events. The number of events that came only grows, so if the swap succeeds, each
// reservation has had its event.
func (q *Queue) refuse() bool {
	for {
		r, came := q.reserved.Load(), q.done.Load()
		switch q.kind {
		case KindRing, KindCallback:
			came += q.ring.Tail()
		case KindChannel, KindBatch, kindOneShot:
			came = r
		default:
		}
		if came != r {
			return false
		}
		if q.reserved.CompareAndSwap(r, r|closedBit) {
			return true
		}
	}
}
