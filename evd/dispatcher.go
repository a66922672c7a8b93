package evd

import (
	"sync"
	"sync/atomic"

	"godat/hw"
)

// MaxQLen is the longest queue there can be.
const MaxQLen = 1 << 20

// defaultBatch is the largest batch unless Config.BatchMax says otherwise.
const defaultBatch = 32

// Config configures a dispatcher.
type Config struct {
	// QLen is how many events it can hold: at least the sum of the operations
	// outstanding on whatever feeds it, and two for each connection; "Places" in the
	// package documentation says from when to when. Connection requests and
	// asynchronous errors have places of their own. DAT's min_qlen. In ModeChannel it
	// holds 80 events more than asked for, which Query tells too: an event that is
	// being sent may count twice for a moment.
	QLen int
	// MaxLen is the most that Resize can make of it, for which there is memory from
	// the beginning. 0 means that Resize makes room when it is asked to, up to
	// MaxQLen, in ModeQueue and ModeCallback. A channel can't grow, so in the other
	// modes 0 means QLen.
	MaxLen int
	// Mode is how it delivers.
	Mode Mode
	// Streams are the kinds of events it takes; 0 means DefaultStreams.
	Streams Streams

	// BatchMin and BatchMax bound the batches of ModeBatch; 0 means 1 and 32. Batches
	// above 32 events are at most an eighth of what the dispatcher holds. A
	// batch smaller than BatchMin goes out only with an error or a connection
	// event, when half the queue is in it, when a poster finds no room, and on
	// Dispatcher.Flush. BatchMin above half the queue length has no effect.
	BatchMin, BatchMax int

	// Overcommit takes posts without room for their events, as DAT does; needs
	// ModeQueue. An event that finds the queue full is lost, and Async is told by an
	// ASYNC_ERROR_EVD_OVERFLOW event, of which one is pending at a time. The
	// connections that feed the dispatcher are to be considered broken then.
	Overcommit bool
	// Async takes the dispatcher's own errors; nil drops them. An adapter gives
	// its own unless it is set.
	Async *Dispatcher

	// Filter, if set, sees each event of ModeChannel before the channel C does. It does
	// not see connection requests, asynchronous errors, and what goes to routes and
	// one-shots.
	Filter Filter

	// CNO is told of events in ModeQueue; nil for none. See Dispatcher.ModifyCNO.
	CNO *CNO
	// IA is the adapter that Query reports.
	IA any

	// Callback takes the events of ModeCallback, in order, one call at a time.
	// The array is its own until it returns. It must not wait for control calls. A
	// panic in it is that of a goroutine, and ends the process.
	Callback func([]Event)
	// Submit runs a task on a pool; it does not block. An error, and nil, mean
	// a goroutine of its own. If the pool recovers a panic of Callback, the dispatcher
	// goes on with the events behind those that Callback had.
	Submit func(task func()) error
}

// Filter decides whether an event goes into a channel. What it refuses is gone, and
// its place free again. The goroutine that completes the operation calls it: it must
// not block, or call the library but for [godat/mem.Buffer.Put] and what only looks.
//
// The parameters are the event's fields of these names. They come one by one since
// they are in registers then: to build an Event and copy it to a function costs more
// than the function.
type Filter func(source any, number Number, status hw.Status, cookie uint64, data any) bool

// Dispatcher is DAT's event dispatcher (EVD): where events go. Its methods may
// be called from any goroutine.
type Dispatcher struct {
	// Immutable.
	ia      any
	mode    Mode
	streams Streams
	maxLen  int
	upcalls *upcalls // ModeCallback
	filter  Filter
	front   *Queue // of an over-committed dispatcher
	stop    chan struct{}

	// Shared, without a lock.
	routes   atomic.Pointer[[]*Route] // nil: none; an empty list: see overcommit
	main     Queue
	async    asyncList
	shots    shotPool
	overflow overflow
	cno      atomic.Pointer[CNO] // written under mu
	stir     atomic.Pointer[func(Look)]
	sleeps   atomic.Uint64 // see Counters

	mu       sync.Mutex
	disabled bool // the CNO is not told
	feeds    feeds
	expected int                     // events that somebody in Wait waits for, if more than one
	counted  Counters                // when they were reset
	requests map[*AsyncNode]struct{} // not answered yet
	closing  sync.Once
}

