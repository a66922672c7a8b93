package rpc

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

func (s *Server) newServed(c *dat.Conn, peer hello) *served {
	p := &served{server: s, slots: make([]slot, s.cfg.Calls), answer: fitting(peer.message)}
	p.link = link{conn: c, own: uint32(s.cfg.receives()), stall: s.cfg.Stall, backlog: s.count}
	p.link.begin(peer)
	p.turns.init()
	return p
}

func (s *Server) handle(ev event.Event) {
	c := dat.ConnOf(ev)
	if c == nil {
		return
	}
	p, _ := c.Context.(*served)
	switch {
	case p == nil: // a connection that setup refused
	case ev.Number == event.Established:
		s.mu.Lock()
		s.conns[p] = true
		s.mu.Unlock()
		s.lately.count(kindConnected, "")
		s.count(-1)
	case ev.Ended():
		s.mu.Lock()
		up := s.conns[p]
		delete(s.conns, p)
		s.mu.Unlock()
		if !up {
			s.count(-1)
		}
		if own := p.link.end(cmp.Or(ev.Err(), s.inOrder())); own != nil {
			s.journal.put(slog.LevelWarn, "broke a connection", slog.Any("error", fmt.Errorf("%s: %w", p.peer(), own)))
		}
		p.abandon()
		_ = c.Close()
	case ev.Op == hw.OpRecv:
		if b := c.Message(ev); b != nil {
			p.heed(b)
		}
	}
}

// Why a server's connections end in order.
var (
	errServerClosed = errors.New("this server, or its adapter, has been closed")
	errClientLeft   = errors.New("the client ended it")
)

func (s *Server) inOrder() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return errServerClosed
	}
	return errClientLeft
}

// close says that this server ends its connections.
func (s *Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
}

// served is the server's end of a connection.
type served struct {
	link   link
	server *Server
	answer int // the most bytes of a payload that the client takes
	slots  []slot
	fresh  []Request    // of the reader
	left   atomic.Int32 // requests of callers that have left, with which handlers go on
	turns  turns
	line   line // under Server.mu
}

func (p *served) peer() string {
	return fmt.Sprintf("%v (connection %d)", p.link.conn, p.link.conn.ID())
}

// name says which call a header begins.
func (p *served) name(h header) string {
	return fmt.Sprintf("method %d, call %#x of %s", h.code, h.call, p.peer())
}

// of says of which call an error of a Request's method is.
func (p *served) of(h header, method string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rpc.Request.%s, %s: %w", method, p.name(h), err)
}

// heed takes a message of the client's. One that breaks the rules breaks the connection, as does an answer
// that can't be sent.
func (p *served) heed(b *mem.Buffer) {
	if err := p.take(b); err != nil {
		p.link.fail(err)
	}
}

func (p *served) take(b *mem.Buffer) error {
	m, err := p.link.read(b)
	slot := int(m.call & slotMask)
	if err == nil && (m.kind != kindCredit && m.kind != kindEnd && slot >= len(p.slots) || len(m.metadata) > p.server.cfg.Metadata) {
		err = errMalformed
	}
	if err != nil {
		p.link.conn.Release(b)
		return err
	}
	switch m.kind {
	case kindCall:
		return p.call(&p.slots[slot], b, m)
	case kindCancel:
		if r := p.slots[slot].now.Load(); r != nil && r.header.call == m.call {
			r.cancel()
		}
	case kindAnswer, kindEnd:
		err = errMalformed
	}
	p.link.conn.Release(b)
	return err
}

func (p *served) call(slot *slot, b *mem.Buffer, m message) error {
	r := p.begin(slot, b, m)
	if r == nil {
		p.link.conn.Release(b)
		return errMalformed
	}
	if m.flags&flagFetch != 0 {
		return p.fetch(r)
	}
	p.forget(slot, nil)
	if m.source.Len == 0 && m.sink.Len == 0 {
		p.turns.call.Store(r.arrived.UnixNano())
	}
	if code, why := p.server.admit(r); code != 0 {
		return r.refuse(code, why)
	}
	return nil
}

// abandon tells the handlers of a connection that it has ended. Requests that no handler has begun
// leave with it.
func (p *served) abandon() {
	p.server.drop(p)
	for i := range p.slots {
		if r := p.slots[i].now.Load(); r != nil {
			r.abandon()
		}
		p.forget(&p.slots[i], nil)
	}
}
