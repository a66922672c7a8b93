package ep

import (
	"net"
	"sync"

	"godat/evd"
	"godat/hw"
)

// CR is a connection request that waits for an answer. It answers to
// DAT_CR_HANDLE. After Accept or Reject succeeded it is dead: every call on it
// fails with INVALID_HANDLE.
type CR struct {
	psp       *PSP
	request   hw.Request
	private   []byte
	truncated bool

	mu   sync.Mutex
	dead bool
}

// RequestOf is the connection request that an event tells of, or nil.
func RequestOf(ev evd.Event) *CR {
	cr, _ := ev.Data.(*CR)
	return cr
}

// CRParam describes a connection request: DAT_CR_PARAM.
type CRParam struct {
	Local, Remote net.Addr
	Qual          uint64 // the service point's
	Private       []byte // the peer's; the callee's to keep
	Truncated     bool   // the transport could not carry all of it
}

// Query describes the request. It answers to dat_cr_query.
func (c *CR) Query() (CRParam, error) {
	if err := c.lock("ep.CR.Query"); err != nil {
		return CRParam{}, err
	}
	defer c.mu.Unlock()
	return CRParam{
		Local: c.request.Local(), Remote: c.request.Remote(), Qual: c.request.Qual(),
		Private: c.private, Truncated: c.truncated,
	}, nil
}

// Accept answers the request with an UNCONNECTED endpoint. It returns at once;
// ESTABLISHED or ACCEPT_COMPLETION_ERROR follows on the endpoint's connection
// dispatcher. The peer sees private with its own ESTABLISHED. Receives for the
// peer's first messages must be posted before. When the endpoint can't be used
// the request stays valid.
// It answers to dat_cr_accept.
func (c *CR) Accept(e *Endpoint, private []byte) error {
	const op = "ep.CR.Accept"
	if err := c.lock(op); err != nil {
		return err
	}
	defer c.mu.Unlock()
	if err := e.alive(op); err != nil {
		return err
	}
	if e.adapter != c.psp.adapter {
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleEP, Text: "the endpoint belongs to another adapter"}
	}
	if e.conn == nil {
		return &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEPEVDConnect}
	}
	if err := e.adapter.checkPrivate(op, private); err != nil {
		return err
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	call := control{op: op, in: inAccept, request: c.request, private: private}
	err := e.do(&call)
	if call.used {
		c.answered()
	}
	return err
}

// Reject refuses the request; the peer gets PEER_REJECTED with private.
// It answers to dat_cr_reject.
func (c *CR) Reject(private []byte) error {
	const op = "ep.CR.Reject"
	if err := c.lock(op); err != nil {
		return err
	}
	defer c.mu.Unlock()
	if err := c.psp.adapter.checkPrivate(op, private); err != nil {
		return err
	}
	c.answered()
	return wrap(op, c.request.Reject(private))
}

// lock locks a request that is alive.
func (c *CR) lock(op string) error {
	if c == nil {
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleCR}
	}
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleCR, Text: "the request has been answered"}
	}
	return nil
}

// answered makes the request dead; c.mu is held.
func (c *CR) answered() {
	c.dead = true
	c.psp.answered()
	a := c.psp.adapter
	a.mu.Lock()
	delete(a.crs, c)
	a.mu.Unlock()
}

func (a *Adapter) addCR(c *CR) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.crs[c] = struct{}{}
}
