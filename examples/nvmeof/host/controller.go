package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/intake"
	"godat/examples/nvmeof/nvme"
	dat "godat/runtime"
)

// Config says to what a host connects, and how. Zero values take the defaults.
type Config struct {
	Addr      string        // host:port
	Subsystem string        // its name; the default is the discovery subsystem, which has no disks
	Name      string        // of this host; its default ends with the host's ID
	ID        [16]byte      // of this host, a UUID; the default is a new one
	Queues    int           // I/O queues that the calls of all disks share; default 1, or none beside Pipelines
	Pipelines int           // further ones, for Controller.Pipeline; of both, at most as many as the target grants
	Depth     int           // entries of an I/O queue, 2 to 1024; default 32, and at most the target's
	Transfer  int           // bytes of a slot, and so of a command's data at most; default 128 KiB, at most 1 MiB
	KeepAlive time.Duration // default 15 s; negative means none
	Intake    intake.Way    // how I/O queues take their events; default intake.Batches
}

const (
	adminDepth    = 32
	adminTransfer = nvme.PageLen
	mostTransfer  = 1 << 20
)

func (cfg *Config) complete() error {
	cfg.ID = cmp.Or(cfg.ID, identity.New())
	id := identity.ID(cfg.ID)
	cfg.Subsystem = cmp.Or(cfg.Subsystem, nvme.DiscoverySubsystem)
	cfg.Name = cmp.Or(cfg.Name, id.Name())
	if cfg.Pipelines == 0 {
		cfg.Queues = cmp.Or(cfg.Queues, 1)
	}
	cfg.Depth = cmp.Or(cfg.Depth, 32)
	cfg.Transfer = cmp.Or(cfg.Transfer, 128<<10)
	cfg.KeepAlive = cmp.Or(cfg.KeepAlive, 15*time.Second)
	if cfg.Queues < 0 || cfg.Pipelines < 0 || cfg.Depth < 2 || cfg.Depth > 1024 || cfg.Transfer < nvme.PageLen || cfg.Transfer > mostTransfer {
		return fmt.Errorf("host: %d queues of %d entries with %d bytes each: out of range", cfg.Queues, cfg.Depth, cfg.Transfer)
	}
	if cfg.Intake == intake.Poll && cfg.Queues > 0 {
		return errors.New("host: a queue that calls share has channels: intake.Poll is for Pipelines alone")
	}
	return cfg.Intake.Check()
}

// Controller is a host's connection to a subsystem. Its methods may be called from any
// goroutine.
type Controller struct {
	// Immutable after Connect.
	ia       *dat.IA
	cfg      Config
	id       uint16
	identity nvme.Controller
	admin    *queue
	queues   []*queue
	spare    int // I/O queues for pipelines

	pipes     sync.Mutex
	pipelines []*link // guarded by pipes

	turn   atomic.Uint32 // of the I/O queues
	stop   chan struct{} // closed by Close
	once   sync.Once
	alive  sync.WaitGroup // the goroutine that keeps the controller alive
	closed error          // of the first Close
}

// RejectError is the error of a connection that the target rejected.
type RejectError nvme.RejectStatus

func (e RejectError) Error() string {
	return "host: the target rejects the connection: " + nvme.RejectStatus(e).String()
}

// Connect connects to a subsystem: the admin queue, then the I/O queues. ctx bounds the
// call. A target that rejects a connection gives a RejectError, a command that fails an
// nvme.StatusError.
func Connect(ctx context.Context, ia *dat.IA, cfg Config) (c *Controller, err error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	c = &Controller{ia: ia, cfg: cfg, stop: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
			c = nil
		}
	}()
	admin, err := openLink(ctx, ia, &c.cfg, 0, adminDepth, adminTransfer, nvme.DynamicController)
	if err != nil {
		return c, err
	}
	c.admin = newQueue(admin)
	c.id = c.admin.controller
	if err := c.enable(ctx); err != nil {
		return c, err
	}
	if c.cfg.KeepAlive > 0 {
		c.alive.Go(c.keepAlive)
	}
	if cfg.Subsystem == nvme.DiscoverySubsystem {
		return c, nil
	}
	return c, c.openQueues(ctx)
}

