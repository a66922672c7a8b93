package ep

import (
	"godat/hw"
	"godat/internal/yield"
)

// control is a call that changes the state. The step executes it and closes
// done; the caller waits outside the token.
type control struct {
	op   string
	in   input
	done chan struct{}
	err  error

	mod     *modification    // inModify
	connect hw.ConnectConfig // inConnect
	cr      *CR              // inAccept, inAcceptOwn
	private []byte           // the same
	used    bool             // the same: the request has been answered, well or not
}

// do has the step execute c. The caller holds e.ctl.
func (e *Endpoint) do(c *control) error {
	c.done = make(chan struct{})
	e.pending = c
	e.box.tell(tellControl)
	<-c.done
	return c.err
}

// control executes the pending control call.
func (e *Endpoint) control() {
	c := e.pending
	e.pending = nil
	yield.Point() // a post that takes a ticket here is published at any time
	switch c.in {
	case inConnect, inAccept, inAcceptOwn:
		c.err = e.begin(c)
	case inReserve, inRelease:
		c.err = e.move(c)
	case inDisown:
		c.err = e.disowned(c)
	case inModify:
		c.err = e.modify(c)
	case inAbrupt, inGraceful:
		c.err = e.disconnect(c)
	case inReset:
		c.err = e.reset(c)
	case inClose:
		c.err = e.close(c)
	default: // the other inputs are not calls
		panic("ep: no such control call")
	}
	close(c.done)
}

// begin starts to connect or to accept. If the provider can't even start,
// nothing has happened.
func (e *Endpoint) begin(c *control) error {
	if transitions[e.State()][c.in] < firstEdge {
		return stateError(c.op, e.State())
	}
	switch {
	case e.box.qp == nil:
		return &hw.Error{Op: c.op, Type: hw.InvalidState, Sub: hw.StateEPPZ, Text: "the endpoint has no protection zone yet"}
	case e.conn == nil:
		return &hw.Error{Op: c.op, Type: hw.InvalidState, Sub: hw.StateEPEVDConnect}
	}
	if !e.conn.Main().Reserve(2) { // the outcome and the end
		return e.box.fullQueue(c.op, e.conn.Main())
	}
	e.connRoom = 2
	e.box.requests.detour.Store(true)
	e.box.recvs.detour.Store(true)
	e.startServing()
	var err error
	if c.in == inConnect {
		err = e.box.qp.Connect(c.connect)
	} else {
		// The peer may know before Accept has returned, and ask again.
		c.used = true
		c.cr.at.answered()
		err = c.cr.request.Accept(e.box.qp, c.private)
	}
	if err != nil {
		e.releaseConnRoom()
		e.box.requests.endDetour()
		e.box.recvs.endDetour()
		return wrap(c.op, err)
	}
	if c.in == inConnect {
		e.adapter.counters.connects.Add(1)
		e.setTarget(c.connect.Addr, c.connect.Qual)
	} else {
		e.setAddresses(c.cr.request.Local(), c.cr.request.Remote())
	}
	e.become(c.in)
	e.setAlarm(c.connect.Timeout)
	return nil
}

func (e *Endpoint) disconnect(c *control) error {
	switch next := transitions[e.State()][c.in]; next {
	case refuse:
		return stateError(c.op, e.State())
	case ignore:
	case to(DisconnectPending):
		e.become(c.in)
		e.setAlarm(e.attr.DrainTimeout)
		e.box.qp.Drain()
	default:
		e.leave(c.in, disconnected, nil, nil)
	}
	return nil
}

// reset makes the endpoint as new. In DISCONNECTED both queues have ended: Reset
// waited for that.
func (e *Endpoint) reset(c *control) error {
	if next := transitions[e.State()][inReset]; next == refuse {
		return stateError(c.op, e.State())
	} else if next == ignore {
		return nil
	}
	if err := e.box.qp.Reset(); err != nil {
		return wrap(c.op, err)
	}
	e.forget()
	e.become(inReset)
	return nil
}

