package evd

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
	"godat/internal/door"
)

// MaxQLen is the longest queue that a dispatcher can have, in events.
const MaxQLen = 1 << 20

// defaultBatch is the largest batch unless Config.BatchMax says otherwise.
const defaultBatch = 32

// allStreams are the streams that a dispatcher can take.
const allStreams = event.DefaultStreams | event.StreamSoftware

// Config configures a dispatcher.
type Config struct {
	// QLen is how many events the dispatcher can hold: at least the sum of the
	// operations outstanding on all that feeds it, and two for each connection;
	// "Places" in the package documentation says how long an event has its place.
	// Connection requests and asynchronous errors have places of their own. DAT's
	// min_qlen. In ModeChannel the dispatcher holds 80 events more than QLen, which
	// Query reports too: an event that is being sent may count twice for a moment.
	QLen int
	// MaxLen is the greatest length that Resize accepts; the dispatcher allocates
	// memory for it from the beginning. 0 means that Resize allocates when it needs
	// to, up to MaxQLen, in ModeQueue and ModeCallback. A channel can't grow, so in
	// the other modes 0 means QLen.
	MaxLen int
	// Mode says how the dispatcher delivers.
	Mode Mode
	// Streams are the kinds of events that the dispatcher takes; 0 means
	// DefaultStreams.
	Streams event.Streams

	// BatchMin and BatchMax bound the batches of ModeBatch, in events; 0 means 1
	// and 32. A batch of more than 32 events is at most an eighth of what the
	// dispatcher holds. A batch smaller than BatchMin goes out only when it has an
	// error or a connection event in it, when it has half the queue's length in it,
	// when a poster finds no room, and on Dispatcher.Flush. BatchMin above half the
	// queue length has no effect.
	BatchMin, BatchMax int

	// Overcommit accepts posts without room for their events, as DAT does; it needs
	// ModeQueue. An event that finds the queue full is lost, and the dispatcher
	// reports that to Async with an ASYNC_ERROR_EVD_OVERFLOW event, of which one is
	// pending at a time. The connections that feed the dispatcher are to be
	// considered broken then.
	Overcommit bool
	// Async takes the dispatcher's own errors, with the stream StreamAsync; nil drops them. An adapter
	// puts its own dispatcher of asynchronous errors here unless the program sets one. Async can't be
	// closed before an over-committed dispatcher that names it.
	Async *Dispatcher

	// CNO is triggered by events in ModeQueue; nil for none. See
	// Dispatcher.ModifyCNO.
	CNO *CNO

	// Callback takes the events of ModeCallback, in order, one call at a time. It
	// owns the slice until it returns. It must not wait for control calls such as
	// Close, which wait for it. It runs in the adapter's pool of upcalls. A panic in it ends the
	// process. With any other mode it is refused, and so is Func without ModeFunc.
	Callback func([]event.Event)
	// Func takes the events of ModeFunc, each at once: the goroutine that completes an operation
	// calls it, in the middle of its work. So Func must not block, nor take a lock that is held
	// around a call of this library. It may look at objects, give buffers back by
	// [godat/mem.Buffer.Put], and wake a goroutine; that one may post at once. Calls may overlap,
	// because an endpoint's requests and receives complete in goroutines of their own; those for
	// one of the two come in order, one at a time. A panic in Func ends the process.
	//
	// The events take no places: QLen and MaxLen are 0, no post is refused for want of a place,
	// and the counters of the dispatcher stay 0. A suppressed request that succeeds brings no
	// event, as everywhere. When the dispatcher closes, by itself or with its adapter, Func gets
	// an event whose number is [event.Closed]; those of operations under way may come behind it.
	//
	// No other mode costs less. It is for a program that keeps its own state of a
	// connection, as package stream does.
	Func func(event.Event)

	home home
}

// home is where what the package makes lives. The zero value is no adapter.
type home struct {
	ia     any
	submit func(task func()) error
}

// On has the dispatcher live on an adapter. submit hands a task to the adapter's pool of goroutines, and does not
// block; if it returns an error, the task gets a goroutine of its own. Package runtime calls it.
func (cfg *Config) On(_ door.Key, ia any, submit func(task func()) error) {
	cfg.home = home{ia, submit}
}

