package iwarp

import (
	"io"
	"os"
	"time"

	"godat/hw"
	"godat/internal/owner"
)

// reader is the receiving half of the socket: the octets that have come and are not
// consumed, and how long to wait for more. The receiver owns it, and its part inPlace uses it, too.
type reader struct {
	// Immutable once begun.
	link *link
	port *port // the sender's

	// Owned by the receiver.
	own     owner.Tag
	in      inbuf
	first   *[firstSize]byte // of a staged connection
	need    int              // size of the incomplete FPDU, as far as known
	left    int              // octets of a payload that are still to be read straight into memory
	scant   bool             // the next read into the buffer asks for few octets, as the last one got few
	emptied bool             // the last read got less than it asked for
	heard   bool             // an FPDU has come, or none is awaited; until then the start-up's limits count
	hurried bool             // the rest of an FPDU is awaited; see rest
	seen    bool             // octets have come since the last look
	err     error            // of the socket

	limits     int           // how often limit was called
	nudgeAfter time.Duration // until the next nudge, 0 for none; see nudge.go
	pulseAfter time.Duration // until the next look at seen, 0 for none; see pulse.go
	silent     int           // looks in a row that have found none
	quiet      time.Time     // when the last one before them was
	flow       flow          // the looks'
	carrier    judge         // of the peer's system, which may not take nothing for the time keepalive
	rest       judge         // of the rest of an FPDU, which may take the time stall
	told       time.Duration // what the owner knows of that
}

// fillStaged reads the octets that come on a staged connection: the receiver waits in
// Read, with a small buffer while no part of an FPDU has come.
func (r *reader) fillStaged() error {
	r.own.Check()
	r.limitRest()
	r.in.release()
	if r.first == nil {
		r.first = new([firstSize]byte)
	}
	b, small := r.first[:], r.in.buf == nil
	if !small {
		r.in.ready(r.need)
		b = r.in.buf[r.in.w:]
	}
	n, err := r.link.conn.Read(b)
	r.link.came(b[:n], err)
	switch {
	case n == 0 && err == nil:
		return io.ErrNoProgress
	case n == 0:
		return err
	case small:
		r.in.ready(r.need)
		copy(r.in.buf, b[:n])
	}
	r.in.w += n
	r.seen = true
	return nil
}

// limit sets how long the receiver waits for the socket; 0 means without a limit.
func (r *reader) limit(d time.Duration) {
	r.own.Check()
	r.limits++
	r.link.limitRead(d)
}

// partial reports whether a part of an FPDU has come.
func (r *reader) partial() bool { return r.left > 0 || r.in.r != r.in.w }

// limitRest limits how long the rest of an FPDU may take, if a part of the FPDU has come.
func (r *reader) limitRest() {
	r.own.Check()
	if r.heard && !r.hurried && r.partial() {
		r.hurried = true
		r.rest.begin(r.link.dev.set.stall / looks)
		r.limit(r.rest.each)
	}
}

// lookForRest is a look while the rest of an FPDU is awaited. It returns nil to go on.
func (r *reader) lookForRest() error {
	r.own.Check()
	if !unread(r.link.conn) && r.rest.look(r.link.lateness(), false) { // or nobody has read what the peer has sent
		r.link.die(ending{why: hw.ReasonBroken, cause: r.readCause(os.ErrDeadlineExceeded)})
		return errOver
	}
	r.limit(r.rest.each)
	return nil
}

// unlimitRest removes the limit when the rest of the FPDU has come.
func (r *reader) unlimitRest() {
	if r.hurried {
		r.hurried = false
		r.limit(r.patience())
	}
}

// discardRest reads to the end of the stream, or until the time linger is over.
func (r *reader) discardRest() {
	r.link.Mu.Lock() // so that die sets its deadline before this one
	conn := r.link.conn
	r.link.Mu.Unlock()
	inTime(r.link.dev.set.linger, conn.SetReadDeadline, func() error {
		_, err := io.Copy(io.Discard, rest{r.link})
		return err
	})
}
