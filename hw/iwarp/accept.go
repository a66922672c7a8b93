package iwarp

import (
	"cmp"
	"io"
	"net"
	"slices"
	"time"

	"godat/hw"
	"godat/hw/internal/reject"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
	"godat/internal/labels"
)

// request is a peer's request to connect, with the connection on which it came.
type request struct {
	// Immutable.
	dev   *device
	conn  net.Conn
	frame wire.MPARequest
	qual  uint64

	soft.Request
}

// Private returns the data that came with the request; it is never truncated.
func (r *request) Private() (data []byte, truncated bool) { return r.frame.Private, false }

// Local is the address of this end of the connection.
func (r *request) Local() net.Addr { return r.conn.LocalAddr() }

// Remote is the asking side's address.
func (r *request) Remote() net.Addr { return r.conn.RemoteAddr() }

// Qual is the qualifier that the request came for.
func (r *request) Qual() uint64 { return r.qual }

// Accept answers the request. The connection reports Established when the initiator has
// sent an FPDU, or after the time grace if the initiator has promised none. When Accept
// fails, it refuses the request.
func (r *request) Accept(qp hw.QP, private []byte) error {
	q, own := soft.Own[*queuePair](qp)
	if err := r.Request.Accept(own, private, r.decline); err != nil {
		return err
	}
	r.dev.running.Add(1)
	go q.conn.respond(r, slices.Clone(private))
	return nil
}

// Reject refuses the request, without the private data if there is too much.
func (r *request) Reject(private []byte) error {
	return r.Request.Reject(private, r.send)
}

// decline refuses the request as the provider.
func (r *request) decline() {
	if !r.frame.Enhanced {
		_ = r.conn.Close() // a reject without enhanced data would look like the program's
		return
	}
	r.send(reject.ByProvider())
}

// send sends a reject from a goroutine of its own, because the write may block: the
// connection may have no buffer, and the peer may not read.
func (r *request) send(private []byte) {
	reply := wire.MPAReply{
		Revision: r.frame.Revision, CRC: r.frame.CRC, Reject: true, Enhanced: r.frame.Enhanced, Private: private,
	}
	r.dev.running.Add(1)
	go r.reject(reply.Append(nil))
}

func (r *request) reject(frame []byte) {
	defer r.dev.running.Done()
	defer r.conn.Close()
	_ = r.conn.SetDeadline(time.Now().Add(r.dev.set.linger))
	if _, err := r.conn.Write(frame); err != nil {
		return
	}
	_ = closeWrite(r.conn)
	// Wait until the initiator closes the connection: if this end closed it first, the
	// reject might be lost. The parameter halfopen bounds how many goroutines wait here.
	defer r.dev.rejecting.Add(-1)
	if r.dev.rejecting.Add(1) > int64(cmp.Or(r.dev.set.halfOpen, leastHalfOpen)) {
		return
	}
	_, _ = io.Copy(io.Discard, r.conn)
}

var connectionLabel = labels.Of("iwarp: a connection")

// respond is the goroutine of a connection that this end accepts. It becomes the
// receiver's goroutine.
func (c *connection) respond(r *request, private []byte) {
	connectionLabel.Set()
	defer c.dev.running.Done()
	c.qp.awaitEndReports()
	if !c.adopt(r.conn, nil) {
		_ = r.conn.Close()
		return
	}
	agreed, reply, promised, err := c.terms().answer(&r.frame, private)
	if err != nil {
		c.sendTerminate(r.conn, err)
		_ = r.conn.Close()
		c.refuse(hw.ReasonRejected, nil, attemptCause(err))
		return
	}
	c.recv.promised = promised
	c.limitBoth(c.dev.set.mpa)
	if _, err = r.conn.Write(reply.Append(nil)); err == nil && !c.start(agreed) {
		_ = r.conn.Close()
		return
	}
	if err != nil {
		_ = r.conn.Close()
		c.refuse(reasonBeforeFirstFPDU(err), nil, attemptCause(err))
		return
	}
	if promised {
		c.limitRead(c.dev.set.mpa)
	} else {
		c.limitRead(c.dev.set.grace)
	}
	c.recv.receive()
}

// limitBoth bounds both directions of the start-up, unless the connection is over.
func (c *connection) limitBoth(d time.Duration) {
	c.Mu.Lock()
	if !c.Dead {
		_ = c.conn.SetDeadline(time.Now().Add(d))
	}
	c.Mu.Unlock()
}

// firstFPDU reports that the connection is up: the initiator has sent an FPDU, or the
// time for it is over.
func (r *receiver) firstFPDU() {
	r.own.Check()
	r.heard = true
	r.limit(r.pulseAfter)
	r.link.establish(nil)
}

// endBeforeFirstFPDU decides what a read error before the first FPDU means; nil means to
// go on. An initiator that has promised nothing may be silent, or end its stream in order
// before it sends anything: in both cases the connection was up.
func (r *receiver) endBeforeFirstFPDU(err error) error {
	r.own.Check()
	if !r.promised && (expired(err) || err == io.EOF && r.in.r == r.in.w) {
		r.firstFPDU()
		return nil
	}
	if expired(err) && r.link.attention.Load()&bounded == 0 && isLate(r.link.lateness(), r.link.dev.set.mpa) {
		r.limit(r.link.dev.set.mpa)
		return nil
	}
	r.link.die(ending{why: hw.ReasonNone})
	r.link.refuse(reasonBeforeFirstFPDU(err), nil, attemptCause(err))
	return errOver
}

// reasonBeforeFirstFPDU is the reason of an attempt that lost its initiator before the
// first FPDU.
func reasonBeforeFirstFPDU(err error) hw.Reason {
	if isTimeout(err) {
		return hw.ReasonTimeout
	}
	return hw.ReasonUnreachable
}
