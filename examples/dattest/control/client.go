// Package control is the control connection, on which a client tells a server which
// test it wants, and the server that runs the tests.
package control

import (
	"context"
	"errors"
	"fmt"

	"godat/examples/dattest/link"
	"godat/examples/dattest/wire"
	dat "godat/runtime"
)

// The buffers of the control connection, which are also their cookies. As in the C
// program, each message fills a buffer.
const (
	infoBuffer = iota
	commandBuffer
	answerBuffer
	buffers
)

// Server says where a server is.
type Server struct {
	Addr string
	Port uint64
}

// Ask tells the server which test the client wants, and calls do with the answer. The
// server ends the control connection as soon as it has answered.
func Ask(ctx context.Context, ia *dat.IA, s Server, info wire.ClientInfo, command []byte, do func(wire.ServerInfo) error) (err error) {
	c, err := open(ia)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	post := func() error { return c.link.PostRecv(c.pool, answerBuffer, wire.ControlSize) }
	if err := c.link.Connect(ctx, s.Addr, s.Port, "", post); err != nil {
		return fmt.Errorf("server %s, port %d: %w", s.Addr, s.Port, err)
	}
	copy(c.pool.Buffer(infoBuffer), info.Append(nil))
	copy(c.pool.Buffer(commandBuffer), command)
	for _, buffer := range []int{infoBuffer, commandBuffer} {
		if err := c.send(ctx, buffer); err != nil {
			return fmt.Errorf("telling the server what to do: %w", err)
		}
	}
	if err := c.recv(ctx, answerBuffer); err != nil {
		return fmt.Errorf("waiting for the server's answer: %w", err)
	}
	answer, err := wire.ParseServerInfo(c.pool.Buffer(answerBuffer))
	if err != nil {
		return err
	}
	if err := do(answer); err != nil {
		return err
	}
	return c.link.Disconnect(ctx, dat.Abrupt)
}

// Quit asks the server to end.
func Quit(ctx context.Context, ia *dat.IA, s Server) error {
	command := (&wire.Quit{Server: s.Addr, Port: s.Port}).Append(nil)
	return Ask(ctx, ia, s, wire.ClientInfo{Test: wire.QuitTest, Threads: 1}, command, func(wire.ServerInfo) error { return nil })
}

// conn is a control connection's endpoint.
type conn struct {
	pz   *dat.PZ
	link *link.Link
	pool *link.Pool
}

func open(ia *dat.IA) (*conn, error) {
	pz, err := ia.NewPZ()
	if err != nil {
		return nil, err
	}
	c := &conn{pz: pz}
	if c.link, err = link.New(ia, pz, link.Config{Recvs: 4, Requests: 4, Segments: 1}); err != nil {
		return nil, errors.Join(err, pz.Close())
	}
	if c.pool, err = c.link.NewPool(wire.ControlSize, buffers); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *conn) close() error { return errors.Join(c.link.Close(), c.pz.Close()) }

func (c *conn) send(ctx context.Context, buffer int) error {
	if err := c.link.PostSend(c.pool, buffer, wire.ControlSize); err != nil {
		return err
	}
	return c.link.Sent(ctx, buffer, wire.ControlSize)
}

func (c *conn) recv(ctx context.Context, buffer int) error {
	return c.link.Received(ctx, buffer, wire.ControlSize)
}