// openQueues asks the target for I/O queues, and connects those of the disks.
func (c *Controller) openQueues(ctx context.Context) error {
	granted, err := c.admin.do(ctx, nvme.SetFeature(nvme.FeatureQueues, nvme.Queues(c.cfg.Queues+c.cfg.Pipelines)), nil)
	if err != nil {
		return err
	}
	n, _ := nvme.QueuesOf(uint32(granted))
	for i := range min(c.cfg.Queues, n) {
		l, err := c.openIO(ctx, i)
		if err != nil {
			return err
		}
		c.queues = append(c.queues, newQueue(l))
	}
	c.spare = min(c.cfg.Pipelines, n-len(c.queues))
	return nil
}

// openIO connects the I/O queue with an index, from 0.
func (c *Controller) openIO(ctx context.Context, index int) (*link, error) {
	l, err := openLink(ctx, c.ia, &c.cfg, uint16(index+1), c.cfg.Depth, c.cfg.Transfer, c.id)
	if err == nil && c.ia.Attr().Provider != "loop" { // where an RDMA read copies once, and a capsule twice
		l.inCapsule = c.identity.InCapsule
	}
	return l, err
}

// enable enables the controller, waits until it is ready, and learns what it is.
func (c *Controller) enable(ctx context.Context) error {
	capabilities, err := c.admin.do(ctx, nvme.PropertyGet(nvme.PropertyCAP), nil)
	if err != nil {
		return err
	}
	c.cfg.Depth = min(c.cfg.Depth, int(capabilities&0xffff)+1)
	if _, err := c.admin.do(ctx, nvme.PropertySet(nvme.PropertyCC, nvme.ConfigEnable|nvme.ConfigEntrySizes), nil); err != nil {
		return err
	}
	for ready := false; !ready; {
		status, err := c.admin.do(ctx, nvme.PropertyGet(nvme.PropertyCSTS), nil)
		if err != nil {
			return err
		}
		if uint32(status)&nvme.StatusFatal != 0 {
			return errors.New("host: the controller has failed")
		}
		ready = uint32(status)&nvme.StatusReady != 0
	}
	page := make([]byte, nvme.PageLen)
	if _, err := c.admin.do(ctx, nvme.Identify(nvme.IdentifyControllerPage, 0), page); err != nil {
		return err
	}
	c.identity, err = nvme.ParseController(page)
	if limit := c.identity.MaxTransfer; limit != 0 && limit < 16 {
		c.cfg.Transfer = min(c.cfg.Transfer, nvme.PageLen<<limit)
	}
	return err
}

// keepAlive sends Keep Alive commands until Close, or until one fails, which is when the
// admin queue has ended.
func (c *Controller) keepAlive() {
	tick := time.NewTicker(c.cfg.KeepAlive / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := c.admin.do(context.Background(), nvme.Command{Opcode: nvme.AdminKeepAlive, Flags: nvme.UsesList}, nil); err != nil {
				return
			}
		case <-c.stop:
			return
		}
	}
}

// Identity is what the controller says about itself.
func (c *Controller) Identity() nvme.Controller { return c.identity }

// ID is the controller's id.
func (c *Controller) ID() uint16 { return c.id }

// Queues is how many I/O queues are connected.
func (c *Controller) Queues() int { return len(c.queues) }

// Admin runs an admin command. data is what the command returns, at most 4096 bytes.
func (c *Controller) Admin(ctx context.Context, command nvme.Command, data []byte) (result uint64, err error) {
	return c.admin.do(ctx, command, data)
}

// Discover returns the ways to subsystems that a discovery controller knows.
func (c *Controller) Discover(ctx context.Context) ([]nvme.DiscoveryEntry, error) {
	for {
		before, entries, err := c.readWays(ctx)
		if err != nil {
			return nil, err
		}
		now, _, err := c.waysHeader(ctx, make([]byte, nvme.DiscoveryEntryLen))
		if err != nil || now == before { // otherwise they changed while they were read
			return entries, err
		}
	}
}