// Dispatcher is DAT's event dispatcher (EVD): the object that takes events and
// delivers them to their consumer. Its methods may be called from any goroutine.
//
// [godat/runtime.IA.NewDispatcher] makes one, and [Config] says how it delivers. It outlives the
// endpoints that it serves: Close fails while an object sends its events there. The rules that
// hold for every way of delivery are in the package documentation of godat/evd.
type Dispatcher struct {
	inner delivery.Dispatcher // first, so that it has the Dispatcher's address

	// Immutable.
	ia      any
	number  uint64
	mode    Mode
	batches chan *Batch          // ModeBatch
	async   *delivery.Dispatcher // takes the dispatcher's errors; nil: nothing does

	// Each of these guards itself.
	shots   delivery.Shots
	latency Histogram // of the requests whose events come here

	cno      atomic.Pointer[CNO] // written under mu
	mu       sync.Mutex
	disabled bool // events do not trigger the CNO
}

// New makes a dispatcher. It fails with INVALID_PARAMETER for a config that is
// incomplete or contradicts itself, with INSUFFICIENT_RESOURCES for a length above
// MaxQLen, and with INVALID_STATE/EVD_WAITER for a CNO in a mode other than ModeQueue.
// DAT: dat_evd_create.
func New(cfg Config) (*Dispatcher, error) {
	resizeMax := cfg.MaxLen
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	async, err := cfg.joinAsync()
	if err != nil {
		return nil, err
	}
	way := ways[cfg.Mode]
	switch {
	case resizeMax != 0:
	case way.Grows:
		resizeMax = MaxQLen
	default:
		resizeMax = cfg.QLen
	}
	d := &Dispatcher{ia: cfg.home.ia, number: dispatchers.Add(1), mode: cfg.Mode, async: async}
	d.inner.Init(&delivery.Config{
		Way: way, QLen: cfg.QLen, MaxLen: cfg.MaxLen, ResizeMax: resizeMax, Streams: cfg.Streams,
		BatchMin: cfg.BatchMin, BatchMax: cfg.BatchMax,
		Callback: cfg.Callback, Func: cfg.Func, Submit: cfg.home.submit,
		IA: cfg.home.ia, Public: d, Closing: d.leave, Took: d.latency.Record,
	})
	if cfg.Overcommit {
		d.inner.Overcommit(async)
	}
	switch cfg.Mode {
	case ModeBatch:
		d.makeBatches()
	case ModeFunc:
		d.inner.EndWith(event.Event{Number: event.Closed, Source: d})
	default:
	}
	if err := d.ModifyCNO(cfg.CNO); err != nil {
		d.leave()
		return nil, err
	}
	return d, nil
}

// asyncFeed is what an over-committed dispatcher feeds the one that takes its errors with.
var asyncFeed = delivery.Feed{Streams: event.StreamAsync}

// joinAsync checks the dispatcher that is to take the errors of this one. It returns it, attached, if
// there may be errors.
func (cfg *Config) joinAsync() (*delivery.Dispatcher, error) {
	if cfg.Async == nil {
		return nil, nil
	}
	async := cfg.Async.Wiring(door.Key{})
	var err error
	switch {
	case cfg.Async.closed():
		err = hw.Errorf("evd.New", hw.InvalidHandle, hw.HandleEVDAsync, "the dispatcher of evd.Config.Async is closed")
	case !async.Takes(event.StreamAsync):
		err = hw.Errorf("evd.New", hw.InvalidParameter, hw.NoSubtype, "the dispatcher of evd.Config.Async takes %v, not %v", async.Streams(), event.StreamAsync)
	case cfg.Overcommit:
		return async, async.Feeds().Attach(asyncFeed)
	}
	return nil, err
}

// leave detaches a dispatcher that closes from its CNO, and from the one that takes its errors.
func (d *Dispatcher) leave() {
	d.leaveCNO()
	if d.async != nil {
		d.async.Feeds().Detach(asyncFeed)
	}
}

