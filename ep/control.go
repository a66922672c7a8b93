package ep

import (
	"sync"

	"godat/hw"
)

// control is a call that changes the state. The token's holder executes it in its
// step and closes done; the caller waits for that without the token.
type control struct {
	op   string
	in   input
	done chan struct{}
	err  error

	mod     *modification    // inModify
	connect hw.ConnectConfig // inConnect
	peer    hw.PairAddr      // inPair; of inPairAddr the result
	cr      *CR              // inAccept, inAcceptOwn
	private []byte           // inAccept, inAcceptOwn
	used    bool             // inAccept, inAcceptOwn: the provider was asked to accept, whether it succeeded or not
}

// controls are the calls that change an endpoint's state, one at a time. Such a
// call holds the lock from beginning to end.
type controls struct {
	e *Endpoint // immutable
	sync.Mutex
	pending *control // under the lock; read by the machine
	over    latch    // the machine opens it when both queues have ended, and shuts it when it resets

	// Under the lock.
	freed    bool
	owed     []owed
	replaced []modification // whose old parts are not given back yet; one that failed stands here the other way round
}

func (ctl *controls) init(e *Endpoint) { ctl.e = e }

// do passes c to the token's holder and waits until it is executed. The caller
// holds e.ctl.
func (ctl *controls) do(c *control) error {
	c.done = make(chan struct{})
	ctl.pending = c
	ctl.e.box.tell(tellControl)
	<-c.done
	return c.err
}

// change executes a control call that does nothing but move the state by in.
func (ctl *controls) change(op string, in input) error {
	ctl.Lock()
	defer ctl.Unlock()
	return ctl.do(&control{op: op, in: in})
}

// disownEndpoint separates the endpoint from the request that it came with. An
// endpoint that was made for the request is freed. The caller holds the lock.
func (ctl *controls) disownEndpoint(op string) error {
	if err := ctl.do(&control{op: op, in: inDisown}); err != nil {
		return err
	}
	if ctl.e.State() != closed {
		return nil
	}
	return ctl.free(op)
}

// CloseFlags say how a program gives up a connection: DAT_CLOSE_FLAGS, with its
// numbers.
type CloseFlags uint8

// The ways to give up a connection.
const (
	Abrupt   CloseFlags = 0 // outstanding operations are flushed
	Graceful CloseFlags = 1 // requests posted before run to completion first
)

// Disconnect ends the connection, or gives up an attempt at one. The DISCONNECTED
// event follows the last completion. It does nothing in DISCONNECTED, or if how is
// Graceful and a graceful disconnect is under way.
// It answers to dat_ep_disconnect.
func (e *Endpoint) Disconnect(how CloseFlags) error {
	const op = "ep.Disconnect"
	if err := alive(op, e); err != nil {
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
	return e.ctl.change(op, in)
}

// Reset makes a disconnected endpoint UNCONNECTED again, so that it can connect
// once more. It waits until everything posted has been flushed. In UNCONNECTED it
// does nothing, and the receives stay posted.
// It answers to dat_ep_reset.
func (e *Endpoint) Reset() error {
	const op = "ep.Reset"
	if err := alive(op, e); err != nil {
		return err
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	if e.State() == Disconnected {
		e.ctl.over.wait()
		e.ctl.releaseOwed()
	}
	return e.ctl.do(&control{op: op, in: inReset})
}

// Close frees the endpoint. It gives up the connection or an attempt at one;
// everything outstanding completes as flushed before Close returns, and no
// connection event follows. Posts fail with INVALID_HANDLE from then on. Closing a
// closed endpoint does nothing. While a service point owns the endpoint Close fails
// and has no effect.
// It answers to dat_ep_free.
func (e *Endpoint) Close() error {
	const op = "ep.Close"
	if e == nil {
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleEP}
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	if e.ctl.freed {
		return nil
	}
	if e.State() != closed {
		if err := e.ctl.do(&control{op: op, in: inClose}); err != nil {
			return err
		}
	}
	return e.ctl.free(op)
}

// free gives back what a closed endpoint has taken of others. The caller holds
// e.ctl.
func (ctl *controls) free(op string) error {
	ctl.over.wait()
	if err := ctl.closeReplaced(); err != nil {
		return wrap(op, err)
	}
	p := ctl.parts()
	if err := p.giveBack(ctl.e, &parts{}); err != nil {
		return wrap(op, err)
	}
	ctl.releaseOwed()
	ctl.freed = true
	a := ctl.e.adapter
	a.endpoints.Remove(ctl.e.key)
	a.eps.remove(ctl.e)
	a.counters.endpointsFreed.whole.Add(1)
	return nil
}

// alive refuses nil and closed endpoints.
func alive(op string, e *Endpoint) error {
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