// readWays reads the discovery log once.
func (c *Controller) readWays(ctx context.Context) (generation uint64, entries []nvme.DiscoveryEntry, err error) {
	page := make([]byte, nvme.DiscoveryEntryLen)
	generation, n, err := c.waysHeader(ctx, page)
	if err != nil {
		return 0, nil, err
	}
	for i := range n {
		at := nvme.DiscoveryEntryLen * (i + 1)
		if _, err := c.Admin(ctx, nvme.GetLogPage(nvme.LogDiscovery, at, nvme.DiscoveryEntryLen), page); err != nil {
			return 0, nil, err
		}
		if e, ok := nvme.ParseDiscoveryEntry(page); ok {
			entries = append(entries, e)
		}
	}
	return generation, entries, nil
}

// waysHeader reads the first part of the discovery log.
func (c *Controller) waysHeader(ctx context.Context, page []byte) (generation, entries uint64, err error) {
	if _, err := c.Admin(ctx, nvme.GetLogPage(nvme.LogDiscovery, 0, uint32(len(page))), page); err != nil {
		return 0, 0, err
	}
	return nvme.ParseDiscoveryHeader(page)
}

// Rediscover waits until a discovery controller tells that its log has changed, and returns what Discover
// does. It tells of changes since the controller was connected, or since an earlier Discover or Rediscover
// returned. One goroutine at a time calls Rediscover or [Controller.Changed].
func (c *Controller) Rediscover(ctx context.Context) ([]nvme.DiscoveryEntry, error) {
	if err := c.await(ctx, nvme.DiscoveryNotices, nvme.DiscoveryChanged); err != nil {
		return nil, err
	}
	return c.Discover(ctx)
}

// await waits for an event of a kind.
func (c *Controller) await(ctx context.Context, kind uint32, want nvme.AsyncEvent) error {
	if _, err := c.Admin(ctx, nvme.SetFeature(nvme.FeatureAsyncEvents, kind), nil); err != nil {
		return err
	}
	for {
		event, err := c.admin.doOrAbort(ctx, nvme.Command{Opcode: nvme.AdminAsyncEvent})
		if err != nil || nvme.AsyncEvent(event) == want {
			return err
		}
	}
}

// Changed waits until the target tells of namespaces that were added, removed or changed,
// and returns their ids. It tells of those since the controller was connected, or since an
// earlier Changed returned. One goroutine at a time calls Changed.
func (c *Controller) Changed(ctx context.Context) ([]uint32, error) {
	if err := c.await(ctx, nvme.NamespaceNotices, nvme.NamespaceChanged); err != nil {
		return nil, err
	}
	page := make([]byte, nvme.PageLen)
	if _, err := c.Admin(ctx, nvme.GetLogPage(nvme.LogChangedNamespaces, 0, nvme.PageLen), page); err != nil {
		return nil, err
	}
	return nvme.ParseNamespaceList(page), nil
}

// Close shuts the controller down and ends its connections. Calls that are under way end
// with an error. A second Close waits for the first.
func (c *Controller) Close() error {
	c.once.Do(func() { c.closed = c.close() })
	return c.closed
}

// closeTime bounds an end in order.
const closeTime = 5 * time.Second

func (c *Controller) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	close(c.stop)
	if c.admin != nil && c.id != 0 {
		const normalShutdown = 1 << 14
		// An error means that the connection is over.
		_, _ = c.admin.do(ctx, nvme.PropertySet(nvme.PropertyCC, nvme.ConfigEnable|nvme.ConfigEntrySizes|normalShutdown), nil)
	}
	var errs []error
	c.pipes.Lock()
	defer c.pipes.Unlock()
	for _, l := range c.pipelines {
		errs = append(errs, l.close())
	}
	c.spare = 0
	for _, q := range append(c.queues, c.admin) {
		if q != nil {
			errs = append(errs, q.close())
		}
	}
	c.alive.Wait()
	return errors.Join(errs...)
}
