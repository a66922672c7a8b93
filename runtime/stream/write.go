package stream

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// Write writes p to the stream. It returns when the bytes are on their way: p is the
// caller's again. It waits while the peer's ring is full. An error comes with the number
// of bytes that were posted before. As with any io.Writer nobody may change p meanwhile: over
// iwarp with CRCs the peer would end the connection, because a CRC does not fit the bytes.
func (c *Conn) Write(p []byte) (n int, err error) { return c.write(p, true) }

// write is Write. Bytes that others may change meanwhile are not to be lent, since the
// device may read those twice; see [hw.Remapper].
func (c *Conn) write(p []byte, mayLend bool) (n int, err error) {
	if !c.made() {
		return 0, c.notMade("write")
	}
	if len(p) > 0 && len(p) <= maxInline && c.writeFew(p) {
		return len(p), nil
	}
	c.beginWrite()
	err = c.line.mayNotWrite()
	for err == nil && n < len(p) {
		var sent int
		if b := p[n:]; mayLend && c.line.flow.out.mayLend(len(b)) {
			sent, err = c.writeLent(b[:min(len(b), mostLent)])
		} else {
			sent, err = c.writeCopied(b)
		}
		n += sent
	}
	c.endWrite()
	if err != nil {
		err = c.opError("write", err)
	}
	return n, err
}

// writeFew writes the bytes of one message, if no call holds writing and nothing is to be
// waited for. It takes one lock where a Write takes three.
func (c *Conn) writeFew(p []byte) (ok bool) {
	c.line.sending.Lock()
	if c.line.mayWriteFew(len(p)) {
		ok = c.line.post(p, &message{}) == nil
	}
	c.line.sending.Unlock()
	return ok
}

// mayWriteFew reports whether a Write may send n bytes in one message now. The caller holds
// sending.
func (c *line) mayWriteFew(n int) bool {
	return !c.flow.out.held && c.mayNotWrite() == nil && !c.flow.out.mayAdopt() && c.flow.takes(n)
}

// beginWrite takes the writer's turn: no other call sends bytes until endWrite.
func (c *Conn) beginWrite() {
	c.writing.Lock()
	c.setHeld(true)
}

func (c *Conn) endWrite() {
	c.setHeld(false)
	c.writing.Unlock()
}

func (c *Conn) setHeld(held bool) {
	c.line.sending.Lock()
	c.line.flow.out.held = held
	c.line.sending.Unlock()
}

// writeCopied writes as many bytes of b as there is room for, within a message or by way
// of the image.
func (c *Conn) writeCopied(b []byte) (int, error) {
	room, err := c.room(len(b))
	if err != nil {
		return 0, err
	}
	b = b[:room]
	if room > maxInline {
		image := c.line.flow.place(room)
		copy(image, b)
		b = image
	}
	return c.send(b)
}

