package sim

import (
	"math/rand/v2"
	"net"
	"slices"
	"sync"

	"godat/hw"
)

// Config says how the devices of a [Provider] behave. Its zero value describes devices
// that offer all that this package has, and complete late.
type Config struct {
	// Name is the provider's name; empty means "sim".
	Name string

	// Seed decides every choice that the engine makes: delays, the order of flushes
	// between queues, and the garbage in fields of a WC that have no meaning.
	Seed uint64
	// MaxDelay bounds the delay before the next piece of a queue pair's work, in steps
	// of its device's engine: 0 means 8, less than 0 means no delay.
	MaxDelay int
	// Chunk is the most bytes that the engine copies in one step; 0 means 16 KiB.
	// Deregister waits for one chunk at most.
	Chunk int
	// manual leaves the engine's steps to the test, which calls stepOnce.
	manual bool

	// Ops are the operations that the devices offer; 0 means all that they have: send,
	// write and read.
	Ops hw.OpSet
	// NoNotReadyWait makes a send that finds no receive break the connection at
	// once, whatever QPConfig.NotReady says.
	NoNotReadyWait bool

	// EarlyCompletion makes a send or write succeed even when the target refuses it, as
	// on iWARP; the refusal then only ends the connection.
	EarlyCompletion bool
	// ImpliedLocalRead lets a send or write read from any region, as verbs do.
	ImpliedLocalRead bool
	// ImpliedLocalWrite lets a region with RemoteWrite be written locally too, as
	// verbs do.
	ImpliedLocalWrite bool
}

// Provider is a provider of simulated devices with polled completion queues. Devices of
// one Provider reach each other by name, and reach no others.
//
// Each device has an engine, a goroutine that executes work requests in steps after they
// were posted. One lock guards all state of a Provider except the contents of completion
// queues, which have one lock per device: so a poll waits for the engine no longer than
// the engine takes to store a completion. The engine calls Facts and OnRequest with no
// lock held.
type Provider struct {
	cfg Config

	mu        sync.Mutex
	opened    uint64         // number of devices ever opened: seeds their engines
	names     map[string]int // number of open devices by name
	listeners map[service]*listener
	lastQual  uint64
	numbers   map[uint32]*queuePair // those that peers can pair with
	regions   map[uint32]*region    // by local key
	lastKey   uint32

	violations []string
}

// service is the destination of a connection request.
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

// defaultQual is one less than the first connection qualifier that a Provider chooses.
const defaultQual = 49152

// New returns a provider. It does not register it.
func New(cfg Config) *Provider {
	if cfg.Name == "" {
		cfg.Name = "sim"
	}
	if cfg.MaxDelay == 0 {
		cfg.MaxDelay = 8
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
		regions:   make(map[uint32]*region),
		lastQual:  defaultQual,
		numbers:   make(map[uint32]*queuePair),
	}
}

// Name implements [hw.Provider].
func (s *Provider) Name() string { return s.cfg.Name }

// Violations lists the breaches of the contract by users of the provider's devices:
// calls on a queue pair from two goroutines at once, posts after Break, a second Break,
// more requests outstanding than the depth of a queue pair or of a completion queue, two
// pollers. It keeps the first 64. Any goroutine may call it.
func (s *Provider) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// violationsKept bounds the list, for a user that repeats a breach without end.
const violationsKept = 64

// Open opens a device with any name, which is also its address; an empty name means the
// provider's name and "0". Several open devices may share a name. The device's dynamic
// type is [*Device]. There are no parameters.
func (s *Provider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	for k := range cfg.Params {
		return nil, hw.Errorf("sim.Open", hw.InvalidParameter, hw.NoSubtype, "unknown parameter %q", k)
	}
	d := &Device{sim: s, name: cfg.Device, async: cfg.Async, wake: make(chan struct{}, 1), done: make(chan struct{})}
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
	if s.cfg.manual {
		close(d.done)
	} else {
		go d.run()
	}
	return d, nil
}
