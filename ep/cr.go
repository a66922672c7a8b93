package ep

import (
	"cmp"
	"net"
	"sync"
	"sync/atomic"

	"godat/ep/internal/life"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
	"godat/internal/door"
)

// CR is a connection request that waits for an answer. It answers to DAT_CR_HANDLE.
// Once Accept, Reject or Handoff has succeeded the request is dead: every call on
// it fails with INVALID_HANDLE. The library rejects a request, which is then dead
// too, when the adapter closes, and when the dispatcher that holds its event is
// closed before RequestOf took the request out. Its methods may be called from any
// goroutine.
//
// [RequestOf] takes one from its event. Exactly one of Accept, Reject and Handoff answers it.
type CR struct {
	// Immutable once it is announced.
	at        *point
	number    uint64
	own       *Endpoint // the endpoint that came with the request, or nil
	request   hw.Request
	qual      uint64
	local     address // the provider's request is not asked for them while it is being answered
	remote    address
	private   []byte
	truncated bool
	event     delivery.AsyncNode

	taken atomic.Bool // the program has called RequestOf

	// answering is held by a call that answers the request, while functions that get events may run: calls that
	// only look at the request do not take it.
	answering sync.Mutex
	dead      atomic.Bool // written under answering
}

// RequestOf returns the connection request that an event announces, or nil for
// another event. From then on the request outlives its dispatcher, and the program
// must answer it.
func RequestOf(ev event.Event) *CR {
	cr, _ := ev.Data.(*CR)
	if cr != nil {
		cr.taken.Store(true)
	}
	return cr
}

// CRParam describes a connection request: DAT_CR_PARAM.
type CRParam struct {
	Local, Remote net.Addr
	RemoteQual    uint64
	Qual          uint64 // the service point's
	Private       []byte // the peer's private data; the caller may keep it
	Truncated     bool   // the transport could not carry all of the private data
	// Endpoint is the endpoint that came with the request, and that Accept(nil, …)
	// connects: that of a reserved service point, or one that a service point made
	// for this request. nil if the program supplies one.
	Endpoint *Endpoint
}

// Query describes the request. It answers to dat_cr_query.
func (c *CR) Query() (CRParam, error) {
	if err := c.alive("ep.CR.Query"); err != nil {
		return CRParam{}, err
	}
	return CRParam{
		Local: c.local.addr, Remote: c.remote.addr, RemoteQual: c.remote.qual, Qual: c.qual,
		Private: c.private, Truncated: c.truncated, Endpoint: c.own,
	}, nil
}

// Home returns the adapter. Package runtime calls it.
func (c *CR) Home(door.Key) (ia any, err error) {
	if err := c.alive("runtime.IAOf"); err != nil {
		return nil, err
	}
	return c.at.adapter.cfg.IA, nil
}

// Accept answers the request with e, which must be UNCONNECTED. If an endpoint came
// with the request (CRParam.Endpoint), Accept connects that one: e is nil or names
// it, and any other endpoint is INVALID_PARAMETER. Accept returns
// at once; ESTABLISHED or ACCEPT_COMPLETION_ERROR follows on the endpoint's
// connection dispatcher. The peer sees private with its own ESTABLISHED. Receives
// for the peer's first messages must be posted before. If the endpoint can't be
// used the request stays valid.
// It answers to dat_cr_accept.
func (c *CR) Accept(e *Endpoint, private []byte) error {
	const op = "ep.CR.Accept"
	if err := c.lock(op); err != nil {
		return err
	}
	defer c.answering.Unlock()
	asked := false
	call := control{op: op, in: life.InAccept, accept: &acceptance{c.request, private, func() {
		asked = true
		c.at.answered(&c.at.counted.accepted)
	}}}
	if c.own != nil && (e == nil || e == c.own) {
		e, call.in = c.own, life.InAcceptOwn
	}
	if err := cmp.Or(c.mayAccept(op, e, call.in), c.at.adapter.checkPrivate(op, private)); err != nil {
		return err
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	err := e.ctl.do(&call)
	if !asked {
		return err
	}
	c.at.adapter.counters.accepted.whole.Add(1)
	c.dead.Store(true)
	if err != nil && c.own != nil {
		_ = e.disown(op)
	}
	c.unlist()
	return err
}

// mayAccept checks the endpoint that is to accept.
func (c *CR) mayAccept(op string, e *Endpoint, in life.Input) error {
	if err := alive(op, e); err != nil {
		return err
	}
	switch s := e.at(); {
	case e.adapter != &c.at.adapter.endpointRegistry:
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleEP, Text: "the endpoint belongs to another adapter"}
	case !s.Moves(in):
		return s.Refusal(op)
	case c.own != nil && c.own != e:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "the request came with an endpoint")
	}
	return nil
}