// New makes a dispatcher. DAT: dat_evd_create.
func New(cfg Config) (*Dispatcher, error) {
	grows := cfg.MaxLen == 0 && (cfg.Mode == ModeQueue || cfg.Mode == ModeCallback)
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	d := &Dispatcher{
		ia:      cfg.IA,
		mode:    cfg.Mode,
		streams: cfg.Streams,
		maxLen:  cfg.MaxLen,
		stop:    make(chan struct{}),
	}
	if grows {
		d.maxLen = MaxQLen
	}
	q := &d.main
	switch cfg.Mode {
	case ModeChannel:
		q.initChannel(d, cfg.QLen, cfg.MaxLen)
		d.filter, q.filter = cfg.Filter, cfg.Filter != nil
		return d, nil
	case ModeBatch:
		q.kind = kindBatch
	case ModeCallback:
		q.kind = kindCallback
		d.upcalls = newUpcalls(d, &cfg)
	case ModeQueue:
		q.kind = kindRing
		q.spins = spins
		q.token = make(chan struct{}, 1)
		q.turn = make(chan struct{}, 1)
	}
	q.d = d
	q.limit.Store(uint64(cfg.QLen))
	if cfg.Mode == ModeBatch {
		q.batches = newBatcher(q, cfg.MaxLen, cfg.BatchMin, cfg.BatchMax)
	} else {
		q.ring.grow(cfg.MaxLen)
	}
	if cfg.Overcommit {
		d.overcommit(cfg.Async)
	}
	if err := d.ModifyCNO(cfg.CNO); err != nil {
		return nil, err
	}
	return d, nil
}

// complete fills in the defaults and checks the rest.
func (cfg *Config) complete() error {
	const op = "evd.New"
	if cfg.MaxLen == 0 {
		cfg.MaxLen = cfg.QLen
	}
	if cfg.Streams == 0 {
		cfg.Streams = DefaultStreams
	}
	if cfg.BatchMax == 0 {
		cfg.BatchMax = max(defaultBatch, cfg.BatchMin)
	}
	if cfg.BatchMin == 0 {
		cfg.BatchMin = 1
	}
	switch {
	case cfg.QLen == 0:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "QLen is required: how many events the dispatcher holds")
	case cfg.QLen < 0 || cfg.MaxLen < cfg.QLen:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "QLen is %d and MaxLen %d", cfg.QLen, cfg.MaxLen)
	case cfg.MaxLen > MaxQLen:
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEVD, "queue length %d, the limit is %d", cfg.MaxLen, MaxQLen)
	case cfg.Streams&^allStreams != 0:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "unknown streams %#x", uint32(cfg.Streams))
	case cfg.Mode > ModeCallback:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "unknown mode %d", cfg.Mode)
	case cfg.Filter != nil && cfg.Mode != ModeChannel:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "a filter in mode %v", cfg.Mode)
	case cfg.Overcommit && cfg.Mode != ModeQueue:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "over-committed in mode %v", cfg.Mode)
	case cfg.BatchMin < 1 || cfg.BatchMax < cfg.BatchMin || cfg.BatchMax > MaxQLen:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "batches of %d to %d events", cfg.BatchMin, cfg.BatchMax)
	case cfg.Mode != ModeQueue && cfg.CNO != nil:
		return &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEVDWaiter, Text: "a CNO in mode " + cfg.Mode.String()}
	case cfg.Mode == ModeCallback && cfg.Callback == nil:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "no callback")
	}
	return nil
}

// initChannel makes q a queue of the given length that delivers by a channel.
func (q *Queue) initChannel(d *Dispatcher, qlen, maxLen int) {
	q.kind = kindChannel
	q.d = d
	q.limit.Store(uint64(qlen + slack))
	q.ch = make(chan Event, maxLen+slack+asyncRoom)
	q.hold = make([]Event, 0, maxLen/2+1)
}

