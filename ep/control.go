package ep

import (
	"sync"

	"godat/hw"
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

// controls are the calls that change an endpoint's state, one at a time. Its lock is
// held by such a call from beginning to end.
type controls struct {
	e *Endpoint // immutable
	sync.Mutex
	pending *control      // under the lock; read by the machine
	over    chan struct{} // closed by the machine when both queues have ended; replaced by Reset
	freed   bool          // under the lock
	owed    []owed        // under the lock
}

func (ctl *controls) init(e *Endpoint) { ctl.e, ctl.over = e, make(chan struct{}) }

// do has the step execute c. The caller holds e.ctl.
func (ctl *controls) do(c *control) error {
	c.done = make(chan struct{})
	ctl.pending = c
	ctl.e.box.tell(tellControl)
	<-c.done
	return c.err
}

// change has the machine move by in, where a move is all there is to do.
func (ctl *controls) change(op string, in input) error {
	ctl.Lock()
	defer ctl.Unlock()
	return ctl.do(&control{op: op, in: in})
}

// disownEndpoint parts the endpoint from the request that it came with. An endpoint
// that was made for the request is freed. The caller holds the lock.
func (ctl *controls) disownEndpoint(op string) error {
	if err := ctl.do(&control{op: op, in: inDisown}); err != nil {
		return err
	}
	if ctl.e.State() != closed {
		return nil
	}
	return ctl.free(op)
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
	e.ctl.Lock()
	defer e.ctl.Unlock()
	return e.ctl.do(&control{op: op, in: in})
}

// Reset makes a disconnected endpoint UNCONNECTED again, so that it can be
// connected once more. It waits until everything posted has been flushed. In
// UNCONNECTED it does nothing, and keeps the receives posted.
// It answers to dat_ep_reset.
func (e *Endpoint) Reset() error {
	const op = "ep.Reset"
	if err := alive(op, e); err != nil {
		return err
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	if e.State() == Disconnected {
		<-e.ctl.over
		e.ctl.releaseOwed()
	}
	return e.ctl.do(&control{op: op, in: inReset})
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

// free gives back what a closed endpoint has. The caller holds e.ctl.
func (ctl *controls) free(op string) error {
	<-ctl.over
	if ctl.e.worker.served != nil {
		close(ctl.e.worker.quit)
		<-ctl.e.worker.served
		ctl.e.worker.served = nil
	}
	p := ctl.parts()
	if err := p.giveBack(ctl.e, &parts{}); err != nil {
		return wrap(op, err)
	}
	ctl.releaseOwed()
	ctl.freed = true
	ctl.e.adapter.remove(ctl.e)
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
