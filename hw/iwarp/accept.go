package iwarp

import (
	"io"
	"net"
	"slices"
	"time"

	"godat/hw"
	"godat/hw/internal/reject"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
)

// request is a connection that asks for an answer.
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

// Local is our address on the connection.
func (r *request) Local() net.Addr { return r.conn.LocalAddr() }

// Remote is the asking side's address.
func (r *request) Remote() net.Addr { return r.conn.RemoteAddr() }

// Qual is the qualifier that the request came for.
func (r *request) Qual() uint64 { return r.qual }

// Accept answers the request, and reports Established when the initiator has
// shown that it is there. After an error the asking side has been refused.
func (r *request) Accept(qp hw.QP, private []byte) error {
	const op = "iwarp.Accept"
	if r == nil || !r.Take() {
		return answered(op)
	}
	l, err := r.answering(op, qp, private)
	if err != nil {
		r.decline()
		return err
	}
	r.dev.running.Add(1)
	go l.respond(r, slices.Clone(private))
	return nil
}

// answering finds the life that is to be connected, and begins it.
func (r *request) answering(op string, qp hw.QP, private []byte) (*life, error) {
	q, ok := qp.(*queuePair)
	if !ok || q == nil || q.dev != r.dev || q.life == nil {
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleEP, "not a queue pair of the listener's device")
	}
	if len(private) > r.dev.set.private {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "%d bytes of private data, of %d", len(private), r.dev.set.private)
	}
	if err := q.life.attempt(op); err != nil {
		return nil, err
	}
	return q.life, nil
}

// Reject refuses the request, without the private data if there is too much.
func (r *request) Reject(private []byte) error {
	const op = "iwarp.Reject"
	if r == nil || !r.Take() {
		return answered(op)
	}
	var err error
	if len(private) > r.dev.set.private {
		err = hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "%d bytes of private data, of %d", len(private), r.dev.set.private)
		private = nil
	}
	r.send(wire.MPAReply{
		Revision: r.frame.Revision, CRC: r.frame.CRC, Reject: true, Enhanced: r.frame.Enhanced, Private: private,
	})
	return err
}

func answered(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleCR, "the request has been answered")
}

// decline is the provider's own reject.
func (r *request) decline() {
	if !r.frame.Enhanced {
		_ = r.conn.Close() // nothing else tells it from the consumer's
		return
	}
	r.send(wire.MPAReply{
		Revision: r.frame.Revision, CRC: r.frame.CRC, Reject: true, Enhanced: true,
		Private: reject.ByProvider(),
	})
}

// send sends a reject, whose frame a connection takes at once or never will, from
// a goroutine of its own: the connection may have no buffer.
func (r *request) send(reply wire.MPAReply) {
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
	h, ok := r.conn.(interface{ CloseWrite() error })
	if !ok {
		return
	}
	_ = h.CloseWrite()
	// The initiator hangs up, so that nothing is lost. Of those that don't, only so
	// many are waited for.
	defer r.dev.rejecting.Add(-1)
	if r.dev.rejecting.Add(1) > int64(r.dev.set.halfOpen) {
		return
	}
	var b [64]byte
	for {
		if _, err := r.conn.Read(b[:]); err != nil {
			return
		}
	}
}

// respond is the goroutine of a connection that we accept: it becomes the
// receiver.
func (l *life) respond(r *request, private []byte) {
	defer l.dev.running.Done()
	l.qp.vacant()
	if !l.hold(r.conn, nil) {
		_ = r.conn.Close()
		return
	}
	agreed, reply, promised, err := l.answer(&r.frame, private)
	if err != nil {
		l.protest(r.conn, err)
		_ = r.conn.Close()
		l.refuse(hw.ReasonRejected, nil, attemptCause(err))
		return
	}
	l.rx.promised = promised
	l.deadlineBoth(l.dev.set.mpa)
	if _, err = r.conn.Write(reply.Append(nil)); err == nil && !l.start(agreed) {
		_ = r.conn.Close()
		return
	}
	if err != nil {
		_ = r.conn.Close()
		l.refuse(unheardOf(err), nil, attemptCause(err))
		return
	}
	if promised {
		l.deadline(l.dev.set.mpa)
	} else {
		l.deadline(l.dev.set.grace)
	}
	l.receive()
}

// deadlineBoth bounds the start-up, unless it is over.
func (l *life) deadlineBoth(d time.Duration) {
	l.mu.Lock()
	if !l.dead {
		_ = l.conn.SetDeadline(time.Now().Add(d))
	}
	l.mu.Unlock()
}

// firstFPDU tells that the connection is up, since the initiator has spoken; or
// has spoken enough, or may listen.
func (l *life) firstFPDU() bool {
	l.rx.heard = true
	l.deadline(l.rx.pulse)
	return l.establish(hw.ConnInfo{
		Local: l.conn.LocalAddr(), Remote: l.conn.RemoteAddr(),
		ReadsIn: l.agreed.readsIn, ReadsOut: l.agreed.readsOut,
	})
}

// unheard decides what it means that reading ended before the first FPDU; nil to
// go on. An initiator that has promised nothing may be silent for a while, or leave
// in order without a word: it has been connected.
func (l *life) unheard(err error) error {
	x := &l.rx
	if !x.promised && (isTimeout(err) || err == io.EOF && x.in.r == x.in.w) {
		if l.firstFPDU() {
			return nil
		}
		return errOver
	}
	l.die(hw.ReasonNone, nil, nil, verdict{})
	l.refuse(unheardOf(err), nil, attemptCause(err))
	return errOver
}

// unheardOf is why an initiator is lost before it has spoken.
func unheardOf(err error) hw.Reason {
	if isTimeout(err) {
		return hw.ReasonTimeout
	}
	return hw.ReasonUnreachable
}
