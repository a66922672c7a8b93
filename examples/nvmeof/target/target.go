package target

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"godat/ep"
	"godat/examples/nvmeof/intake"
	"godat/examples/nvmeof/nvme"
	dat "godat/runtime"
)

// Target serves one subsystem, and the discovery subsystem that tells of it.
type Target struct {
	// Immutable after New.
	cfg        Config
	log        *slog.Logger
	conns      dat.ConnConfig // of all queues but for the depth, which the host says
	interfaces func() ([]net.Addr, error)

	listeners []*listener // immutable when Run begins
	elsewhere atomic.Pointer[[]string]
	announced announced

	drain  time.Duration  // bounds how long Run waits for the commands that are under way
	places chan struct{}  // has a value for each connection
	down   chan struct{}  // closed when the queues are to end
	over   chan struct{}  // closed when they are to end at once
	queues sync.WaitGroup // running queues

	namespaces  table
	groups      groups
	controllers registry
	strangers   strangers
	statistics  statistics
}

// drainTime is Target.drain.
const drainTime = 5 * time.Second

// New listens. The caller must call Run, which serves, and which closes the stores.
// When New has failed, the stores are still the caller's.
func New(ctx context.Context, ia *dat.IA, cfg Config) (*Target, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	t := &Target{
		cfg: cfg, log: cfg.Log, interfaces: net.InterfaceAddrs,
		drain: drainTime, down: make(chan struct{}), over: make(chan struct{}),
	}
	t.controllers.init(&t.cfg)
	t.statistics.init()
	t.strangers.init(&t.cfg)
	places := placesPerQueue * cfg.Controllers * (cfg.Queues + 1)
	t.places = make(chan struct{}, places)
	t.conns = dat.ConnConfig{
		Depth: 1, Conns: places, Apart: true, OwnReceives: true,
		Refusal: nvme.RejectNoResources.Append(nil),
		Private: nvme.AppendAccept(nil, uint16(cfg.Depth)),
	}
	cfg.Intake.Set(&t.conns)
	t.elsewhere.Store(new([]string))
	if _, err := t.Listen(ctx, ia, cfg.Addr); err != nil {
		return nil, err
	}
	t.groups.init()
	t.namespaces.init(cfg.Namespaces, &t.groups)
	return t, nil
}

// Addr is the address of New that the target listens on, host:port.
func (t *Target) Addr() string { return t.listeners[0].Addr() }

// Run serves until ctx is done. Then it takes no more commands, completes those that are
// under way, ends all connections in order, and returns. Commands that take longer than 5 s
// end with their connections; what a worker is at then ends after a bounded piece. Run is
// called once.
func (t *Target) Run(ctx context.Context) error {
	ended := make(chan struct{})
	for _, l := range t.listeners {
		go t.accept(ctx, l, ended)
	}
	for range t.listeners {
		<-ended
	}
	close(t.down)
	drained := make(chan struct{})
	go t.awaitQueues(drained)
	late := newLimit(t.drain)
	defer late.timer.Stop()
	t.awaitDrained(drained, &late)
	// The queues have ended: they use the memory of their connections, which Close gives back.
	return errors.Join(closeAll(t.listeners), t.namespaces.close())
}

// awaitDrained waits until no queue runs. When that takes too long, the connections are broken.
func (t *Target) awaitDrained(drained <-chan struct{}, late *limit) {
	for {
		select {
		case <-drained:
			return
		case <-late.timer.C:
			if !late.again() {
				t.log.Warn("commands are still under way: their connections are broken")
				close(t.over)
				<-drained
				return
			}
		}
	}
}

// stopping reports whether the queues are to end. It is true before the controllers go that
// end because of it.
func (t *Target) stopping() bool { return isClosed(t.down) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// awaitQueues waits until no queue runs.
func (t *Target) awaitQueues(drained chan<- struct{}) {
	t.queues.Wait()
	close(drained)
}

// answer answers a connection request: it accepts the connection of a queue, whose
// goroutine it starts. It may wait for the end of one that has given way.
func (t *Target) answer(ctx context.Context, l *listener, cr *ep.CR) {
	asked, err := cr.Query()
	if err != nil {
		return // the request is gone
	}
	r, status := t.check(asked.Private)
	if status != 0 {
		t.reject(cr, asked.Remote, status)
		return
	}
	q := newQueue(t, l, r)
	q.local, q.address = asked.Local.String(), addressOf(asked.Remote)
	cfg := t.conns
	cfg.Depth, cfg.Setup, cfg.Queue = r.Entries(), q.setup, q.way() == intake.Poll
	cfg.Attr = &ep.Attr{MaxRecvDTOs: cfg.Depth + 1, MaxRequestDTOs: requestsOf(cfg.Depth)}
	t.strangers.enter(q)
	select {
	case t.places <- struct{}{}:
	case <-ctx.Done():
		t.strangers.leave(q)
		t.reject(cr, asked.Remote, nvme.RejectNoResources)
		return
	}
	if _, err := l.AcceptWith(cr, cfg); err != nil {
		t.strangers.leave(q)
		<-t.places
		t.log.Warn("connection not accepted", "host", asked.Remote, "error", err)
		return
	}
	t.queues.Go(q.run)
}

// reject rejects a connection request.
func (t *Target) reject(cr *ep.CR, host net.Addr, why nvme.RejectStatus) {
	t.log.Warn("connection rejected", "host", host, "reason", why)
	if err := cr.Reject(why.Append(nil)); err != nil {
		t.log.Debug("reject", "host", host, "error", err)
	}
}

// requestsPerEntry is how many requests a queue has for each of its entries. A command has
// two, and a host may have the completions of a queue's commands, and send others, before
// this end knows that their transfers and completions have been sent.
const requestsPerEntry = 4

// requestsOf is how many requests a queue of that many entries has.
func requestsOf(entries int) int { return requestsPerEntry*entries + proofSlots }

// placesPerQueue is how many connections there may be for each queue that there may be: that
// queue, a stranger, and a stranger that has given way and is not gone yet.
const placesPerQueue = 3

// check checks the private data of a connection request.
func (t *Target) check(private []byte) (nvme.ConnectRequest, nvme.RejectStatus) {
	r, status := nvme.ParseConnectRequest(private)
	switch {
	case status != 0:
	case int(r.QueueID) > t.cfg.Queues:
		status = nvme.RejectQueueID
	case r.Entries() > t.cfg.Depth || r.Entries() < fewestEntries:
		status = nvme.RejectSendSize
	case r.RecvSize < fewestEntries:
		status = nvme.RejectRecvSize
	}
	return r, status
}

// allows reports whether a host is on the list.
func (t *Target) allows(host string) bool {
	return len(t.cfg.Hosts) == 0 || slices.Contains(t.cfg.Hosts, host)
}