// complete fills in the defaults and checks the rest.
func (cfg *Config) complete() error {
	const op = "evd.New"
	if cfg.MaxLen == 0 {
		cfg.MaxLen = cfg.QLen
	}
	if cfg.Streams == 0 {
		cfg.Streams = event.DefaultStreams
	}
	if cfg.BatchMax == 0 {
		cfg.BatchMax = max(defaultBatch, cfg.BatchMin)
	}
	if cfg.BatchMin == 0 {
		cfg.BatchMin = 1
	}
	switch {
	case int(cfg.Mode) >= len(ways):
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "unknown mode %d", cfg.Mode)
	case cfg.Mode != ModeCallback && cfg.Callback != nil:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "evd.Config.Callback, which mode %v never calls: it needs ModeCallback", cfg.Mode)
	case cfg.Mode != ModeFunc && cfg.Func != nil:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "evd.Config.Func, which mode %v never calls: it needs ModeFunc", cfg.Mode)
	case ways[cfg.Mode].Placeless && (cfg.QLen != 0 || cfg.MaxLen != 0):
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "QLen is %d and MaxLen %d: in mode %v events take no places", cfg.QLen, cfg.MaxLen, cfg.Mode)
	case cfg.QLen == 0 && !ways[cfg.Mode].Placeless:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "QLen is required: how many events the dispatcher holds")
	case cfg.QLen < 0 || cfg.MaxLen < cfg.QLen:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "QLen is %d and MaxLen %d", cfg.QLen, cfg.MaxLen)
	case cfg.MaxLen > MaxQLen:
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEVD, "queue length %d, the limit is %d", cfg.MaxLen, MaxQLen)
	case cfg.Streams&^allStreams != 0:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "unknown streams %#x", uint32(cfg.Streams))
	case cfg.Overcommit && cfg.Mode != ModeQueue:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "over-committed in mode %v", cfg.Mode)
	case cfg.BatchMin < 1 || cfg.BatchMax < cfg.BatchMin || cfg.BatchMax > MaxQLen:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "batches of %d to %d events", cfg.BatchMin, cfg.BatchMax)
	case cfg.Mode != ModeQueue && cfg.CNO != nil:
		return &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEVDWaiter, Text: "a CNO in mode " + cfg.Mode.String()}
	case cfg.Mode == ModeCallback && cfg.Callback == nil:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "no callback: mode %v calls evd.Config.Callback", cfg.Mode)
	case cfg.Mode == ModeFunc && cfg.Func == nil:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "no function: mode %v calls evd.Config.Func", cfg.Mode)
	}
	return nil
}

// Wiring returns the side of the dispatcher that the packages of this module use to
// feed it. A program can't make the argument.
func (d *Dispatcher) Wiring(door.Key) *delivery.Dispatcher {
	if d == nil {
		return nil
	}
	return &d.inner
}

// closed reports whether d is nil or closed.
func (d *Dispatcher) closed() bool { return !d.isMade() || d.inner.Closed() }

// isMade reports whether New has made the dispatcher.
func (d *Dispatcher) isMade() bool { return d != nil && d.number != 0 }

// Mode returns how the dispatcher delivers.
func (d *Dispatcher) Mode() Mode {
	if d == nil {
		return ModeQueue
	}
	return d.mode
}

// C is the channel of events in ModeChannel, and nil in other modes. After Close,
// the dispatcher closes the channel once it has sent the last event. A closed channel is
// always ready: a select with it tests the second value of the receive.
func (d *Dispatcher) C() <-chan event.Event {
	if d == nil {
		return nil
	}
	return d.inner.C()
}

// Flush makes silent events, and batches that are not full, visible to the consumer
// now: those of the dispatcher and of its routes.
func (d *Dispatcher) Flush() {
	if d.isMade() {
		d.inner.Flush()
	}
}

// PostSoftware queues a software event with the payload. It returns
// INVALID_PARAMETER unless the dispatcher takes the stream StreamSoftware, and
// QUEUE_FULL when there is no room. DAT: dat_evd_post_se.
func (d *Dispatcher) PostSoftware(payload any) error {
	if !d.isMade() {
		return invalidHandle("evd.PostSoftware")
	}
	return d.inner.PostSoftware(payload)
}

// Close frees the dispatcher. It fails with EVD_IN_USE while an object is attached
// or, in ModeQueue and ModeCallback, the event of an accepted post is still to
// come; with EVD_WAITER while a goroutine is in Wait; and with INVALID_STATE when
// the dispatcher's own callback calls it, or has not returned for five seconds: call Close again when it
// has. Close ends iterators and drops queued
// events, except that a program can still receive those that are in a channel or
// still come to it. It rejects connection requests that the program has not taken
// from their events (see ep.RequestOf). Closing again does nothing. DAT:
// dat_evd_free.
func (d *Dispatcher) Close() error {
	if !d.isMade() {
		return invalidHandle("evd.Close")
	}
	return d.inner.Close()
}

// The numbers of handles: each has the next one of its kind in this process, from 1 on. One that nothing
// made has 0.
var dispatchers, cnos atomic.Uint64

// String names the dispatcher. It may be called at any time.
func (d *Dispatcher) String() string {
	if d == nil {
		return "Dispatcher(nil)"
	}
	return fmt.Sprintf("Dispatcher(%d, %v)", d.number, d.mode)
}

// LogValue names the dispatcher, and says how full it is, for log/slog.
func (d *Dispatcher) LogValue() slog.Value {
	if !d.isMade() {
		return slog.StringValue(d.String())
	}
	s := d.Snapshot()
	return slog.GroupValue(slog.String("name", d.String()),
		slog.Int("queued", s.Queued), slog.Int("reserved", s.Reserved), slog.Int("qlen", s.QLen))
}

func invalidHandle(op string) error { return delivery.InvalidHandle(op) }
