package evd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
	"godat/internal/owner"
)

// CNO is DAT's consumer notification object (DAT_CNO_HANDLE): one place to wait for
// many dispatchers. A dispatcher of [ModeQueue] that has a CNO, is enabled and has
// no goroutine in Wait triggers the CNO on each event that is not silent.
//
// The trigger is one bit: it stays set until a waiter takes it, and it wakes one waiter. That
// waiter dequeues from all dispatchers of the CNO until they are empty, not only from the one
// that Wait returned, because others may have got events while the trigger was set. Then there
// is nothing that the next Wait could miss.
//
// Methods may be called from any goroutine.
//
// [godat/runtime.IA.NewCNO] makes one; [Config] or [Dispatcher.ModifyCNO] says which dispatchers
// trigger it.
type CNO struct {
	// Immutable.
	ia     any
	number uint64
	submit func(task func()) error
	task   func()        // run, made once
	dead   chan struct{} // closed with the CNO
	trig   chan struct{} // the trigger: sent to under mu only
	fd     *descriptor   // nil: none

	exited func() // an agent has not returned, though its goroutine has ended; nil: nobody asks

	goroutine atomic.Uintptr // the goroutine that calls an agent now; 0: none

	// mu guards what follows. It is taken behind a dispatcher's locks, and before those of the
	// pool that takes the task. A waiter locks mu after it takes the trigger and before it looks
	// at a dispatcher. So when a producer finds, under mu, that the CNO is triggered already, the
	// waiter that takes this trigger finds the producer's event.
	mu      sync.Mutex
	closed  bool
	users   int           // dispatchers that have the CNO
	waiters int           // goroutines in Wait or Trigger
	lost    chan struct{} // closed and replaced when the last dispatcher is freed
	last    *Dispatcher   // that set the last trigger, and has not left since
	agent   Agent         // nil: none, or it was called
	calls   []agentCall   // queued; see run
	running bool          // the task was started and has not ended
	tasks   int           // started and not ended: one that runs, and others that have nothing more to call
	rested  chan struct{} // closed when tasks is 0; nil: nobody waits
}

// CNOConfig configures a CNO.
type CNOConfig struct {
	// Agent is called at the first trigger; nil for none. See CNO.ModifyAgent.
	Agent Agent
	// Descriptor asks for a file descriptor that a foreign poll loop can watch;
	// see CNO.FD. Such a CNO has no agent.
	Descriptor bool

	home home
}

// On has the CNO live on an adapter, whose dispatchers alone can have it, with the pool that its agents run in; see
// [Config.On]. Package runtime calls it.
func (cfg *CNOConfig) On(_ door.Key, ia any, submit func(task func()) error) {
	cfg.home = home{ia, submit}
}

// NewCNO makes a CNO that is not triggered. A descriptor together with an agent is
// INVALID_PARAMETER. A descriptor is MODEL_NOT_SUPPORTED on a system that has none,
// and INSUFFICIENT_RESOURCES when the system refuses one. It answers to
// dat_cno_create and dat_cno_fd_create.
func NewCNO(cfg CNOConfig) (*CNO, error) {
	const op = "evd.NewCNO"
	if cfg.Descriptor && cfg.Agent != nil {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "an agent and a descriptor")
	}
	c := &CNO{
		ia: cfg.home.ia, number: cnos.Add(1), submit: cfg.home.submit, agent: cfg.Agent,
		dead: make(chan struct{}), trig: make(chan struct{}, 1), lost: make(chan struct{}),
	}
	c.task = c.run
	if cfg.Descriptor {
		var err error
		if c.fd, err = newDescriptor(); err != nil {
			if errors.Is(err, errors.ErrUnsupported) {
				return nil, hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "%w", err)
			}
			return nil, hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemory, "%w", err)
		}
	}
	return c, nil
}

// Wait takes the trigger, or waits for it, and returns the dispatcher that
// triggered the CNO: a hint, see [CNO]. The dispatcher is nil when it has left the
// CNO since, and when the CNO's last dispatcher was freed while Wait was waiting.
//
// Wait returns QUEUE_EMPTY, as in DAT, when the context's deadline passes, and
// INTERRUPTED_CALL when the context is canceled; neither takes a trigger. It
// returns INVALID_STATE/CNO_DEAD when the adapter's close ends the CNO meanwhile.
// Any number of goroutines may wait. It answers to dat_cno_wait.
func (c *CNO) Wait(ctx context.Context) (d *Dispatcher, err error) {
	const op = "evd.CNO.Wait"
	lost, err := c.enter(op)
	if err != nil {
		return nil, err
	}
	took := false
	defer func() {
		if hint := c.leave(); took {
			d = hint
		}
	}()
	if ctx == nil {
		return nil, &hw.Error{Op: op, Type: hw.InvalidParameter, Sub: hw.Arg2, Err: delivery.ErrNoContext}
	}
	select {
	case <-c.trig:
		took = true
		return nil, nil
	default:
	}
	select {
	case <-c.trig:
		took = true
		return nil, nil
	case <-lost:
		return nil, nil
	case <-c.dead:
		return nil, &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateCNODead}
	case <-ctx.Done():
	}
	select {
	case <-c.trig: // it was set as the context ended
		took = true
		return nil, nil
	default:
	}
	t := hw.InterruptedCall
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t = hw.QueueEmpty
	}
	return nil, &hw.Error{Op: op, Type: t, Err: ctx.Err()}
}

