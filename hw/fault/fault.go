package fault

import (
	"sync/atomic"
	"time"

	"godat/hw"
)

// Kind is one of the faults that a [Provider] injects.
type Kind int

// The faults. A [Trigger] counts requests when they are posted, and completions when
// they are about to be handed on.
const (
	// FailSend makes a request of the send queue fail in its turn: the requests
	// before it run, it completes with Config.Status, all later ones are flushed, and
	// both sides get Down(ReasonBroken).
	FailSend Kind = iota
	// FailRecv makes a receive fail when a message of at least one byte arrives for it.
	FailRecv
	// DelaySend holds the completion of a request of the send queue, and all
	// completions behind it, for Config.Delay.
	DelaySend
	// BreakConn breaks the connection right after a request was posted: outstanding
	// requests are flushed, and both sides get Down(ReasonBroken).
	BreakConn
	// LosePeer makes the peer fall silent: this request and those behind it never
	// reach it. After Config.Bound the first outstanding request fails with
	// StatusTransport, the rest are flushed, and both sides get Down(ReasonBroken).
	LosePeer

	// FailRegister, FailNewQP and FailConnect make the call return an error and have
	// no effect.
	FailRegister
	FailNewQP
	FailConnect

	// The remaining faults break the contract itself. Tests use them to prove that a
	// checker notices.

	// DropCompletion drops a completion.
	DropCompletion
	// DoubleCompletion hands a completion on twice.
	DoubleCompletion
	// SwapCompletions hands a completion on behind the next one of its queue.
	SwapCompletions
	// EndEarly hands a queue's OpEnd on before the rest of its completions.
	EndEarly
	// LoseEstablished does not pass Established on to the owner of a connection. Its
	// Trigger counts the connections that come up.
	LoseEstablished

	kinds
)

var kindText = [...]string{
	"FailSend", "FailRecv", "DelaySend", "BreakConn", "LosePeer", "FailRegister", "FailNewQP", "FailConnect",
	"DropCompletion", "DoubleCompletion", "SwapCompletions", "EndEarly", "LoseEstablished",
}

func (k Kind) String() string { return kindText[k] }

// Trigger says when a fault happens. Its zero value means never.
type Trigger struct {
	// Nth is the number of the event at which the fault happens, counted from 1 over
	// the whole provider; 0 means none.
	Nth int
	// Every makes the fault happen at one event in so many on average, picked by
	// Config.Seed; 0 means none.
	Every int
}

// Triggers says when each fault happens:
//
//	fault.Triggers{fault.FailSend: {Nth: 3}, fault.DelaySend: {Every: 100}}
type Triggers [kinds]Trigger

// Config says which faults a [Provider] injects. With its zero value it injects none.
type Config struct {
	// Seed decides which events Every picks. The choice at a queue pair depends only
	// on the seed, on the queue pair's number in the order of creation, and on how
	// many events it had before. So it does not depend on how goroutines interleave.
	Seed uint64
	// On says when each fault happens.
	On Triggers
	// Status is the completion status of a request that FailSend or FailRecv makes
	// fail; 0 means StatusTransport.
	Status hw.Status
	// Delay is how long DelaySend holds a completion; 0 means 1 ms.
	Delay time.Duration
	// Series makes the devices use all that the contract of hw.SeriesSink allows: they
	// hand on each plain success in an array, by itself or in a series, as Seed picks. It is
	// no fault, and changes nothing for sinks that are not direct and for polled devices.
	Series bool
	// Bound is the time from LosePeer until the loss is noticed; 0 means 5 ms.
	Bound time.Duration
}

// Provider passes every call on to another provider, the inner one, and injects faults.
// Its devices have exactly the optional interfaces of the inner devices. The method
// Unwrap of a device or of a queue pair returns the inner one.
type Provider struct {
	inner hw.Provider
	cfg   Config
	seen  [kinds]atomic.Int64
	fired [kinds]atomic.Int64
	qps   atomic.Int64 // number of queue pairs ever made: seeds their faults
}

// Wrap returns a provider that passes calls on to inner and injects the faults of cfg.
// It is not registered.
func Wrap(inner hw.Provider, cfg Config) *Provider {
	if cfg.Status == hw.StatusSuccess {
		cfg.Status = hw.StatusTransport
	}
	if cfg.Delay == 0 {
		cfg.Delay = time.Millisecond
	}
	if cfg.Bound == 0 {
		cfg.Bound = 5 * time.Millisecond
	}
	return &Provider{inner: inner, cfg: cfg}
}

// Name implements [hw.Provider]. It returns the inner provider's name.
func (f *Provider) Name() string { return f.inner.Name() }

// Fired is how often a fault has happened. Any goroutine may call it.
func (f *Provider) Fired(k Kind) int { return int(f.fired[k].Load()) }

// hits counts an event, and reports whether the fault happens at it. qp and event
// identify the event in a way that does not depend on how goroutines interleave.
func (f *Provider) hits(k Kind, qp, event uint64) bool {
	on := f.cfg.On[k]
	if on == (Trigger{}) {
		return false
	}
	n := f.seen[k].Add(1)
	hit := n == int64(on.Nth)
	if on.Every > 0 && mix(f.cfg.Seed, uint64(k), qp, event)%uint64(on.Every) == 0 {
		hit = true
	}
	if hit {
		f.fired[k].Add(1)
	}
	return hit
}

// call is hits for a call on the device. It returns the call's error when the fault
// happens.
func (f *Provider) call(k Kind, op string, sub hw.Subtype) error {
	if !f.hits(k, ^uint64(0), uint64(f.seen[k].Load())) {
		return nil
	}
	return hw.Errorf(op, hw.InsufficientResources, sub, "injected: %v", k)
}

// mix hashes several numbers to one (splitmix64).
func mix(xs ...uint64) (h uint64) {
	for _, x := range xs {
		h += x + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// Open implements [hw.Provider].
func (f *Provider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	d := &device{fault: f, async: cfg.Async}
	if cfg.Async != nil {
		cfg.Async = d.onAsync
	}
	inner, err := f.inner.Open(cfg)
	if err != nil {
		return nil, err
	}
	d.Device, d.attr = inner, inner.Attr()
	return d.dress(), nil
}
