package evd

import (
	"time"

	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
	"godat/internal/owner"
)

// Agent is the function that a CNO calls when it is triggered. d is the dispatcher
// that triggered it, a hint as in [CNO.Wait], and nil when d has left the CNO
// since. The agent runs in the adapter's pool of upcalls, and
// calls of one CNO's agents never overlap. A panic in an agent ends the process
// unless the pool recovers it. It answers to DAT_OS_WAIT_PROXY_AGENT.
type Agent func(d *Dispatcher)

type agentCall struct {
	agent Agent
	d     *Dispatcher
}

// ModifyAgent sets the agent; nil removes it. The CNO calls the agent once, when it
// becomes triggered, and removes it before the call: an agent that wants another
// call sets itself again. If the CNO is triggered already, it calls the agent at
// once, so that no trigger is missed between two settings. The call does not take
// the trigger, which is there for waiters as well:
//
//	var agent evd.Agent
//	agent = func(*evd.Dispatcher) {
//		cno.Trigger() // later events set the trigger again
//		…             // dequeue from all dispatchers until they are empty
//		cno.ModifyAgent(agent)
//	}
//
// On a CNO with a descriptor it returns INVALID_STATE. It answers to
// dat_cno_modify_agent.
func (c *CNO) ModifyAgent(agent Agent) error {
	const op = "evd.CNO.ModifyAgent"
	if !c.isMade() {
		return invalidCNO(op)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return invalidCNO(op)
	case c.fd != nil:
		return &hw.Error{Op: op, Type: hw.InvalidState, Text: "the CNO has a descriptor"}
	}
	c.agent = agent
	if len(c.trig) != 0 {
		c.callAgent(c.last)
	}
	return nil
}

// callAgent enqueues a call of the agent, if one is set, and starts the task unless
// it runs already. The caller holds mu.
func (c *CNO) callAgent(d *Dispatcher) {
	if c.agent == nil {
		return
	}
	c.calls = append(c.calls, agentCall{c.agent, d})
	c.agent = nil
	if c.running {
		return
	}
	c.running = true
	c.tasks++
	c.start()
}

// start submits the task to the pool, or starts a goroutine for it if the pool
// refuses it.
func (c *CNO) start() {
	if c.submit == nil || c.submit(c.task) != nil {
		go c.run()
	}
}

// run is the task that calls agents, one after the other.
func (c *CNO) run() {
	c.goroutine.Store(owner.Goroutine())
	ended := false
	defer func() { c.endTask(ended) }()
	for call, ok := c.nextCall(); ok; call, ok = c.nextCall() {
		c.callOne(call)
	}
	ended = true
}

// callOne calls an agent. One that panics, or ends its goroutine, is told of.
func (c *CNO) callOne(call agentCall) {
	returned := false
	defer func() {
		if !returned && c.exited != nil {
			c.exited()
		}
	}()
	call.agent(call.d)
	returned = true
}

// endTask ends the task. If an agent ended the goroutine, by runtime.Goexit or by a
// panic that the program's own pool recovers, endTask starts another task for the
// calls that are still queued.
func (c *CNO) endTask(ended bool) {
	if ended {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.tasks--; c.tasks == 0 && c.rested != nil {
			close(c.rested)
			c.rested = nil
		}
		return
	}
	c.goroutine.Store(0)
	c.start()
}

// rest waits until no task is left, and reports whether none is. The CNO is closed, so none begins.
func (c *CNO) rest() bool {
	c.mu.Lock()
	if c.tasks == 0 {
		c.mu.Unlock()
		return true
	}
	if c.rested == nil {
		c.rested = make(chan struct{})
	}
	rested := c.rested
	c.mu.Unlock()
	late := time.NewTimer(delivery.UpcallTime)
	defer late.Stop()
	select {
	case <-rested:
		return true
	case <-late.C:
		return false
	}
}

// nextCall returns the next call for the task, or says that the task has nothing more to call. Another
// task may run from then on, so nextCall forgets the goroutine before.
func (c *CNO) nextCall() (call agentCall, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.calls) == 0 {
		c.goroutine.Store(0)
		c.calls, c.running = nil, false
		return agentCall{}, false
	}
	call = c.calls[0]
	c.calls = c.calls[1:]
	return call, true
}

// Query says what the CNO was made with, and the agent that is set. It answers to dat_cno_query.
func (c *CNO) Query() (CNOConfig, error) {
	if err := c.alive("evd.CNO.Query"); err != nil {
		return CNOConfig{}, err
	}
	defer c.mu.Unlock()
	return CNOConfig{Agent: c.agent, Descriptor: c.fd != nil}, nil
}

// Home returns the adapter; nil for none. Package runtime calls it.
func (c *CNO) Home(door.Key) (ia any, err error) {
	if err := c.alive("runtime.IAOf"); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	return c.ia, nil
}

// alive refuses a CNO that is nil or closed, and else takes mu.
func (c *CNO) alive(op string) error {
	if !c.isMade() {
		return invalidCNO(op)
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return invalidCNO(op)
	}
	return nil
}

// FD returns the file descriptor of a CNO that was made with CNOConfig.Descriptor.
// The descriptor is readable while the CNO is triggered. A poll loop watches it,
// never reads or closes it, and calls Trigger when it is readable. It is valid
// until Close. On a CNO without one FD returns INVALID_STATE.
func (c *CNO) FD() (uintptr, error) {
	const op = "evd.CNO.FD"
	if err := c.alive(op); err != nil {
		return 0, err
	}
	defer c.mu.Unlock()
	if c.fd == nil {
		return 0, &hw.Error{Op: op, Type: hw.InvalidState, Text: "the CNO was made without a descriptor"}
	}
	return c.fd.number(), nil
}
