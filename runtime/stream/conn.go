package stream

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"godat/hw"
)

// Conn is a net.Conn over an RDMA connection. [Dialer.DialContext] and [Listener.Accept]
// make one. Any goroutine may call its methods; calls of Read, and calls of Write, take
// turns.
type Conn struct {
	local, remote addr // immutable
	from          use  // immutable
	line          line

	reading sync.Mutex // held by Read and WriteTo
	writing sync.Mutex // held by Write, WriteBuffers and ReadFrom
	closing sync.Mutex // held by Close
	left    bool       // the adapter does not count the connection any more; the holder of closing writes it
}

// newConn makes a connection, which is the user from from then on, also if it fails.
func newConn(from use, cfg *Config) (*Conn, error) {
	c := &Conn{from: from, line: line{linger: cfg.Linger, up: make(chan struct{}), down: make(chan struct{})}}
	c.line.reader.wake = make(chan struct{}, 1)
	c.line.writer.wake = make(chan struct{}, 1)
	c.line.flow.in.secondSize = cfg.Ring
	c.line.flow.in.movedAt.Store(notMoved)
	c.line.flow.in.at.Store(notOffered)
	c.line.flow.in.from, c.line.flow.in.pause = leastOffered, leastOffered
	c.line.flow.out.bufferAt.Store(notOffered)
	c.line.flow.out.toldGranted.Store(messages) // by the hello
	if err := c.line.make(from.ia); err != nil {
		return nil, errors.Join(err, c.free())
	}
	return c, nil
}

// free gives back everything that was not given back yet, and the share of the adapter.
func (c *Conn) free() error {
	err := c.line.free()
	if !c.left {
		c.left = true
		err = errors.Join(err, c.from.leave())
	}
	return err
}

// String names the two ends. It may be called at any time, like the String of every handle.
func (c *Conn) String() string {
	if c == nil {
		return "Conn(nil)"
	}
	return "Conn(" + c.local.hostPort + " to " + c.remote.hostPort + ")"
}

// LogValue names the two ends, for log/slog.
func (c *Conn) LogValue() slog.Value {
	if c == nil {
		return slog.StringValue(c.String())
	}
	return slog.GroupValue(slog.String("local", c.local.hostPort), slog.String("remote", c.remote.hostPort))
}

// Close ends the connection. It unblocks all calls, sends a FIN behind what was written,
// and waits until that has been sent, for Config.Linger at most. The peer reads all of it,
// and then the end of the stream. What the peer has sent and the program has not read is
// lost. A second Close waits for the first, and gives back what that could not: it returns nil
// if nothing is left. A nil Conn matches ErrInvalidHandle.
func (c *Conn) Close() error {
	if !c.made() {
		return c.notMade("close")
	}
	c.closing.Lock()
	defer c.closing.Unlock()
	if !c.line.closed.Swap(true) {
		c.line.reader.setDeadline(time.Time{})
		c.line.writer.setDeadline(time.Time{})
		c.line.disconnect()
	}
	if err := c.free(); err != nil {
		return c.opError("close", err)
	}
	return nil
}

// CloseWrite sends a FIN behind what was written: the peer reads all of it and then
// io.EOF. This end may go on reading. Further writes fail; a second CloseWrite does
// nothing, and neither does one after the peer has closed the connection. The deadline of
// Write ends it only while the connection is not up yet.
func (c *Conn) CloseWrite() error {
	if !c.made() {
		return c.notMade("close")
	}
	c.writing.Lock() // a Write under way is complete before the FIN
	defer c.writing.Unlock()
	if c.line.flow.out.fin.Load() && !c.line.closed.Load() {
		return nil
	}
	err := c.line.mayNotFinish()
	for err == nil && c.line.flow.out.granted.Load() == 0 { // the connection is not up yet
		c.line.wait(&c.line.writer, func() bool { return c.line.flow.out.granted.Load() != 0 || c.line.mayNotWrite() != nil })
		err = c.line.mayNotWrite()
	}
	if err == nil {
		err = c.line.finish()
	}
	if err != nil && c.line.mayNotFinish() != syscall.EPIPE { // else the peer has closed, and reads no more
		return c.opError("close", err)
	}
	return nil
}

// LocalAddr is this end's address.
func (c *Conn) LocalAddr() net.Addr {
	if c == nil {
		return addr{}
	}
	return c.local
}

// RemoteAddr is the peer's address.
func (c *Conn) RemoteAddr() net.Addr {
	if c == nil {
		return addr{}
	}
	return c.remote
}

// SetDeadline sets the deadlines of Read and Write. A call that waits when its deadline
// passes, and one that begins later, fail with an error that matches
// os.ErrDeadlineExceeded. The zero time means no deadline.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline sets the deadline of Read and WriteTo; see SetDeadline.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if !c.made() {
		return c.notMade("set")
	}
	return c.setDeadline(&c.line.reader, t)
}

// SetWriteDeadline sets the deadline of Write, WriteBuffers and ReadFrom; see SetDeadline.
// A Write whose deadline passes may have sent some of its bytes.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if !c.made() {
		return c.notMade("set")
	}
	return c.setDeadline(&c.line.writer, t)
}

func (c *Conn) setDeadline(w *waiter, t time.Time) error {
	if c.line.closed.Load() {
		return c.opError("set", net.ErrClosed)
	}
	w.setDeadline(t)
	return nil
}

// made reports whether the connection comes of a Dialer or a Listener.
func (c *Conn) made() bool { return c != nil && c.line.endpoint != nil }

// notMade is the error of a call of a nil or zero Conn.
func (c *Conn) notMade(op string) error { return notMade(op, "Conn", "Dialer and Accept make one") }

func notMade(op, what, by string) error {
	return &net.OpError{Op: op, Net: "rdma", Err: fmt.Errorf("stream: a nil or zero %s: %s: %w", what, by, hw.ErrInvalidHandle)}
}

func (c *Conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: c.local.network, Source: c.local, Addr: c.remote, Err: ofCall(err)}
}