// WriteBuffers writes all buffers, as one stream of bytes: short ones travel together. It
// takes what it has written from bufs, as net.Buffers.WriteTo does.
func (c *Conn) WriteBuffers(bufs *net.Buffers) (total int64, err error) {
	if !c.made() {
		return 0, c.notMade("write")
	}
	c.beginWrite()
	defer c.endWrite()
	left := 0
	err = c.line.mayNotWrite()
	for _, b := range *bufs {
		left += len(b)
	}
	for err == nil && left > 0 {
		var room int
		if room, err = c.room(max(left, maxInline+1)); err == nil {
			b := c.line.flow.place(room)
			var sent int
			sent, err = c.send(b[:gather(b, *bufs)])
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

func gather(room []byte, bufs net.Buffers) (n int) {
	for _, b := range bufs {
		n += copy(room[n:], b)
	}
	return n
}

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
	if !c.made() {
		return 0, c.notMade("write")
	}
	c.beginWrite()
	defer c.endWrite()
	for {
		room, err := c.room(mostPiece)
		if err != nil {
			return total, c.opError("write", err)
		}
		b := c.line.flow.place(room)
		n, err := r.Read(b)
		if n < 0 || n > room {
			return total, fmt.Errorf("stream: a reader of %d bytes says that it read %d", room, n)
		}
		sent, failed := c.send(b[:n])
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
func (c *line) mayNotWrite() error {
	if c.writer.passed.Load() && !c.closed.Load() {
		return os.ErrDeadlineExceeded
	}
	return c.mayNotFinish()
}

// mayNotFinish says why a CloseWrite fails, which takes no time. A peer that has closed the
// connection, and an earlier CloseWrite, are EPIPE.
func (c *line) mayNotFinish() error {
	switch over := c.ended.Load(); {
	case c.closed.Load():
		return net.ErrClosed
	case over != nil && over.err == io.ErrUnexpectedEOF: //nolint:errorlint // of stop; the cause of a break may match it
		return syscall.EPIPE // the peer has closed the connection
	case over != nil:
		return over.err
	case c.flow.out.fin.Load():
		return syscall.EPIPE // this end has called CloseWrite
	}
	return nil
}

// room waits until some of the want bytes can be sent, and returns how many. More than
// maxInline wanted ones are to lie where place says, or to be lent.
func (c *Conn) room(want int) (int, error) {
	for {
		if err := c.line.mayNotWrite(); err != nil {
			return 0, err
		}
		c.line.flow.out.adopt()
		if want > maxInline && c.line.flow.out.lent == nil {
			if err := c.line.stage(want); err != nil {
				return 0, err
			}
		}
		if n := c.line.flow.vacant(want); n > 0 {
			return n, nil
		}
		c.line.report()
		c.line.flow.out.want = want
		c.line.wait(&c.line.writer, c.mayWrite)
	}
}

// place is where the next n bytes go, of as many as room has returned.
func (f *flow) place(n int) []byte {
	image := f.out.image.mem
	at := int(f.out.produced.Load()) & (len(image) - 1)
	return image[at : at+n]
}

// vacant returns how many bytes there is room for: half of the ring at most, so that the
// peer reads one half while the other is written. It is 0 while there is neither room for
// all that is wanted, nor for such a piece. That room comes: the peer reports each half of
// the ring that it has read, so a peer that has read everything leaves a half at least. A
// first ring is filled to its last byte: the peer then has half of it to read, for which it
// offers the second ring, though it has not reported what it read of the other half.
func (f *flow) vacant(want int) int {
	o := &f.out
	if f.credits() <= reportCredit {
		return 0
	}
	produced := o.produced.Load()
	if n := o.direct(want); n > 0 {
		return n
	}
	want = min(want, int(o.peer.Len/2), mostPiece)
	free := int(o.peer.Len) - int(produced-o.consumed.Load())
	if o.peer.Len == o.smallest && free > 0 {
		want = min(want, free)
	}
	if want > maxInline {
		size := int(o.peer.Len)
		if o.lent == nil {
			// The image's length divides the ring's: what lies in one piece here does there.
			size = len(o.image.mem)
			room := o.imageRoom()
			o.cramped = o.cramped || room < want && want <= free
			free = min(free, room)
		}
		want = min(want, size-int(produced)&(size-1))
	}
	if free < want {
		return 0
	}
	return want
}

// takes is vacant for the bytes of one message: whether there is room for all of them. More
// bytes may be unread than the ring has room for, since those in an offered buffer count.
func (f *flow) takes(n int) bool {
	o := &f.out
	return f.credits() > reportCredit && int(o.peer.Len)-int(o.produced.Load()-o.consumed.Load()) >= n
}

// mayWrite reports whether a writer has something to do.
func (c *Conn) mayWrite() bool {
	return c.line.mayNotWrite() != nil || c.line.flow.out.mayAdopt() || c.line.flow.vacant(c.line.flow.out.want) > 0 || c.line.flow.due()
}
