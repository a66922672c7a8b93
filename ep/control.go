package ep

import (
	"errors"
	"sync"

	"godat/ep/internal/line"
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

// controls are the calls that change an endpoint's state. Each holds the lock from beginning
// to end.
type controls struct {
	e *Endpoint // immutable
	sync.Mutex
	pending *control // under the lock; read by the machine

	over sync.WaitGroup // of the end of the connection, which machine.over says is announced; only a holder of the lock waits

	// Under the lock.
	freed    bool
	owed     []owed
	cqs      cqs            // of a polled device; the token's holder writes it
	replaced []modification // whose old parts are not given back yet; one that failed stands here the other way round
}

func (ctl *controls) init(e *Endpoint) {
	ctl.e = e
	ctl.over.Add(1)
}

// do passes c to the token's holder and waits until it is executed. The caller holds e.ctl.
func (ctl *controls) do(c *control) error {
	c.done = make(chan struct{})
	ctl.pending = c
	ctl.e.box.Tell(line.TellControl)
	<-c.done
	return c.err
}

// change executes a control call that does nothing but move the state by in.
func (ctl *controls) change(op string, in input) error {
	ctl.Lock()
	defer ctl.Unlock()
	return ctl.do(&control{op: op, in: in})
}

// disownEndpoint separates the endpoint from the request that it came with, and frees one that
// was made for the request. The caller holds the lock.
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
	switch how {
	case Abrupt:
		return e.ctl.change(op, inAbrupt)
	case Graceful:
		return e.ctl.change(op, inGraceful)
	}
	return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "close flags %d", how)
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
	for {
		if e.State() == Disconnected {
			e.ctl.over.Wait()
			e.ctl.releaseOwed()
		}
		if err := e.ctl.do(&control{op: op, in: inReset}); !errors.Is(err, errNotOver) {
			return err
		}
	}
}

// errNotOver is of a Reset during which the connection has begun to end.
var errNotOver = errors.New("ep: the end of the connection is not announced yet")

// Close frees the endpoint. It gives up the connection or an attempt at one;
// everything outstanding completes as flushed before Close returns, and no
// connection event follows. Posts fail with INVALID_HANDLE from then on. Closing a
// closed endpoint does nothing. While a service point owns the endpoint Close fails
// and has no effect.
// It answers to dat_ep_free.
func (e *Endpoint) Close() error {
	const op = "ep.Close"
	if !e.isMade() {
		return errNoEndpoint(op)
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

// free gives back what a closed endpoint has taken of others. The caller holds e.ctl.
func (ctl *controls) free(op string) error {
	ctl.over.Wait()
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
	a.counters.endpointsFreed.whole.Add(1)
	a.leave(ctl.e) // last: an adapter's close that no longer sees the endpoint must find it closed, and counted
	return nil
}

// isMade reports whether NewEndpoint, or a service point, has made the endpoint.
func (e *Endpoint) isMade() bool { return e != nil && e.adapter != nil }

func errNoEndpoint(op string) error {
	return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleEP, Text: "the endpoint is nil or zero; NewEndpoint makes one"}
}

// alive refuses nil and closed endpoints.
func alive(op string, e *Endpoint) error {
	if !e.isMade() {
		return errNoEndpoint(op)
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
