package target

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"godat/examples/nvmeof/nvme"
)

// controller is what a host's admin queue stands for: the host's view of a subsystem.
type controller struct {
	// Immutable.
	id        uint16
	host      string
	address   string // of the host, as addressOf
	hostID    [16]byte
	discovery bool

	config atomic.Uint32 // CC, which the admin queue writes
	status atomic.Uint32 // CSTS
	busy   atomic.Bool   // a command has come since the Keep Alive time began anew

	notices chan struct{} // has a value when there are changes that the admin queue has not seen

	// Owned by the admin queue.
	asyncConfig uint32
	masked      uint32 // bits of notices: an event went out, and the host has not read the log page since

	// Guarded by the registry.
	queues  uint64        // I/O queues that are connected, a bit each
	granted int           // I/O queues that the host asked for
	gone    chan struct{} // closed when the I/O queues are to end
	changes changes       // namespaces that changed
	groups  bool          // ANA groups that changed
	ways    bool          // the discovery log changed
}

// Associations is how many hosts' controllers have I/O queues now. It may be called at any time.
func (t *Target) Associations() (n int) {
	r := &t.controllers
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.all {
		if c.queues != 0 {
			n++
		}
	}
	return n
}

// enabled reports whether the host has enabled the controller.
func (c *controller) enabled() bool { return c.config.Load()&nvme.ConfigEnable != 0 }

// mark notes that a command has come. It writes only when that is news, since all queues
// of the controller share the word.
func (c *controller) mark() {
	if !c.busy.Load() {
		c.busy.Store(true)
	}
}

// registry has the controllers of a target. Its methods may be called from any
// goroutine.
type registry struct {
	cfg *Config // immutable

	mu      sync.Mutex
	all     map[uint16]*controller
	running map[*queue]struct{} // queues that have a controller, until their connections are closed
}

func (r *registry) init(cfg *Config) {
	r.cfg, r.all, r.running = cfg, make(map[uint16]*controller), make(map[*queue]struct{})
}

// add makes a controller for the admin queue of a host at an address, or returns nil if there
// are as many as may be.
func (r *registry) add(d *nvme.ConnectData, address string) *controller {
	r.mu.Lock()
	defer r.mu.Unlock()
	host, neighbors := 0, 0
	for _, c := range r.all {
		if c.host == d.Host {
			host++
		}
		if c.address == address {
			neighbors++
		}
	}
	if len(r.all) >= r.cfg.Controllers || host >= r.cfg.HostControllers || neighbors >= r.cfg.AddressControllers {
		return nil
	}
	c := &controller{
		id: r.free(), host: d.Host, address: address, hostID: d.HostID, discovery: d.Subsystem == nvme.DiscoverySubsystem,
		granted: r.cfg.Queues, gone: make(chan struct{}), notices: make(chan struct{}, 1),
	}
	r.all[c.id] = c
	return c
}

// free draws the id of a controller that is not there. Another target of the subsystem, which
// draws too, rarely has it; the host that finds both refuses the second one and tries again.
func (r *registry) free() uint16 {
	ids := r.cfg.ControllerIDs
	for {
		id := ids.First + uint16(rand.IntN(ids.size()))
		if r.all[id] == nil {
			return id
		}
	}
}

// join connects an I/O queue to its host's controller. gone is closed when the queue is
// to end.
func (r *registry) join(d *nvme.ConnectData, queue uint16) (c *controller, gone <-chan struct{}, status nvme.Status, result uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c = r.all[d.Controller]
	switch {
	case c == nil || c.discovery:
		status, result = nvme.ConnectInvalidParameters, nvme.InvalidData(nvme.ConnectOffsetController)
	case c.host != d.Host || c.hostID != d.HostID:
		status, result = nvme.ConnectInvalidParameters, nvme.InvalidData(nvme.ConnectOffsetHost)
	case !c.enabled():
		status = nvme.CommandSequenceError
	case int(queue) > c.granted || c.queues>>(queue-1)&1 != 0:
		status, result = nvme.ConnectInvalidParameters, nvme.InvalidCommand(queueIDOffset)
	default:
		c.queues |= 1 << (queue - 1)
		return c, c.gone, nvme.Success, 0
	}
	return nil, nil, status | nvme.DoNotRetry, result
}

// grant sets how many I/O queues a controller may have, and returns the number. It
// can't change while some are connected.
func (r *registry) grant(c *controller, queues int) (granted int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.queues != 0 {
		return c.granted, false
	}
	c.granted = min(queues, r.cfg.Queues)
	return c.granted, true
}

// granted is how many I/O queues a controller may have.
func (r *registry) granted(c *controller) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.granted
}

// leave takes a queue from its controller; gone is what join returned for an I/O queue.
// The admin queue ends the controller.
func (r *registry) leave(c *controller, queue uint16, gone <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if queue != 0 {
		if gone == c.gone { // no reset has made room for another queue of this number
			c.queues &^= 1 << (queue - 1)
		}
		return
	}
	delete(r.all, c.id)
	close(c.gone)
}

// reset ends the I/O queues of a controller, which may then have others.
func (r *registry) reset(c *controller) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(c.gone)
	c.gone, c.queues, c.granted = make(chan struct{}), 0, r.cfg.Queues
}
