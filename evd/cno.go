package evd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
	"godat/internal/owner"
)

// CNO is DAT's consumer notification object (DAT_CNO_HANDLE): one place to wait
// for many dispatchers. A dispatcher of [ModeQueue] that has a CNO, is enabled
// and has nobody in Wait triggers it whenever an event comes that is not silent.
//
// The trigger is one bit, and sticky: if nobody waits it stays until somebody
// takes it. Each wakes one waiter. Whoever took it dequeues from all dispatchers
// of the CNO until they are empty, not only from the one that Wait names, for
// others may have come behind it; then there is nothing that the next Wait could
// miss.
//
// Methods may be called from any goroutine.
type CNO struct {
	// Immutable.
	ia     any
	submit func(task func()) error
	task   func()           // run, made once
	dead   chan struct{}    // closed with the CNO
	trig   chan *Dispatcher // the trigger, with whose it is; sent to under mu alone
	fd     *descriptor      // nil: none

	goroutine atomic.Uintptr // that calls an agent now; 0: none
	tasks     sync.WaitGroup

	// What follows is guarded by mu, which is the last lock taken. Who takes the
	// trigger locks it after that and before looking at a dispatcher. So whoever
	// finds the CNO triggered, under mu, has put an event that will be seen.
	mu      sync.Mutex
	closed  bool
	users   int           // dispatchers
	waiters int           // in Wait
	lost    chan struct{} // closed and replaced when the last dispatcher is freed
	last    *Dispatcher   // of the last trigger
	agent   Agent         // nil: none, or it was called
	calls   []agentCall   // on their way
	running bool          // the task is
}

// CNOConfig configures a CNO.
type CNOConfig struct {
	// Agent is called at the first trigger; nil for none. See CNO.ModifyAgent.
	Agent Agent
	// Descriptor asks for a file descriptor that a foreign poll loop can watch;
	// see CNO.FD. Such a CNO has no agent.
	Descriptor bool
	// Submit runs a task on a pool; it does not block. An error, and nil, mean
	// a goroutine of its own. If the pool recovers a panic of an agent, agents that are
	// set later are called.
	Submit func(task func()) error
	// IA is the adapter that Query reports. A dispatcher of another one can't
	// have the CNO.
	IA any
}

// NewCNO makes a CNO that is not triggered. A descriptor together with an agent
// is INVALID_PARAMETER; where the system has none it is MODEL_NOT_SUPPORTED.
// It answers to dat_cno_create and dat_cno_fd_create.
func NewCNO(cfg CNOConfig) (*CNO, error) {
	const op = "evd.NewCNO"
	if cfg.Descriptor && cfg.Agent != nil {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "an agent and a descriptor")
	}
	c := &CNO{
		ia: cfg.IA, submit: cfg.Submit, agent: cfg.Agent,
		dead: make(chan struct{}), trig: make(chan *Dispatcher, 1), lost: make(chan struct{}),
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
// triggered the CNO: a hint, see [CNO]. It is nil when that dispatcher is not the
// CNO's any more, and when the last one was freed while Wait was waiting.
//
// A deadline that passed is QUEUE_EMPTY, as DAT has it, and a canceled context
// INTERRUPTED_CALL; neither takes a trigger. A CNO that the adapter's close ends
// meanwhile is INVALID_STATE/CNO_DEAD. Any number of goroutines may wait. It
// answers to dat_cno_wait.
func (c *CNO) Wait(ctx context.Context) (*Dispatcher, error) {
	const op = "evd.CNO.Wait"
	lost, err := c.enter(op)
	if err != nil {
		return nil, err
	}
	defer c.leave()
	if ctx == nil {
		return nil, &hw.Error{Op: op, Type: hw.InvalidParameter, Sub: hw.Arg2, Err: delivery.ErrNoContext}
	}
	select {
	case d := <-c.trig:
		return d, nil
	default:
	}
	select {
	case d := <-c.trig:
		return d, nil
	case <-lost:
		return nil, nil
	case <-c.dead:
		return nil, &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateCNODead}
	case <-ctx.Done():
	}
	select {
	case d := <-c.trig: // it came with the end of the time
		return d, nil
	default:
	}
	t := hw.InterruptedCall
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t = hw.QueueEmpty
	}
	return nil, &hw.Error{Op: op, Type: t, Err: ctx.Err()}
}

