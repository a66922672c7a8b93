package sim

import (
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"godat/hw"
)

// Config says how the devices of a [Provider] behave. Its zero value is a device
// that does all it can, and late.
type Config struct {
	// Name is the provider's name; empty means "sim".
	Name string

	// Seed decides every choice the engine makes: delays, the order of flushes
	// between queues, the garbage in fields that mean nothing.
	Seed uint64
	// MaxDelay is the most steps of its device's engine that pass before the next
	// piece of a queue pair's work: 0 means 8, less than 0 none.
	MaxDelay int
	// LossSteps is how many engine steps a queue pair takes to notice that its
	// peer is lost; 0 means 64.
	LossSteps int
	// Chunk is the most bytes copied in one step; 0 means 16 KiB. Deregister
	// waits for one chunk at most.
	Chunk int
	// Every, when set, is the shortest time between two work requests that a
	// device begins: with unsignaled senders, a completion every so often. On
	// Linux it is kept to tens of microseconds.
	Every time.Duration
	// Manual leaves the engine to [Device.Step]; the device has no goroutine.
	Manual bool

	// Ops are the operations to offer; 0 means all it has: send, write and read.
	Ops hw.OpSet
	// NoNotReadyWait makes a send that finds no receive break the connection at
	// once, whatever QPConfig.NotReady says.
	NoNotReadyWait bool

	// EarlyCompletion makes a send or write succeed before the target has looked
	// at it, as on iWARP; a refusal ends the connection.
	EarlyCompletion bool
	// ImpliedLocalRead lets a send or write gather from any region, as verbs do.
	ImpliedLocalRead bool
	// ImpliedLocalWrite lets a region with RemoteWrite be written locally too, as
	// verbs do.
	ImpliedLocalWrite bool

	// Tap sees each completion as it enters its queue, from inside the engine. It
	// must not block nor call the device: it is for time stamps.
	Tap func(wc hw.WC)
}

// Provider is a provider of simulated devices that complete into queues to be
// polled. Devices of one Provider reach each other by name, and no others.
//
// A device is an engine with a goroutine of its own, which executes work
// requests in steps after they were posted. All state of a Provider is behind one
// lock; completion queues have one per device, so that a poll meets the engine
// only for as long as a completion takes to store. Facts and requests are told
// by the engine with no lock held.
type Provider struct {
	cfg Config

	mu        sync.Mutex
	opened    uint64         // devices ever opened: seeds their engines
	names     map[string]int // how many open devices have the name
	listeners map[service]*listener
	lastQual  uint64
	regions   keyTable

	violations []string
}

// service is what a connection request asks for.
type service struct {
	addr string
	qual uint64
}

// addr is an address of the simulated network: a device's name.
type addr string

func (addr) Network() string  { return "sim" }
func (a addr) String() string { return string(a) }

var (
	_ hw.Provider = (*Provider)(nil)
	_ hw.Device   = (*Device)(nil)
	_ hw.Polled   = (*Device)(nil)
	_ net.Addr    = addr("")
)

// defaultQual is below the first connection qualifier that a Provider chooses.
const defaultQual = 49152

// New makes a provider. It is not registered.
func New(cfg Config) *Provider {
	if cfg.Name == "" {
		cfg.Name = "sim"
	}
	if cfg.MaxDelay == 0 {
		cfg.MaxDelay = 8
	}
	if cfg.LossSteps == 0 {
		cfg.LossSteps = 64
	}
	if cfg.Chunk == 0 {
		cfg.Chunk = 16 << 10
	}
	if cfg.Ops == 0 {
		cfg.Ops = hw.Ops(hw.OpSend, hw.OpWrite, hw.OpRead)
	}
	return &Provider{
		cfg:       cfg,
		names:     make(map[string]int),
		listeners: make(map[service]*listener),
		lastQual:  defaultQual,
	}
}

// Name implements [hw.Provider].
func (s *Provider) Name() string { return s.cfg.Name }

// Violations lists what the users of the provider's devices did against the
// contract: calls on a queue pair from two goroutines at once, posts after Break,
// a second Break, more outstanding than the depth of a queue pair or of a
// completion queue, two pollers. The list ends after the first 64.
func (s *Provider) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// violationsKept bounds the list, for a user that does the same wrong thing
// for ever.
const violationsKept = 64

// Open opens a device. Any name will do: the device answers to it, and several
// open devices may share one. The dynamic type is [*Device]. There are no
// parameters.
func (s *Provider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	for k := range cfg.Params {
		return nil, hw.Errorf("sim.Open", hw.InvalidParameter, hw.NoSubtype, "unknown parameter %q", k)
	}
	d := &Device{sim: s, name: cfg.Device, async: cfg.Async, kick: make(chan struct{}, 1), done: make(chan struct{})}
	if d.name == "" {
		d.name = s.cfg.Name + "0"
	}
	d.unbusy.L = &s.mu
	wait, err := newWaiter()
	if err != nil {
		return nil, hw.Errorf("sim.Open", hw.InsufficientResources, hw.ResourceDevice, "wake-ups: %w", err)
	}
	d.waiter = wait
	s.mu.Lock()
	s.opened++
	d.rng = rand.New(rand.NewPCG(s.cfg.Seed, s.opened))
	s.names[d.name]++
	s.mu.Unlock()
	if s.cfg.Manual {
		close(d.done)
	} else {
		go d.run()
	}
	return d, nil
}