// Reject refuses the request; the peer gets PEER_REJECTED with private. An endpoint
// that came with the request becomes UNCONNECTED, or is freed if a service point
// made it for the request.
// It answers to dat_cr_reject.
func (c *CR) Reject(private []byte) error {
	const op = "ep.CR.Reject"
	if err := c.lock(op); err != nil {
		return err
	}
	defer c.answering.Unlock()
	if err := c.at.adapter.checkPrivate(op, private); err != nil {
		return err
	}
	return c.reject(op, private)
}

// reject is Reject for a request that is alive. The caller holds c.answering.
func (c *CR) reject(op string, private []byte) error {
	c.dead.Store(true)
	c.at.answered(&c.at.counted.rejected)
	c.at.adapter.counters.rejected.whole.Add(1)
	err := c.request.Reject(private)
	c.withdraw(op)
	return wrap(op, err)
}

// drop declines the request if the program has not taken it from its event. The dispatcher's
// close calls it.
func (c *CR) drop() {
	if !c.taken.Load() {
		c.decline()
	}
}

// decline rejects the request unless the program has answered it. If the program is
// answering it, decline waits until that is done.
func (c *CR) decline() {
	const op = "ep.CR.Reject"
	if c.lock(op) != nil {
		return
	}
	defer c.answering.Unlock()
	_ = c.reject(op, c.at.refusal) // an error says that the peer has gone
}

// Handoff hands the request to the service point of the same adapter that listens
// on qual, which announces it as a new request; this one is dead. An endpoint that
// came with this one is treated as by Reject. Without such a service point Handoff
// fails with INVALID_PARAMETER, and if that one has no room with
// INSUFFICIENT_RESOURCES; the request then stays valid.
// It answers to dat_cr_handoff.
func (c *CR) Handoff(qual uint64) error {
	const op = "ep.CR.Handoff"
	if err := c.lock(op); err != nil {
		return err
	}
	defer c.answering.Unlock()
	to := c.at.adapter.at(qual)
	if to == nil {
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "no service point of this adapter listens on %d", qual)
	}
	if err := to.admit(c.request, qual); err != nil {
		return wrap(op, err)
	}
	c.dead.Store(true)
	c.at.answered(&c.at.counted.handedOff)
	c.withdraw(op)
	return nil
}

// alive returns the error for a request that is nil or dead.
func (c *CR) alive(op string) error {
	switch {
	case c == nil || c.at == nil:
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleCR, Text: "no request: RequestOf has one for each CONNECTION_REQUEST event, and nil for others"}
	case c.dead.Load():
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleCR, Text: "the request has been answered, as each is once, by Accept, Reject or Handoff"}
	}
	return nil
}

// lock waits until no other call answers the request, and lets its caller do so. It returns the error for a request
// that is nil or dead.
func (c *CR) lock(op string) error {
	if c == nil {
		return c.alive(op)
	}
	c.answering.Lock()
	err := c.alive(op)
	if err != nil {
		c.answering.Unlock()
	}
	return err
}

// announce delivers the event of the request, which brings its own place in the dispatcher: so
// strangers who ask for connections take none from endpoints. The service point's close waits
// for it: the dispatcher can't be closed before it knows the request.
func (c *CR) announce() {
	c.at.adapter.counters.requests.whole.Add(1)
	c.event.Event = event.Event{Number: event.ConnectionRequest, Source: c.at.self, Data: c}
	c.event.Drop = c.drop
	wiring(c.at.to).PutRequest(&c.event)
	c.at.taking.Done()
}

// withdraw separates an answered request from the endpoint that came with it, and then from the
// adapter, whose close must find that endpoint free when it no longer sees the request. The
// caller holds c.answering.
func (c *CR) withdraw(op string) {
	if c.own != nil {
		c.own.ctl.Lock()
		_ = c.own.disown(op) // it fails if the provider failed meanwhile: the endpoint is DISCONNECTED
		c.own.ctl.Unlock()
	}
	c.unlist()
}

// unlist removes the request from its dispatcher and its adapter.
func (c *CR) unlist() {
	wiring(c.at.to).ForgetRequest(&c.event)
	c.at.adapter.crs.remove(c)
}