// forget clears what belongs to one connection.
func (e *Endpoint) forget() {
	e.box.requests.ended, e.box.recvs.ended = false, false
	e.broke, e.box.unsignaled = false, 0
	e.info, e.refusal, e.private = hw.ConnInfo{}, refusal{}, nil
	e.why = hw.ReasonNone
	e.cause.Store(nil)
	e.setTarget("", 0)
	e.setAddresses(nil, nil)
	e.agree(0, 0)
	e.over = make(chan struct{})
}

// close makes the handle dead and ends what is still going on.
func (e *Endpoint) close(c *control) error {
	if e.become(c.in) < firstEdge {
		return stateError(c.op, e.State())
	}
	e.setAlarm(0)
	e.box.requests.endDetour()
	e.box.recvs.endDetour()
	e.breakQP(true)
	return nil
}

// CloseFlags say how a connection is given up: DAT_CLOSE_FLAGS, with its numbers.
type CloseFlags uint8

// The ways to give up a connection.
const (
	Abrupt   CloseFlags = 0 // outstanding operations are flushed
	Graceful CloseFlags = 1 // requests posted so far run to completion first
)

// Disconnect ends the connection, or gives up an attempt at one. The
// DISCONNECTED event follows the last completion. In DISCONNECTED it does
// nothing; a graceful one while one is under way neither.
// It answers to dat_ep_disconnect.
func (e *Endpoint) Disconnect(how CloseFlags) error {
	const op = "ep.Disconnect"
	if err := e.alive(op); err != nil {
		return err
	}
	in := inAbrupt
	switch how {
	case Abrupt:
	case Graceful:
		in = inGraceful
	default:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "close flags %d", how)
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	return e.do(&control{op: op, in: in})
}

// Reset makes a disconnected endpoint UNCONNECTED again, so that it can be
// connected once more. It waits until everything posted has been flushed. In
// UNCONNECTED it does nothing, and keeps the receives posted.
// It answers to dat_ep_reset.
func (e *Endpoint) Reset() error {
	const op = "ep.Reset"
	if err := e.alive(op); err != nil {
		return err
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	if e.State() == Disconnected {
		<-e.over
		e.settle()
	}
	return e.do(&control{op: op, in: inReset})
}

// Close frees the endpoint. A connection or an attempt at one is given up;
// everything outstanding completes as flushed before Close returns, and no
// connection event follows. Posts fail with INVALID_HANDLE from then on. Closing
// it again does nothing. It fails, with no effect, while a service point owns
// the endpoint.
// It answers to dat_ep_free.
func (e *Endpoint) Close() error {
	const op = "ep.Close"
	if e == nil {
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleEP}
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	if e.freed {
		return nil
	}
	if e.State() != closed {
		if err := e.do(&control{op: op, in: inClose}); err != nil {
			return err
		}
	}
	return e.free(op)
}

// free gives back what a closed endpoint has. The caller holds e.ctl.
func (e *Endpoint) free(op string) error {
	<-e.over
	if e.served != nil {
		close(e.quit)
		<-e.served
		e.served = nil
	}
	p := e.parts()
	if err := e.giveBack(&p, &parts{}); err != nil {
		return wrap(op, err)
	}
	e.settle()
	e.freed = true
	e.adapter.remove(e)
	return nil
}

// alive refuses nil and closed endpoints.
func (e *Endpoint) alive(op string) error {
	if e == nil {
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleEP, Text: "the endpoint is nil"}
	}
	if e.State() == closed {
		return stateError(op, closed)
	}
	return nil
}

// checkPrivate refuses more private data than the device carries.
func (a *Adapter) checkPrivate(op string, private []byte) error {
	if len(private) > a.attr.MaxPrivate {
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%d bytes of private data; this device carries %d", len(private), a.attr.MaxPrivate)
	}
	return nil
}
