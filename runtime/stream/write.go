package stream

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// Write writes p to the stream. It returns when the bytes are on their way: p is the
// caller's again. It waits while the peer's ring is full. An error comes with the number
// of bytes that were posted before.
func (c *Conn) Write(p []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	err = c.mayNotWrite()
	for err == nil && n < len(p) {
		var room []byte
		if room, err = c.room(len(p) - n); err == nil {
			var sent int
			sent, err = c.send(copy(room, p[n:]))
			n += sent
		}
	}
	if err != nil {
		err = c.opError("write", err)
	}
	return n, err
}

// WriteBuffers writes all buffers, as one stream of bytes: short ones travel together. It
// takes what it has written from bufs, as net.Buffers.WriteTo does.
func (c *Conn) WriteBuffers(bufs *net.Buffers) (total int64, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	left := 0
	err = c.mayNotWrite()
	for _, b := range *bufs {
		left += len(b)
	}
	for err == nil && left > 0 {
		var room []byte
		if room, err = c.room(left); err == nil {
			var sent int
			sent, err = c.send(gather(room, *bufs))
			drop(bufs, sent)
			left -= sent
			total += int64(sent)
		}
	}
	if err != nil {
		err = c.opError("write", err)
	}
	return total, err
}

// gather copies as many bytes of the buffers as there is room for.
func gather(room []byte, bufs net.Buffers) (n int) {
	for _, b := range bufs {
		n += copy(room[n:], b)
	}
	return n
}

// drop takes the first n bytes from the buffers.
func drop(bufs *net.Buffers, n int) {
	for len(*bufs) > 0 && n >= len((*bufs)[0]) {
		n -= len((*bufs)[0])
		(*bufs)[0] = nil
		*bufs = (*bufs)[1:]
	}
	if n > 0 {
		(*bufs)[0] = (*bufs)[0][n:]
	}
}

// ReadFrom writes all bytes of r to the stream, which r reads straight into registered
// memory. Other writes wait meanwhile. It answers to io.ReaderFrom, which io.Copy uses.
func (c *Conn) ReadFrom(r io.Reader) (total int64, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for {
		room, err := c.room(len(c.in.ring))
		if err != nil {
			return total, c.opError("write", err)
		}
		n, err := r.Read(room)
		if n < 0 || n > len(room) {
			return total, fmt.Errorf("stream: a reader of %d bytes says that it read %d", len(room), n)
		}
		sent, failed := c.send(n)
		total += int64(sent)
		switch {
		case failed != nil:
			return total, c.opError("write", failed)
		case err == io.EOF:
			return total, nil
		case err != nil:
			return total, err
		}
	}
}

// mayNotWrite says why a Write fails.
func (c *Conn) mayNotWrite() error {
	switch over := c.ended.Load(); {
	case c.closed.Load():
		return net.ErrClosed
	case c.writer.passed.Load():
		return os.ErrDeadlineExceeded
	case over != nil && errors.Is(over.err, io.ErrUnexpectedEOF):
		return syscall.EPIPE // the peer has closed the connection
	case over != nil:
		return over.err
	case c.out.fin.Load():
		return syscall.EPIPE // this end has called CloseWrite
	}
	return nil
}

// room waits until some of the want bytes can be sent, and returns where they go.
func (c *Conn) room(want int) ([]byte, error) {
	for {
		if err := c.mayNotWrite(); err != nil {
			return nil, err
		}
		if b := c.vacant(want); b != nil {
			return b, nil
		}
		c.report()
		c.out.want = want
		c.wait(&c.writer, c.mayWrite)
	}
}

// vacant returns the place for the next bytes: half of the ring at most, so that the peer
// reads one half while the other is written. It is nil while there is neither room for all
// that is wanted, nor for a half. That room comes: the peer reports each quarter of the ring
// that it has read, so a peer that has read everything leaves three quarters at least.
func (c *Conn) vacant(want int) []byte {
	ring := c.out.ring
	if c.credits() <= reportCredit {
		return nil
	}
	want = min(want, len(ring)/2)
	produced := c.out.produced.Load()
	used := produced - min(c.out.consumed.Load(), c.out.done.Load())
	if len(ring)-int(used) < want {
		return nil
	}
	at := int(produced & uint64(len(ring)-1))
	return ring[at:min(at+want, len(ring))]
}

// mayWrite reports whether a writer has something to do.
func (c *Conn) mayWrite() bool {
	return c.mayNotWrite() != nil || c.vacant(c.out.want) != nil || c.due()
}
