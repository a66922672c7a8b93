package server

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"godat/examples/blockstore/block"
	"godat/examples/blockstore/proto"
	"godat/examples/blockstore/store"
	dat "godat/runtime"
)

// errBusy says that a client used a slot before it had the answer.
var errBusy = fmt.Errorf("%w: the slot is in use", proto.ErrMalformed)

// completed handles a completion of the session. One that failed needs
// nothing: the end of the connection follows it.
func (c *session) completed(ev dat.Event) {
	if ev.Err() != nil || c.gone {
		return
	}
	var err error
	i := slotOf(ev.Cookie)
	switch kindOf(ev.Cookie) {
	case cookieReceive:
		err = c.received(i, int(ev.Length))
	case cookieReply:
		err = c.replied(i)
	}
	if err != nil {
		c.server.log.Warn("client broke the protocol", zap.Int("session", c.number), zap.Error(err))
		c.disconnect(dat.Abrupt)
	}
}

// received handles the message of n bytes in receive i.
func (c *session) received(i, n int) error {
	m, err := proto.ParseRequest(c.slots[i].receive.bytes[:n], c.limits)
	if err != nil {
		return err
	}
	// m is a copy, so the buffer is free again. The client sends no more than
	// one request per slot, so there is always a receive for it.
	if err := c.receive(i); err != nil {
		return c.posted(err)
	}
	s := &c.slots[m.Slot]
	switch {
	case s.state == working, s.early:
		return fmt.Errorf("%w: slot %d", errBusy, m.Slot)
	case s.state == replying:
		// The client has the reply; that our send is over has not come by yet.
		s.next, s.early = m, true
		return nil
	}
	return c.serve(&m)
}

// replied is the end of a reply's send.
func (c *session) replied(i int) error {
	s := &c.slots[i]
	s.state = idle
	if !s.early {
		return nil
	}
	s.early = false
	return c.serve(&s.next)
}

// serve does what a request asks for.
func (c *session) serve(m *proto.Message) error {
	c.slots[m.Slot].state = working
	switch m.Op {
	case proto.OpPut:
		return c.put(m)
	case proto.OpGet:
		return c.get(m)
	case proto.OpSetRoot:
		// Blocks of other sessions may be below this root.
		c.server.commit()
		return c.reply(m, c.server.status(m, c.server.store.SetRoot(m.ID)))
	default: // OpRoot: the parser knows no other
		c.settle()
		root, err := c.server.store.Root()
		m.ID = root
		return c.reply(m, c.server.status(m, err))
	}
}

// settle commits what the session waits for: replies come in the order of the
// requests.
func (c *session) settle() {
	if c.gathered > 0 {
		c.server.commit()
	}
}

// put copies a block out of the window, checks the copy and gathers it.
func (c *session) put(m *proto.Message) error {
	b := &c.server.batch
	data := b.copy(c.slots[m.Slot].block[:m.Length])
	if block.CRC(data) != m.CRC || block.IDOf(data) != m.ID {
		b.drop(data)
		c.settle()
		return c.reply(m, proto.Damaged)
	}
	b.add(c, m, data)
	return nil
}

// get copies a block into the window.
func (c *session) get(m *proto.Message) error {
	c.settle()
	window := c.slots[m.Slot].block
	n, err := c.server.store.Get(m.ID, window)
	m.Length, m.CRC = uint32(n), block.CRC(window[:n])
	return c.reply(m, c.server.status(m, err))
}

// status is what the client is told of the store's error.
func (s *Server) status(m *proto.Message, err error) proto.Status {
	switch {
	case err == nil:
		return proto.OK
	case errors.Is(err, store.ErrNotFound):
		return proto.NotFound
	}
	s.log.Error("store", zap.Stringer("operation", m.Op), zap.Stringer("block", m.ID), zap.Error(err))
	return proto.Failed
}

// reply turns the request m into its answer and sends that.
func (c *session) reply(m *proto.Message, status proto.Status) error {
	m.Reply, m.Status = true, status
	if m.Op != proto.OpGet || status != proto.OK {
		m.Length = 0
	}
	s := &c.slots[m.Slot]
	m.Put(s.reply.bytes)
	s.state = replying
	return c.posted(c.ep.PostSend(c.cookie(cookieReply, int(m.Slot)), dat.Default, s.reply.segment))
}

// posted passes on the error of a post, unless it only says that the connection
// is over already, of which an event tells.
func (c *session) posted(err error) error {
	if errors.Is(err, dat.ErrInvalidState) {
		return nil
	}
	return err
}
