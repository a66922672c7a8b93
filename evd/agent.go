package evd

import (
	"time"

	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/owner"
)

// Agent is the function that a CNO calls when it is triggered. d is the dispatcher
// that triggered it, a hint as in [CNO.Wait], and nil when d has left the CNO
// since. The agent runs in the adapter's pool of upcalls (CNOConfig.Submit), and
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
	c.goroutine.Store(0)
	if ended {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.tasks--; c.tasks == 0 && c.rested != nil {
			close(c.rested)
			c.rested = nil
		}
		return
	}
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

func (c *CNO) nextCall() (call agentCall, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.calls) == 0 {
		c.calls, c.running = nil, false
		return agentCall{}, false
	}
	call = c.calls[0]
	c.calls = c.calls[1:]
	return call, true
}

// ProxyType is DAT_PROXY_TYPE: what a CNO notifies beside its waiters.
type ProxyType uint32

// The proxy types.
const (
	ProxyNone  ProxyType = 0
	ProxyAgent ProxyType = 1
	ProxyFD    ProxyType = 2
)

// CNOParam describes a CNO: DAT_CNO_PARAM.
type CNOParam struct {
	IA        any // the adapter it was made on, a *runtime.IA; nil for none
	ProxyType ProxyType
	Agent     Agent   // the agent that is set
	FD        uintptr // the descriptor
}

// Query describes the CNO. It answers to dat_cno_query.
func (c *CNO) Query() (CNOParam, error) {
	const op = "evd.CNO.Query"
	if !c.isMade() {
		return CNOParam{}, invalidCNO(op)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return CNOParam{}, invalidCNO(op)
	}
	p := CNOParam{IA: c.ia, Agent: c.agent}
	switch {
	case c.fd != nil:
		p.ProxyType, p.FD = ProxyFD, c.fd.number()
	case c.agent != nil:
		p.ProxyType = ProxyAgent
	}
	return p, nil
}

// FD returns the file descriptor of a CNO that was made with CNOConfig.Descriptor.
// The descriptor is readable while the CNO is triggered. A poll loop watches it,
// never reads or closes it, and calls Trigger when it is readable. It is valid
// until Close. On a CNO without one FD returns INVALID_STATE.
func (c *CNO) FD() (uintptr, error) {
	const op = "evd.CNO.FD"
	p, err := c.Query()
	switch {
	case err != nil:
		return 0, invalidCNO(op)
	case p.ProxyType != ProxyFD:
		return 0, &hw.Error{Op: op, Type: hw.InvalidState, Text: "the CNO was made without a descriptor"}
	}
	return p.FD, nil
}
