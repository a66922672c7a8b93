package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// change takes the next event of the pair's connection.
func (p *pair) change() (event.Event, error) {
	ev, _, err := p.changes.Wait(context.Background(), 1)
	return ev, err
}

// The error of a refused call says why, by DAT's return code and in words.
func ExampleError() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		err := p.client.Connect(ep.ConnectConfig{Qual: 4711})
		fmt.Println(errors.Is(err, hw.ErrInvalidState))
		fmt.Println(errors.Is(err, &hw.Error{Type: hw.InvalidState, Sub: hw.StateEPConnected}))
		var code *hw.Error
		if errors.As(err, &code) {
			fmt.Println(code.Type, "/", code.Sub)
		}
		return nil
	})
	// Output:
	// true
	// true
	// invalid state / EP connected
}

// An operation that fails says so in its event. Here the receive is too short for the
// message.
func ExampleStatusError() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		if err := p.server.PostRecv(1, 0, p.memory.Segment(0, 4)); err != nil {
			return err
		}
		if err := p.client.PostSend(2, hw.Suppress, p.memory.Segment(64, 5)); err != nil {
			return err
		}
		for { // the send may have failed before it
			ev, err := p.wait()
			if err != nil {
				return err
			}
			if ev.Op == hw.OpRecv {
				fmt.Println(ev.Status, errors.Is(ev.Err(), hw.StatusError(hw.StatusLocalLength)))
				return nil
			}
		}
	})
	// Output: ERR_LOCAL_LENGTH true
}

// The end of a broken connection says why, and which end found the reason.
func ExampleCause() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		err := p.client.PostRDMAWrite(1, 0, mem.RemoteSegment{Addr: 4096, Len: 5, Context: 12345}, p.memory.Segment(0, 5))
		if err != nil {
			return err
		}
		for {
			ev, err := p.change()
			if err != nil {
				return err
			}
			if ep.Of(ev) != p.client {
				continue // the peer's end of the same connection
			}
			fmt.Println(ev.Number, ev.Ended())
			var cause *hw.Cause
			if errors.As(ev.Err(), &cause) {
				fmt.Println(cause.Layer, "error found", cause.Found)
				fmt.Println(errors.Is(cause, hw.StatusError(hw.StatusRemoteAccess)))
			}
			return nil
		}
	})
	// Output:
	// BROKEN true
	// DAT error found by the peer
	// true
}

// A failed attempt to connect ends in an event. Here the peer's program rejects it, and
// says what it wants instead.
func Example_eventError() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		psp, err := p.ia.NewPSP(ep.PSPConfig{Dispatcher: p.changes})
		if err != nil {
			return err
		}
		e, err := p.ia.NewEndpoint(p.endpoint())
		if err != nil {
			return err
		}
		if err = e.Connect(ep.ConnectConfig{Qual: psp.Qual(), Private: []byte("v1")}); err != nil {
			return err
		}
		ev, err := p.change()
		if err != nil {
			return err
		}
		if err = ep.RequestOf(ev).Reject([]byte("v2 only")); err != nil {
			return err
		}
		if ev, err = p.change(); err != nil {
			return err
		}
		fmt.Printf("%v %q\n", errors.Is(ev.Err(), event.Error(event.PeerRejected)), ev.Private())
		return nil
	})
	// Output: true "v2 only"
}

// ConnectConfig has a time limit for the attempt. Here no program answers.
func ExampleConnectConfig_timeout() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		requests, err := p.ia.NewDispatcher(evd.Config{QLen: 1})
		if err != nil {
			return err
		}
		psp, err := p.ia.NewPSP(ep.PSPConfig{Dispatcher: requests})
		if err != nil {
			return err
		}
		e, err := p.ia.NewEndpoint(p.endpoint())
		if err != nil {
			return err
		}
		if err = e.Connect(ep.ConnectConfig{Qual: psp.Qual(), Timeout: time.Millisecond}); err != nil {
			return err
		}
		ev, err := p.change()
		if err != nil {
			return err
		}
		fmt.Println(ev.Number, errors.Is(ev.Err(), hw.ErrTimeout), errors.Is(ev.Err(), os.ErrDeadlineExceeded))
		return nil
	})
	// Output: TIMED_OUT true true
}

// A graceful disconnect lets what was posted complete. DISCONNECTED is the last event of
// the connection; then the endpoint may be connected again.
func ExampleEndpoint_disconnect() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		if err := p.exchange(1); err != nil {
			return err
		}
		if err := p.client.Disconnect(ep.Graceful); err != nil {
			return err
		}
		ev, err := p.wait()
		if err != nil {
			return err
		}
		fmt.Println(ev.Op, ev.Err())
		for range 2 {
			if ev, err = p.change(); err != nil {
				return err
			}
			fmt.Println(ev.Number, ev.Err())
		}
		if err = p.client.Reset(); err != nil {
			return err
		}
		fmt.Println(p.client.State())
		return nil
	})
	// Output:
	// RECEIVE <nil>
	// DISCONNECTED <nil>
	// DISCONNECTED <nil>
	// UNCONNECTED
}

// A program that closes everything itself closes an object before those that it uses.
// IA.Close does all this, too.
func ExampleIA_CloseGraceful() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		fmt.Println("in use:", errors.Is(p.ia.CloseGraceful(), hw.ErrInvalidState))
		for _, closes := range []func() error{
			p.client.Close, p.server.Close, // flush outstanding work
			p.events.Close, p.changes.Close, // drop queued events
			p.memory.Free, p.pz.Close,
			p.ia.CloseGraceful,
		} {
			if err := closes(); err != nil {
				return err
			}
		}
		fmt.Println("closed")
		return nil
	})
	// Output:
	// in use: true
	// closed
}
