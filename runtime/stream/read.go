package stream

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"

	"godat/internal/release"
	"godat/internal/yield"
)

// Read reads bytes of the stream. At its end it returns io.EOF; if the connection ended
// without the end of the stream, it returns all bytes that came, and then why. Where p has
// 64 KiB or more, the peer may write straight into it: until Read returns p is not the
// caller's, and behind the n bytes it may hold anything then. Over iwarp with CRCs the device
// may check them in p, so a caller that changes p meanwhile ends the connection. A connection
// on which such a Read has passed its deadline keeps a buffer of the same length until bytes come.
func (c *Conn) Read(p []byte) (int, error) {
	if !c.made() {
		return 0, c.notMade("read")
	}
	b, err := c.beginRead(p, len(p) > 0)
	if err != nil {
		return 0, c.readError(err)
	}
	n := copy(p, b)                // nothing, if the peer has written the bytes into p
	if n == len(b) && n < len(p) { // there may be more at the beginning of the ring
		n += copy(p[n:], c.line.flow.readable(uint64(n)))
	}
	c.line.consume(n, len(p) >= leastOffered)
	c.endRead()
	return n, nil
}

// WriteTo writes the stream to w until its end: straight from the ring, so w must not keep
// the bytes, nor change them. If w is a Conn, w copies them first. It answers to io.WriterTo,
// which io.Copy uses.
func (c *Conn) WriteTo(w io.Writer) (total int64, err error) {
	if !c.made() {
		return 0, c.notMade("read")
	}
	for {
		b, err := c.beginRead(nil, true)
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, c.readError(err)
		}
		n, err := c.giveHeld(w, b)
		if n < 0 || n > len(b) {
			n, err = 0, fmt.Errorf("stream: a writer of %d bytes says that it wrote %d", len(b), n)
		} else if n < len(b) && err == nil {
			err = io.ErrShortWrite
		}
		c.line.consume(n, false)
		c.endRead()
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
}

// giveHeld is give by the holder of the reader's turn, who gives it back if the writer panics or ends its
// goroutine. The bytes are unread then.
func (c *Conn) giveHeld(w io.Writer, b []byte) (n int, err error) {
	returned := false
	defer func() {
		if !returned {
			c.endRead()
		}
	}()
	n, err = give(w, b)
	returned = true
	return n, err
}

// give writes bytes of a ring to w. The peer may still write into the ring. So another Conn
// doesn't lend the bytes to its device: the peer could end that connection, too.
func give(w io.Writer, b []byte) (int, error) {
	if to, ok := w.(*Conn); ok {
		return to.write(b, false)
	}
	return w.Write(b)
}

// beginRead takes the reader's turn, and waits for bytes if wait is set, which may come
// straight into p. On success the caller calls endRead when it has used them.
func (c *Conn) beginRead(p []byte, wait bool) (b []byte, err error) {
	c.lockReading(wait, len(p) >= leastOffered)
	if c.line.flow.in.region != nil {
		c.line.flow.in.resume()
	}
	for {
		announced := c.line.reader.announced() // before all looks
		yield.Point()
		// The end comes after the last bytes: if it is seen here, they are seen below.
		over, fin := c.line.ended.Load(), c.line.flow.in.fin.Load()
		b = c.line.flow.readable(0)
		switch {
		case c.line.closed.Load():
			err = net.ErrClosed
		case c.line.reader.passed.Load():
			err = os.ErrDeadlineExceeded
		case len(b) > 0 || !wait:
			return b, nil
		case fin:
			err = io.EOF
		case over != nil:
			err = over.err
		default:
			if len(p) >= leastOffered && c.line.offerBuffer(p) { // an offer also reports what was read
				if b = c.line.land(p); len(b) > 0 {
					return b, nil
				}
				continue
			}
			c.awaitBytes(announced)
			continue
		}
		c.endRead()
		return nil, err
	}
}

// lockReading takes the reader's turn. A call that is about to wait announces it first: the
// lock orders the announcement before what the call looks at then. On one processor a call
// that offers no buffer yields in place of that: most often the bytes are there when it has
// the turn, and it looks once.
func (c *Conn) lockReading(wait, offers bool) {
	if !wait || c.line.flow.in.produced.Load() != c.line.flow.in.consumed.Load() {
		c.reading.Lock()
		return
	}
	yields := !offers && c.line.reader.yields(c.line.events)
	if yields {
		runtime.Gosched()
	} else {
		c.line.reader.announce(c.line.events)
	}
	c.reading.Lock()
	if yields {
		c.line.reader.count()
	}
}

func (c *Conn) endRead() {
	c.line.reader.withdraw()
	c.reading.Unlock()
}

// awaitBytes waits, for a caller that has looked whether it need not, and reports first
// what is due. It says whether the caller was announced when it looked.
func (c *Conn) awaitBytes(announced bool) {
	switch {
	case c.line.flow.due():
		c.line.report()
	case announced && !c.line.events.Asks():
		c.line.reader.park()
	default:
		c.line.wait(&c.line.reader, c.line.mayRead)
	}
}

// readable returns the bytes that may be read, behind the first skip of them, as far as
// they lie in one piece.
func (f *flow) readable(skip uint64) []byte {
	return f.in.piece(f.in.consumed.Load() + skip)
}

// consume says that the program has read n bytes, and whether it was a Read of which the
// next one may offer its buffer.
func (c *line) consume(n int, large bool) {
	due := c.flow.take(n)
	if c.flow.in.mem != nil {
		c.flow.in.clear()
	}
	if due && !(large && c.hold()) {
		c.report()
	}
}

// take counts n bytes as read, and reports whether something is due then.
func (f *flow) take(n int) (due bool) {
	at := f.in.consumed.Load() + uint64(n)
	release.Uint64(&f.in.consumed, at)
	switch {
	case !f.grantsDue() && !f.newsDue():
		return false
	case f.due():
		return true
	}
	f.in.consumed.Store(at) // once more, and locked: see flow
	return f.due()
}

// mayRead reports whether a reader has something to do.
func (c *line) mayRead() bool { return c.mustRead() || c.flow.due() }

// mustRead reports whether a reader has waited long enough.
func (c *line) mustRead() bool {
	return c.flow.in.produced.Load() != c.flow.in.consumed.Load() || c.flow.in.fin.Load() || c.ended.Load() != nil ||
		c.reader.passed.Load() || c.closed.Load()
}

// readError is the error of a Read: io.EOF as it is, others with the addresses.
func (c *Conn) readError(err error) error {
	if err == io.EOF {
		return err
	}
	return c.opError("read", err)
}
