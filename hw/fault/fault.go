package fault

import (
	"sync/atomic"
	"time"

	"godat/hw"
)

// Kind is a kind of fault.
type Kind int

// The faults. Requests are counted when they are posted, completions when they
// are about to be handed on.
const (
	// FailSend makes a request of the send queue fail in its turn: those before it
	// run, it completes with Config.Status, all later ones are flushed, and
	// both sides hear Down(ReasonBroken).
	FailSend Kind = iota
	// FailRecv makes a receive fail when a message of a byte or more comes for it.
	FailRecv
	// DelaySend holds the completion of a request of the send queue, and all
	// behind it, for Config.Delay.
	DelaySend
	// BreakConn breaks the connection right after a request was posted: what is
	// outstanding is flushed, both sides hear Down(ReasonBroken).
	BreakConn
	// LosePeer makes the peer fall silent: this request and those behind it go
	// nowhere. After Config.Bound the first one outstanding fails with
	// StatusTransport, the rest is flushed, both sides hear Down(ReasonBroken).
	LosePeer

	// FailRegister, FailNewQP and FailConnect make the call return an error and do
	// nothing.
	FailRegister
	FailNewQP
	FailConnect

	// The remaining faults break the contract itself. Tests use them to see that a
	// checker notices.

	// DropCompletion loses a completion.
	DropCompletion
	// DoubleCompletion hands it on twice.
	DoubleCompletion
	// SwapCompletions hands it on behind the next one of its queue.
	SwapCompletions
	// EndEarly hands a queue's OpEnd on before what is left of its completions.
	EndEarly
	// LoseEstablished keeps Established from the owner of a connection. Each
	// connection that comes up counts.
	LoseEstablished

	kinds
)

var kindText = [...]string{
	"FailSend", "FailRecv", "DelaySend", "BreakConn", "LosePeer", "FailRegister", "FailNewQP", "FailConnect",
	"DropCompletion", "DoubleCompletion", "SwapCompletions", "EndEarly", "LoseEstablished",
}

func (k Kind) String() string { return kindText[k] }

// Trigger says when a fault happens. Its zero value is never.
type Trigger struct {
	// Nth is which event it happens at, counted from 1 over the whole provider.
	Nth int
	// Every makes it happen at one event in so many, by chance.
	Every int
}

// Triggers says when each fault happens:
//
//	fault.Triggers{fault.FailSend: {Nth: 3}, fault.DelaySend: {Every: 100}}
type Triggers [kinds]Trigger

// Config says what a [Provider] does. With its zero value it does nothing, and
// what it wraps is as before.
type Config struct {
	// Seed decides the events that Every picks. They depend on nothing else than
	// the seed, which queue pair it is in the order of creation, and how many
	// events it had before; so how goroutines interleave changes nothing.
	Seed uint64
	// On says when each fault happens.
	On Triggers
	// Status is what a request that fails completes with; 0 means
	// StatusTransport.
	Status hw.Status
	// Delay is how long DelaySend holds a completion; 0 means 1 ms.
	Delay time.Duration
	// Bound is how long a lost peer goes unnoticed; 0 means 5 ms.
	Bound time.Duration
}

// Provider hands everything on to another provider, and makes some of it go wrong. Its devices have exactly the optional interfaces of the inner
// ones; their method Unwrap gives the inner device, as that of queue pairs
// gives the inner queue pair.
type Provider struct {
	inner hw.Provider
	cfg   Config
	seen  [kinds]atomic.Int64
	fired [kinds]atomic.Int64
	qps   atomic.Int64 // ever made: seeds their choices
}

// Wrap wraps inner.
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

// Name implements [hw.Provider]: it is the inner provider's.
func (f *Provider) Name() string { return f.inner.Name() }

// Fired is how often a fault has happened.
func (f *Provider) Fired(k Kind) int { return int(f.fired[k].Load()) }

// hits counts an event, and reports whether the fault happens at it. who and
// when name the event apart from how goroutines interleave.
func (f *Provider) hits(k Kind, who, when uint64) bool {
	on := f.cfg.On[k]
	if on == (Trigger{}) {
		return false
	}
	n := f.seen[k].Add(1)
	hit := n == int64(on.Nth)
	if on.Every > 0 && mix(f.cfg.Seed, uint64(k), who, when)%uint64(on.Every) == 0 {
		hit = true
	}
	if hit {
		f.fired[k].Add(1)
	}
	return hit
}

// call is hits for a call on the device, which is refused when it fails.
func (f *Provider) call(k Kind, op string, sub hw.Subtype) error {
	if !f.hits(k, ^uint64(0), uint64(f.seen[k].Load())) {
		return nil
	}
	return hw.Errorf(op, hw.InsufficientResources, sub, "injected: %v", k)
}

// mix makes a number of several that shows none of them (splitmix64).
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
	d.worker.start()
	return d.dress(), nil
}