// Trigger takes the trigger, as Wait does, without waiting; QUEUE_EMPTY says that
// there is none. It is for after the descriptor became readable, and for agents.
// It answers to dat_cno_trigger.
func (c *CNO) Trigger() (*Dispatcher, error) {
	const op = "evd.CNO.Trigger"
	if _, err := c.enter(op); err != nil {
		return nil, err
	}
	defer c.leave()
	select {
	case d := <-c.trig:
		return d, nil
	default:
		return nil, &hw.Error{Op: op, Type: hw.QueueEmpty}
	}
}

// enter counts the caller as a waiter.
func (c *CNO) enter(op string) (lost chan struct{}, err error) {
	if c == nil {
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

// leave is the end of enter. By now the trigger was taken, or not.
func (c *CNO) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiters--
	c.show()
}

// show makes the descriptor readable while the CNO is triggered, and no longer.
// mu is held.
func (c *CNO) show() {
	if c.fd != nil && !c.closed {
		c.fd.set(len(c.trig) != 0)
	}
}

// trigger is the dispatchers' side. It does not block, and is called from posts.
func (c *CNO) trigger(d *Dispatcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || d.cno.Load() != c {
		return
	}
	select {
	case c.trig <- d:
		c.last = d
		c.show()
		c.callAgent(d)
	default: // it is triggered
	}
}

// join counts a dispatcher.
func (c *CNO) join(op string, d *Dispatcher) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return invalidCNO(op)
	case c.ia != nil && d.ia != nil && c.ia != d.ia:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleCNO, "the CNO is another adapter's")
	}
	c.users++
	return nil
}

// part takes a join back. d's cno is another one by now, so it triggers no more.
// What it may have in the trigger is forgotten, but not that there is one, while
// another dispatcher may be behind it.
func (c *CNO) part(d *Dispatcher, freed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	if c.last == d {
		c.last = nil
	}
	select {
	case hint := <-c.trig:
		if hint == d {
			hint = nil
		}
		if c.users > 0 {
			c.trig <- hint
		}
	default:
	}
	if c.users == 0 && freed {
		close(c.lost)
		c.lost = make(chan struct{})
	}
	c.show()
}

// Close frees the CNO. It is INVALID_STATE/CNO_IN_USE while a dispatcher has it
// or somebody waits, and INVALID_STATE from its own agent. It waits until no agent
// runs. Closing again does nothing. It answers to dat_cno_free.
func (c *CNO) Close() error {
	const op = "evd.CNO.Close"
	switch {
	case c == nil:
		return invalidCNO(op)
	case c.inUpcall():
		return &hw.Error{Op: op, Type: hw.InvalidState, Text: "called from the CNO's own agent"}
	}
	c.mu.Lock()
	if users, waiters := c.users, c.waiters; !c.closed && users+waiters > 0 {
		c.mu.Unlock()
		return hw.Errorf(op, hw.InvalidState, hw.StateCNOInUse, "%d dispatchers, %d waiters", users, waiters)
	}
	c.mu.Unlock()
	c.abort()
	c.tasks.Wait()
	return nil
}

// Wiring is for the adapter, which closes the CNO: a program can't make its argument.
func (c *CNO) Wiring(door.Key) delivery.Ending { return (*cnoEnding)(c) }

// cnoEnding is the CNO for its adapter.
type cnoEnding CNO

// Abort closes the CNO for an adapter that closes abruptly. It never refuses: every
// Wait returns with CNO_DEAD. It does not wait for agents; Close does.
func (c *cnoEnding) Abort() { (*CNO)(c).abort() }

// InUpcall reports whether the calling goroutine is inside the CNO's agent.
func (c *cnoEnding) InUpcall() bool { return (*CNO)(c).inUpcall() }

func (c *CNO) abort() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.dead)
		if c.fd != nil {
			c.fd.close()
		}
	}
	c.mu.Unlock()
}

func (c *CNO) inUpcall() bool {
	g := c.goroutine.Load()
	return g != 0 && g == owner.Goroutine()
}

func invalidCNO(op string) error {
	return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleCNO}
}

// String names the CNO.
func (c *CNO) String() string { return fmt.Sprintf("CNO(%p)", c) }