// Mode is how the dispatcher delivers.
func (d *Dispatcher) Mode() Mode {
	if d == nil {
		return ModeQueue
	}
	return d.mode
}

// C is the channel of events, in ModeChannel; nil otherwise. It is closed when
// the dispatcher was closed and the last event is in it.
func (d *Dispatcher) C() <-chan Event {
	if d == nil {
		return nil
	}
	return d.main.ch
}

// Batches is the channel of batches, in ModeBatch; nil otherwise. It is closed
// when the dispatcher was closed and the last batch is in it. Who receives a
// batch releases it, soon: a few that are not hold up the rest.
func (d *Dispatcher) Batches() <-chan *Batch {
	if d == nil || d.main.batches == nil {
		return nil
	}
	return d.main.batches.ch
}

// Flush makes silent events and batches that are not full visible now, the
// dispatcher's own and those of its routes.
func (d *Dispatcher) Flush() {
	if d == nil {
		return
	}
	d.main.expose()
	if rs := d.routes.Load(); rs != nil {
		for _, r := range *rs {
			r.queue.expose()
		}
	}
}

// PostSoftware queues a software event with the payload. It is INVALID_PARAMETER
// unless the dispatcher takes the stream StreamSoftware, and QUEUE_FULL when
// there is no room. DAT: dat_evd_post_se.
func (d *Dispatcher) PostSoftware(payload any) error {
	const op = "evd.PostSoftware"
	switch {
	case d == nil || d.main.closed():
		return invalidHandle(op)
	case d.streams&StreamSoftware == 0:
		return &hw.Error{Op: op, Type: hw.InvalidParameter, Sub: hw.Arg1, Text: "the dispatcher does not take software events"}
	case d.main.Reserve(1):
	case d.main.closed(): // meanwhile
		return invalidHandle(op)
	default:
		return errSoftwareFull
	}
	d.main.Put(&Event{Number: SoftwareEvent, Source: d, Data: payload}, false)
	d.main.Flush()
	return nil
}

// Close frees the dispatcher. It fails with EVD_IN_USE while something is
// attached or a post that was taken has its place in the queue, with EVD_WAITER
// while somebody is in Wait, and with INVALID_STATE from the dispatcher's own
// callback. It ends iterators. What is queued is dropped, except that what is in a
// channel, or still comes to it, can be received. Connection requests that nobody
// took from their events (see ep.RequestOf) are rejected. Closing again does nothing.
// DAT: dat_evd_free.
func (d *Dispatcher) Close() error {
	const op = "evd.Close"
	if d == nil {
		return invalidHandle(op)
	}
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

// beginClose refuses further work, unless somebody depends on the dispatcher.
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
	d.main.reserved.Or(closedBit) // of an over-committed one
	return nil
}

// Abort is Close for when the IA closes abruptly: it does not refuse, and who is
// in Wait returns with ABORT. Events of operations that are still outstanding
// are taken; a channel is closed after the last of them. It does not wait for
// callbacks; Close does.
func (d *Dispatcher) Abort() {
	if d == nil {
		return
	}
	d.mu.Lock()
	d.main.reserved.Or(closedBit)
	d.mu.Unlock()
	d.endClose()
}

// endClose wakes everybody. It runs once; a second closer waits for the first.
func (d *Dispatcher) endClose() {
	d.closing.Do(func() {
		d.leaveCNO()
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

// refuse refuses further reservations, unless the event of one is still to come
// and would be lost: a post may have got its place while its endpoint still fed
// the dispatcher. A channel stays open for those. What came only grows, so if the
// swap succeeds nothing was reserved but for what came.
func (q *Queue) refuse() bool {
	for {
		r, came := q.reserved.Load(), q.done.Load()
		switch q.kind {
		case kindRing, kindCallback:
			came += q.ring.Tail()
		case kindChannel, kindBatch, kindOneShot:
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
