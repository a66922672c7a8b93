package evd

import (
	"fmt"
	"sync"
	"sync/atomic"

	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
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
	inner delivery.Dispatcher // first, so that both have one address

	// Immutable.
	ia      any
	mode    Mode
	batches chan *Batch // ModeBatch

	cno      atomic.Pointer[CNO] // written under mu
	mu       sync.Mutex
	disabled bool // the CNO is not told
}

// New makes a dispatcher. DAT: dat_evd_create.
func New(cfg Config) (*Dispatcher, error) {
	resizeMax := cfg.MaxLen
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	switch {
	case resizeMax != 0:
	case cfg.Mode == ModeQueue || cfg.Mode == ModeCallback:
		resizeMax = MaxQLen
	default:
		resizeMax = cfg.QLen
	}
	d := &Dispatcher{ia: cfg.IA, mode: cfg.Mode}
	d.inner.Init(&delivery.Config{
		Kind: kinds[cfg.Mode], QLen: cfg.QLen, MaxLen: cfg.MaxLen, ResizeMax: resizeMax, Streams: cfg.Streams,
		BatchMin: cfg.BatchMin, BatchMax: cfg.BatchMax, Overcommit: cfg.Overcommit, Async: cfg.Async.Wiring(door.Key{}),
		Filter: cfg.Filter, Callback: cfg.Callback, Submit: cfg.Submit,
		IA: cfg.IA, Public: d, Closing: d.leaveCNO,
	})
	if cfg.Mode == ModeBatch {
		d.makeBatches()
	}
	if err := d.ModifyCNO(cfg.CNO); err != nil {
		return nil, err
	}
	return d, nil
}

// kinds is how the modes deliver.
var kinds = [...]delivery.Kind{
	ModeQueue:    delivery.KindRing,
	ModeChannel:  delivery.KindChannel,
	ModeBatch:    delivery.KindBatch,
	ModeCallback: delivery.KindCallback,
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

// Wiring is for the packages of this module that feed the dispatcher: a program can't
// make its argument.
func (d *Dispatcher) Wiring(door.Key) *delivery.Dispatcher {
	if d == nil {
		return nil
	}
	return &d.inner
}

// closed reports whether d can't be used.
func (d *Dispatcher) closed() bool { return d == nil || d.inner.Closed() }

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
	return d.inner.C()
}

// Flush makes silent events and batches that are not full visible now, the
// dispatcher's own and those of its routes.
func (d *Dispatcher) Flush() {
	if d != nil {
		d.inner.Flush()
	}
}

// PostSoftware queues a software event with the payload. It is INVALID_PARAMETER
// unless the dispatcher takes the stream StreamSoftware, and QUEUE_FULL when
// there is no room. DAT: dat_evd_post_se.
func (d *Dispatcher) PostSoftware(payload any) error {
	if d == nil {
		return invalidHandle("evd.PostSoftware")
	}
	return d.inner.PostSoftware(payload)
}

// Close frees the dispatcher. It fails with EVD_IN_USE while something is
// attached or a post that was taken has its place in the queue, with EVD_WAITER
// while somebody is in Wait, and with INVALID_STATE from the dispatcher's own
// callback. It ends iterators. What is queued is dropped, except that what is in a
// channel, or still comes to it, can be received. Connection requests that nobody
// took from their events (see ep.RequestOf) are rejected. Closing again does nothing.
// DAT: dat_evd_free.
func (d *Dispatcher) Close() error {
	if d == nil {
		return invalidHandle("evd.Close")
	}
	return d.inner.Close()
}

// String names the dispatcher. It may be called at any time, as the String of every
// handle.
func (d *Dispatcher) String() string {
	if d == nil {
		return "Dispatcher(nil)"
	}
	return fmt.Sprintf("Dispatcher(%p, %v)", d, d.mode)
}

func invalidHandle(op string) error {
	return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.Handle1}
}
