package evd

import (
	"godat/hw"
	"godat/internal/owner"
)

// Agent is DAT_OS_WAIT_PROXY_AGENT: what a CNO calls when it is triggered, with
// the dispatcher that did it, a hint. It runs in the adapter's pool of upcalls,
// and never two of one CNO at once. A panic in it is that of a goroutine, and ends
// the process.
type Agent func(d *Dispatcher)

type agentCall struct {
	agent Agent
	d     *Dispatcher
}

// ModifyAgent sets the agent, or with nil takes it away. The agent is called
// once, when the CNO becomes triggered, and is then set no more: it is for the
// agent to set it again. If the CNO is triggered already it is called at once, so
// that nothing is missed in between. The call does not take the trigger, which is
// there for waiters as well:
//
//	var agent evd.Agent
//	agent = func(*evd.Dispatcher) {
//		cno.Trigger() // what comes from now on triggers anew
//		…             // dequeue from all dispatchers until they are empty
//		cno.ModifyAgent(agent)
//	}
//
// On a CNO with a descriptor it is INVALID_STATE. It answers to
// dat_cno_modify_agent.
func (c *CNO) ModifyAgent(agent Agent) error {
	const op = "evd.CNO.ModifyAgent"
	if c == nil {
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

// callAgent starts the call of the agent, if there is one. mu is held.
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
	c.tasks.Add(1)
	c.start()
}

// start hands the task to the pool, or to a goroutine of its own if the pool has no
// place.
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
	for {
		call, ok := c.nextCall()
		if !ok {
			break
		}
		call.agent(call.d)
	}
	ended = true
}

// endTask ends the task. When an agent ended the goroutine, by runtime.Goexit or by a
// panic that the program's own pool recovers, another task calls those that follow.
func (c *CNO) endTask(ended bool) {
	c.goroutine.Store(0)
	if ended {
		c.tasks.Done()
		return
	}
	c.start()
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

// ProxyType is DAT_PROXY_TYPE: whom a CNO tells beside its waiters.
type ProxyType uint32

// The proxy types.
const (
	ProxyNone  ProxyType = 0
	ProxyAgent ProxyType = 1
	ProxyFD    ProxyType = 2
)

// CNOField is a set of parameters, DAT_CNO_PARAM_MASK.
type CNOField uint32

// The parameters. DAT's header gives the last two numbers that no mask could be
// made of, 3 and 4; these are what they were meant to be.
const (
	CNOFieldIA        CNOField = 0x1
	CNOFieldProxyType CNOField = 0x2
	CNOFieldProxy     CNOField = 0x4
	CNOFieldAll       CNOField = 0x7
)

// CNOParam is DAT_CNO_PARAM. What was not asked for is zero.
type CNOParam struct {
	IA        any // the adapter it was made on, a *runtime.IA; nil for none
	ProxyType ProxyType
	Agent     Agent   // the agent that is set
	FD        uintptr // the descriptor
}

// Query reports the parameters that mask names. An unknown one is
// INVALID_PARAMETER. It answers to dat_cno_query.
func (c *CNO) Query(mask CNOField) (CNOParam, error) {
	const op = "evd.CNO.Query"
	if c == nil {
		return CNOParam{}, invalidCNO(op)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return CNOParam{}, invalidCNO(op)
	case mask&^CNOFieldAll != 0:
		return CNOParam{}, hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "mask %#x", uint32(mask))
	}
	var p CNOParam
	if mask&CNOFieldIA != 0 {
		p.IA = c.ia
	}
	kind := ProxyNone
	switch {
	case c.fd != nil:
		kind = ProxyFD
	case c.agent != nil:
		kind = ProxyAgent
	}
	if mask&CNOFieldProxyType != 0 {
		p.ProxyType = kind
	}
	if mask&CNOFieldProxy != 0 {
		p.Agent = c.agent
		if kind == ProxyFD {
			p.FD = c.fd.number()
		}
	}
	return p, nil
}

// FD is the descriptor of a CNO that was made with one: readable while the CNO
// is triggered. A poll loop watches it, never reads or closes it, and calls
// Trigger when it is readable. It is valid until Close. On a CNO without one it
// is INVALID_STATE.
func (c *CNO) FD() (uintptr, error) {
	const op = "evd.CNO.FD"
	p, err := c.Query(CNOFieldProxyType | CNOFieldProxy)
	switch {
	case err != nil:
		return 0, invalidCNO(op)
	case p.ProxyType != ProxyFD:
		return 0, &hw.Error{Op: op, Type: hw.InvalidState, Text: "the CNO was made without a descriptor"}
	}
	return p.FD, nil
}
