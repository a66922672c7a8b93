package server

import (
	"errors"

	"go.uber.org/zap"

	"godat/examples/blockstore/block"
	"godat/examples/blockstore/proto"
	"godat/examples/blockstore/store"
	dat "godat/runtime"
)

// received serves the request in a buffer. The answer goes out in the same buffer.
func (c *session) received(b *dat.Buffer) error {
	if c.gone {
		c.conn.Release(b)
		return nil
	}
	m, err := proto.ParseRequest(b.Bytes(), c.limits)
	if err != nil {
		c.conn.Release(b)
		return err
	}
	switch m.Op {
	case proto.OpPut:
		return c.put(b, &m)
	case proto.OpGet:
		return c.get(b, &m)
	case proto.OpSetRoot:
		// The root may name blocks of other sessions, too.
		c.server.commit()
		return c.reply(b, &m, c.server.status(&m, c.server.store.SetRoot(m.ID)))
	default: // OpRoot: the parser accepts no other
		c.commitOwn()
		root, err := c.server.store.Root()
		m.ID = root
		return c.reply(b, &m, c.server.status(&m, err))
	}
}

// commitOwn commits the session's PUTs, because replies go out in the order of the
// requests.
func (c *session) commitOwn() {
	if c.gathered > 0 {
		c.server.commit()
	}
}

// put copies a block out of the window, checks the copy, and adds it to the batch.
func (c *session) put(b *dat.Buffer, m *proto.Message) error {
	batch := &c.server.batch
	data := batch.copy(c.block(m.Slot)[:m.Length])
	if block.CRC(data) != m.CRC || block.IDOf(data) != m.ID {
		batch.drop(data)
		c.commitOwn()
		return c.reply(b, m, proto.Damaged)
	}
	batch.add(put{c, b, *m}, data)
	return nil
}

// get copies a block into the window.
func (c *session) get(b *dat.Buffer, m *proto.Message) error {
	c.commitOwn()
	window := c.block(m.Slot)
	n, err := c.server.store.Get(m.ID, window)
	m.Length, m.CRC = uint32(n), block.CRC(window[:n])
	return c.reply(b, m, c.server.status(m, err))
}

// status is the status that tells the client of the store's error.
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

// reply turns the request m into its answer, which goes out with the next flush.
func (c *session) reply(b *dat.Buffer, m *proto.Message, status proto.Status) error {
	m.Reply, m.Status = true, status
	if m.Op != proto.OpGet || status != proto.OK {
		m.Length = 0
	}
	m.Put(b.Resize(proto.MessageLen))
	if !c.dirty {
		c.dirty = true
		c.server.dirty = append(c.server.dirty, c)
	}
	return c.conn.Queue(b)
}