// Trigger takes the trigger as Wait does, but does not wait; it returns QUEUE_EMPTY
// when the CNO is not triggered. A poll loop calls it after the descriptor became
// readable, and an agent before it dequeues. It answers to dat_cno_trigger.
func (c *CNO) Trigger() (*Dispatcher, error) {
	const op = "evd.CNO.Trigger"
	if _, err := c.enter(op); err != nil {
		return nil, err
	}
	took := false
	select {
	case <-c.trig:
		took = true
	default:
	}
	hint := c.leave()
	if !took {
		return nil, &hw.Error{Op: op, Type: hw.QueueEmpty}
	}
	return hint, nil
}

// enter counts the caller as a waiter until it calls leave.
func (c *CNO) enter(op string) (lost chan struct{}, err error) {
	if !c.isMade() {
		return nil, invalidCNO(op)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, invalidCNO(op)
	}
	c.waiters++
	return c.lost, nil
}

// leave ends what enter began, after the caller took the trigger or gave up, and returns the hint for who
// took it.
func (c *CNO) leave() (hint *Dispatcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiters--
	c.show()
	return c.last
}

// show makes the descriptor readable if the CNO is triggered, and else not
// readable. The caller holds mu.
func (c *CNO) show() {
	if c.fd != nil && !c.closed {
		c.fd.set(len(c.trig) != 0)
	}
}

// trigger sets the trigger for d. It does not block, because posts call it too.
func (c *CNO) trigger(d *Dispatcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || d.cno.Load() != c {
		return
	}
	select {
	case c.trig <- struct{}{}:
		c.last = d
		c.show()
		c.callAgent(d)
	default: // triggered already
	}
}

// join counts d as a dispatcher of the CNO.
func (c *CNO) join(op string, d *Dispatcher) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed || !c.isMade():
		return invalidCNO(op)
	case c.ia != nil && d.ia != nil && c.ia != d.ia:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleCNO, "the CNO is another adapter's")
	}
	c.users++
	return nil
}

// part undoes a join; freed says that d is closed. d.cno is another CNO by now, so
// d sets this trigger no more, and is no hint for who takes it. The trigger stays set as long as the CNO
// has other dispatchers, whose events it may stand for too.
func (c *CNO) part(d *Dispatcher, freed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	if c.last == d {
		c.last = nil
	}
	for i := range c.calls {
		if c.calls[i].d == d {
			c.calls[i].d = nil
		}
	}
	if c.users == 0 {
		select {
		case <-c.trig:
		default:
		}
		if freed {
			close(c.lost)
			c.lost = make(chan struct{})
		}
	}
	c.show()
}

// Close frees the CNO, and waits until no agent runs. It returns
// INVALID_STATE/CNO_IN_USE while a dispatcher has the CNO or a goroutine waits for
// it, and INVALID_STATE when the CNO's own agent calls it, or has not returned for five
// seconds: call Close again when it has. Closing again does nothing. It answers to dat_cno_free.
func (c *CNO) Close() error {
	const op = "evd.CNO.Close"
	switch {
	case !c.isMade():
		return invalidCNO(op)
	case c.inUpcall():
		return &hw.Error{Op: op, Type: hw.InvalidState, Text: "called from the CNO's own agent"}
	}
	c.mu.Lock()
	if users, waiters := c.users, c.waiters; !c.closed && users+waiters > 0 {
		c.mu.Unlock()
		return hw.Errorf(op, hw.InvalidState, hw.StateCNOInUse, "%d dispatchers, %d waiters", users, waiters)
	}
	c.end()
	c.mu.Unlock()
	if !c.rest() {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the CNO's agent has not returned for %v: close again when it has", delivery.UpcallTime)
	}
	return nil
}

// OnExit sets what is called when an agent has panicked, or ended its goroutine. It is called before the
// CNO is triggered. A program can't make the argument.
func (c *CNO) OnExit(_ door.Key, f func()) { c.exited = f }

// Wiring returns the side of the CNO that its adapter uses to close it. A program
// can't make the argument.
func (c *CNO) Wiring(door.Key) delivery.Ending { return (*cnoEnding)(c) }

// cnoEnding is the CNO as its adapter sees it.
type cnoEnding CNO

func (c *cnoEnding) Abort()         { (*CNO)(c).abort() }
func (c *cnoEnding) InUpcall() bool { return (*CNO)(c).inUpcall() }

// abort closes the CNO: every Wait returns CNO_DEAD. It does not wait for agents.
func (c *CNO) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
}

// end closes the CNO, unless it is closed. The caller holds mu.
func (c *CNO) end() {
	if c.closed {
		return
	}
	c.closed = true
	close(c.dead)
	if c.fd != nil {
		c.fd.close()
	}
}

func (c *CNO) inUpcall() bool {
	g := c.goroutine.Load()
	return g != 0 && g == owner.Goroutine()
}

// isMade reports whether NewCNO has made the CNO.
func (c *CNO) isMade() bool { return c != nil && c.dead != nil }

func invalidCNO(op string) error {
	return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleCNO, Text: "the CNO is nil, zero or closed; NewCNO makes one"}
}

// String names the CNO.
func (c *CNO) String() string {
	if c == nil {
		return "CNO(nil)"
	}
	return fmt.Sprintf("CNO(%d)", c.number)
}

// LogValue is String, for log/slog.
func (c *CNO) LogValue() slog.Value { return slog.StringValue(c.String()) }
