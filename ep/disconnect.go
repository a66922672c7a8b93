package ep

import (
	"errors"

	"godat/ep/internal/life"
	"godat/hw"
)

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
		return e.ctl.change(op, life.InAbrupt)
	case Graceful:
		return e.ctl.change(op, life.InGraceful)
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
		if err := e.ctl.do(&control{op: op, in: life.InReset}); !errors.Is(err, errNotOver) {
			return err
		}
	}
}

// errNotOver is of a Reset during which the connection has begun to end.
var errNotOver = errors.New("ep: the end of the connection is not announced yet")
