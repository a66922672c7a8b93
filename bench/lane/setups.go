package lane

import (
	"context"
	"errors"
	"net"

	"godat/ep"
	"godat/evd"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// Setups are connections that are made and ended again, on one adapter. A message is a
// connection: Post asks for it, and it is taken when it is established.
type Setups struct {
	ia       *dat.IA
	pz       *mem.PZ
	here     *evd.Dispatcher // takes the events of the ends that connect
	there    *evd.Dispatcher // takes those of the ends that accept
	psp      *ep.PSP
	slots    int
	accepted chan struct{} // closed when the accepting goroutine has ended
}

// NewSetups opens the adapter and listens on it, for Depth connections at a time.
func NewSetups(cfg Config) (l *Setups, err error) {
	// A connection may be established before one that was asked for earlier, so that slots
	// must not be used again soon.
	l = &Setups{slots: 64 * cfg.Depth, accepted: make(chan struct{})}
	if l.ia, err = cfg.Adapter(); err != nil {
		return nil, err
	}
	if err = l.listen(cfg.Depth); err != nil {
		return nil, errors.Join(err, l.ia.Close())
	}
	go l.accept()
	return l, nil
}

func (l *Setups) listen(depth int) (err error) {
	if l.pz, err = l.ia.NewPZ(); err != nil {
		return err
	}
	// An end has its places until it is closed.
	qlen := evd.Config{QLen: 64 * (16 + depth)}
	if l.here, err = l.ia.NewDispatcher(qlen); err != nil {
		return err
	}
	if l.there, err = l.ia.NewDispatcher(qlen); err != nil {
		return err
	}
	l.psp, err = l.ia.NewPSP(ep.PSPConfig{Dispatcher: l.there})
	return err
}

func (l *Setups) end(events *evd.Dispatcher, slot int) (*ep.Endpoint, error) {
	return l.ia.NewEndpoint(ep.Config{PZ: l.pz, Recv: events, Request: events, Conn: events, Context: slot})
}

// accept accepts requests, and closes what has ended, until the adapter is closed.
func (l *Setups) accept() {
	defer close(l.accepted)
	for {
		ev, _, err := l.there.Wait(context.Background(), 1)
		switch {
		case err != nil:
			return
		case ev.Number == event.ConnectionRequest:
			request := ep.RequestOf(ev)
			if e, err := l.end(l.there, 0); err != nil {
				_ = request.Reject(nil) // which the poster is told of
			} else if err := request.Accept(e, nil); err != nil {
				_ = e.Close()
			}
		case ev.Ended():
			_ = ep.Of(ev).Close()
		}
	}
}

// Slots is how many connections are told apart.
func (l *Setups) Slots() int { return l.slots }

// Post asks for a connection.
func (l *Setups) Post(slot int) error {
	e, err := l.end(l.here, slot)
	if err != nil {
		return err
	}
	return e.Connect(ep.ConnectConfig{Addr: l.ia.Attr().Address, Qual: l.psp.Qual()})
}

// Take waits for connections, and ends each.
func (l *Setups) Take(f func(slot int) bool) error {
	for {
		ev, _, err := l.here.Wait(context.Background(), 1)
		if err != nil {
			return err
		}
		e := ep.Of(ev)
		if ev.Number != event.Established {
			if err := neverUp(ev); err != nil { // no event follows the close of one that was up
				return err
			}
			continue
		}
		more := f(e.Context().(int))
		if err := e.Close(); err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
}

// Close closes the adapter.
func (l *Setups) Close() error {
	err := l.ia.Close()
	<-l.accepted
	return err
}

// Dials are connections over loopback TCP that are made and ended again.
type Dials struct {
	ln       net.Listener
	made     chan dialed
	accepted chan struct{}
}

type dialed struct {
	slot int
	conn net.Conn
}

// NewDials listens for depth connections at a time.
func NewDials(depth int) (*Dials, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Dials{ln: ln, made: make(chan dialed, 2*depth), accepted: make(chan struct{})}
	go l.accept()
	return l, nil
}

// accept accepts and closes connections until the listener is closed.
func (l *Dials) accept() {
	defer close(l.accepted)
	for {
		c, err := l.ln.Accept()
		if err != nil {
			return
		}
		_ = c.Close()
	}
}

// Slots is twice the depth.
func (l *Dials) Slots() int { return cap(l.made) }

// Post makes a connection.
func (l *Dials) Post(slot int) error {
	c, err := net.Dial("tcp", l.ln.Addr().String())
	if err != nil {
		return err
	}
	l.made <- dialed{slot, c}
	return nil
}

// Take takes connections, and ends each.
func (l *Dials) Take(f func(slot int) bool) error {
	for d := range l.made {
		more := f(d.slot)
		if err := d.conn.Close(); err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
	return net.ErrClosed
}

// Close stops listening.
func (l *Dials) Close() error {
	close(l.made)
	err := l.ln.Close()
	<-l.accepted
	return err
}
