// Package control is the control connection, on which a client tells a server which
// test it wants, and the server that runs the tests.
package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"godat/examples/dattest/link"
	"godat/examples/dattest/wire"
	dat "godat/runtime"
)

// Server says where a server is.
type Server struct {
	Addr string
	Port uint64
}

func (s Server) String() string { return net.JoinHostPort(s.Addr, strconv.FormatUint(s.Port, 10)) }

// connConfig configures both ends of a control connection.
var connConfig = dat.ConnConfig{Depth: 4, Message: wire.ControlSize, Apart: true}

// Ask tells the server which test the client wants, and calls do with the answer. The
// server ends the control connection as soon as it has answered.
func Ask(ctx context.Context, ia *dat.IA, s Server, info wire.ClientInfo, command []byte, do func(wire.ServerInfo) error) (err error) {
	var c *dat.Conn
	err = link.Retry(ctx, func() (err error) {
		c, err = ia.Dial(ctx, s.String(), connConfig)
		return err
	})
	if err != nil {
		return fmt.Errorf("server %s, port %d: %w", s.Addr, s.Port, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, m := range [][]byte{info.Append(nil), command} {
		if err := send(c, m); err != nil {
			return fmt.Errorf("telling the server what to do: %w", err)
		}
	}
	m, err := receive(ctx, c)
	if err != nil {
		return fmt.Errorf("waiting for the server's answer: %w", err)
	}
	answer, err := wire.ParseServerInfo(m)
	if err != nil {
		return err
	}
	return do(answer)
}

// Quit asks the server to end.
func Quit(ctx context.Context, ia *dat.IA, s Server) error {
	command := (&wire.Quit{Server: s.Addr, Port: s.Port}).Append(nil)
	return Ask(ctx, ia, s, wire.ClientInfo{Test: wire.QuitTest, Threads: 1}, command, func(wire.ServerInfo) error { return nil })
}

// send sends a message, which is as long as a buffer, as in the C program: the rest is
// zeros.
func send(c *dat.Conn, message []byte) error {
	var m [wire.ControlSize]byte
	copy(m[:], message)
	return c.SendBytes(m[:])
}

// receive waits for a message, and returns a copy.
func receive(ctx context.Context, c *dat.Conn) ([]byte, error) {
	b, err := c.Receive(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Release(b)
	if n := len(b.Bytes()); n != wire.ControlSize {
		return nil, fmt.Errorf("a message of %d bytes, not %d", n, wire.ControlSize)
	}
	return bytes.Clone(b.Bytes()), nil
}
