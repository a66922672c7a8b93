package server

import (
	"errors"

	"go.uber.org/zap"

	"godat/examples/blockstore/proto"
	dat "godat/runtime"
)

// session is one client.
type session struct {
	server   *Server
	conn     *dat.Conn
	limits   proto.Limits
	window   []byte // one slot after the other; the client may write to it at any time
	gathered int    // PUTs of this session in the batch
	dirty    bool   // it has replies to flush
	gone     bool
}

// open makes the session and the window of a connection that is about to be accepted,
// and returns the private data for the client. The limits are those that the client
// wants, but at most the server's.
func (s *Server) open(conn *dat.Conn) (welcome []byte, err error) {
	hello, err := proto.ParseHello(conn.Private())
	if err != nil {
		return nil, err
	}
	c := &session{server: s, conn: conn, limits: proto.Limits{
		Slots: min(hello.Slots, s.limits.Slots),
		Block: min(hello.Block, s.limits.Block),
	}}
	window, err := conn.Alloc(c.limits.Window(), dat.RemoteRead|dat.RemoteWrite)
	if err != nil {
		return nil, err
	}
	c.window, conn.Context = window.Bytes(), c
	s.log.Debug("client", zap.Stringer("client", conn), zap.Any("limits", c.limits))
	return proto.Welcome{Limits: c.limits, Window: window.Remote(0, c.limits.Window())}.Append(nil), nil
}

// block returns a slot's memory in the window.
func (c *session) block(slot uint16) []byte {
	at := int(slot) * c.limits.Block
	return c.window[at : at+c.limits.Block]
}

// check ends the connection of a client that broke the protocol; a client that takes no
// answers breaks it, too. A connection that is over already is no error: an event tells
// of its end.
func (c *session) check(err error) {
	if err == nil || c.gone || errors.Is(err, dat.ErrInvalidState) {
		return
	}
	c.server.log.Warn("client broke the protocol", zap.Stringer("client", c.conn), zap.Error(err))
	c.gone = true
	if err := c.conn.Endpoint.Disconnect(dat.Abrupt); err != nil {
		c.server.log.Debug("disconnect", zap.Stringer("client", c.conn), zap.Error(err))
	}
}

// close gives back what the session has. Blocks of the session that are in the batch
// are stored nevertheless, and their PUTs get no answer.
func (c *session) close() {
	c.gone = true
	if err := c.conn.Close(); err != nil {
		c.server.log.Warn("close session", zap.Stringer("client", c.conn), zap.Error(err))
	}
}
