package iwarp

import (
	"errors"
	"io"
	"time"

	"godat/hw"
	"godat/hw/iwarp/wire"
	"godat/internal/yield"
)

// receiving is the receiver's state.
type receiving struct {
	in       inbuf
	first    [firstSize]byte
	need     int // size of the FPDU that is incomplete, as far as known
	h        wire.Header
	pos      uint64 // in the stream, where it has markers
	heard    bool   // an FPDU has come, or none need
	promised bool   // the initiator will send one
	hurried  bool   // the rest of an FPDU may take so long
	kick     bool   // the token's holder has to look at something

	nudge time.Duration // to the next one, if there will be one; see nudge.go

	// See pulse.go.
	pulse  time.Duration
	seen   bool // octets have come since the last look
	silent int  // looks in a row that have found none

	head    uint64 // the next receive to take
	msn     uint32 // of the message that is or was received last
	readMSN uint32
	respMSN uint32
	open    bool   // a message is being received
	got     uint32 // octets of it
	room    uint64 // octets of its receive, at most as many as a message may have
	msg     cursor
	read    cursor // of our oldest read, once its response has begun
	readGot uint32
	place   cursor
	dst     *cursor // the one that the segment at hand fills
	one     [1]hw.SGE

	writing  bool   // in the middle of a write
	farewell bool   // the peer has said that it leaves in order
	wrote    uint64 // octets of the write that is or was received last, until a message comes

	drawn hw.RecvWR // the receive of the message at hand, from a shared queue

	wcs [batch]hw.WC
	n   int

	verdict verdict   // what an error of ours or of the peer's means to our requests
	failed  hw.Status // what becomes of the open receive

	// For the callbacks of a raw connection.
	fillFn, directFn func(fd uintptr) bool
	err              error
	dead             bool // memory was gone
	left             int  // of a payload that is read directly
	parts            [][]byte
	vec              vector
}

// receive is the receiver: it takes FPDUs until the connection is over, and then
// reads to the end of the stream.
func (l *life) receive() {
	defer close(l.rxDone)
	x := &l.rx
	x.fillFn, x.directFn = l.doFill, l.doDirect
	if x.heard && x.patience() > 0 {
		l.deadline(x.patience())
	}
	for {
		err := l.consume()
		if err == nil {
			l.emit()
			if err = l.fill(); err == nil {
				continue
			}
			if err = l.ended(err); err == nil {
				continue
			}
		}
		var fault *wire.Error
		if errors.As(err, &fault) {
			l.emit()
			l.discard()
			if !x.heard { // the first FPDU was none
				l.refuse(hw.ReasonRejected, nil, faultCause(fault))
			}
		}
		break
	}
	l.emit()
	x.in.drop()
	l.attention.Or(idleRecv)
	yield.Point()
	l.kick(receiverBudget)
	l.sink()
}

// errOver says that there is nothing more to receive.
var errOver = errors.New("iwarp: over")

// ended decides what the end of reading means; nil to go on.
func (l *life) ended(err error) error {
	x := &l.rx
	a := l.attention.Load()
	closed := err == io.EOF && x.in.r == x.in.w && x.left == 0 // in order: between two FPDUs
	switch {
	case a&broken != 0:
	case !x.heard:
		return l.unheard(err)
	case a&finSent != 0 && (closed || a&bounded != 0 && isTimeout(err) || errors.Is(err, io.ErrClosedPipe)):
		l.die(hw.ReasonDrained, nil, nil, verdict{})
	case isTimeout(err) && x.nudge > 0 && !x.hurried && a&bounded == 0:
		l.nudge()
		return nil
	case isTimeout(err) && x.pulse > 0 && !x.hurried && a&bounded == 0:
		return l.look()
	case closed:
		l.die(hw.ReasonPeer, nil, nil, verdict{})
	default:
		l.die(hw.ReasonBroken, l.readCause(err), nil, verdict{})
	}
	return errOver
}

// emit hands out the receives that are complete, and sees to it that the token's
// holder hears of what came.
func (l *life) emit() {
	x := &l.rx
	if n := x.n; n > 0 {
		x.n = 0
		l.rq.freed.Store(x.head)
		l.qp.cfg.RecvSink.Complete(x.wcs[:n])
	}
	if x.kick {
		x.kick = false
		l.kick(receiverBudget)
	}
}

// consume handles the FPDUs at hand.
func (l *life) consume() error {
	x := &l.rx
	for {
		b := x.in.bytes()
		if l.agreed.markersIn {
			ulpdu, n, err := wire.ParseMarkedFPDU(b[:0], b, x.pos, l.agreed.crc)
			if err == wire.ErrIncomplete {
				x.need = readSize / 2
				return nil
			}
			if err != nil {
				return l.fault(err, nil, 0)
			}
			if err = l.handle(ulpdu); err != nil {
				return err
			}
			x.pos += uint64(n)
			x.in.r += n
			l.relax()
			continue
		}
		if len(b) < wire.FPDULengthSize {
			x.need = wire.MaxFramedHeaderSize
			return nil
		}
		length := wire.ULPDULength(b)
		x.need = wire.FPDUSize(length)
		if len(b) < x.need {
			done, err := l.direct(b, length)
			if err != nil {
				return err
			}
			if done {
				l.relax()
				continue
			}
			return nil
		}
		ulpdu, n, err := wire.ParseFPDU(b, l.agreed.crc)
		if err != nil {
			return l.fault(err, nil, 0)
		}
		if err = l.handle(ulpdu); err != nil {
			return err
		}
		x.in.r += n
		l.relax()
	}
}

// handle takes one whole ULPDU.
func (l *life) handle(ulpdu []byte) error {
	x := &l.rx
	if !x.heard && !l.firstFPDU() {
		return errOver
	}
	n, err := x.h.Parse(ulpdu, len(ulpdu))
	if err != nil {
		return l.fault(err, ulpdu, len(ulpdu))
	}
	payload := ulpdu[n:]
	if err := l.arrive(&x.h, payload); err != nil {
		return l.fault(err, ulpdu, len(ulpdu))
	}
	return nil
}

// arrive takes a segment with its payload.
func (l *life) arrive(h *wire.Header, payload []byte) error {
	if !carries(h.Opcode) {
		return l.control(h, payload)
	}
	if err := l.begin(h, len(payload)); err != nil {
		return err
	}
	if !l.store(payload) {
		return l.storeFault(h.Opcode)
	}
	return l.finishSegment(h, len(payload))
}

// carries reports whether a message's payload goes to memory.
func carries(op wire.Opcode) bool {
	return op == wire.OpWrite || op == wire.OpReadResponse || op.Send()
}

// begin checks a segment of n octets and finds where they go.
func (l *life) begin(h *wire.Header, n int) error {
	switch h.Opcode {
	case wire.OpWrite:
		return l.beginWrite(h, n)
	case wire.OpReadResponse:
		return l.beginReadResponse(h, n)
	default:
		return l.beginSend(h, n)
	}
}

// finishSegment notes that a segment is in its place.
func (l *life) finishSegment(h *wire.Header, n int) error {
	switch h.Opcode {
	case wire.OpWrite:
		l.finishWrite(h, n)
		return nil
	case wire.OpReadResponse:
		l.finishReadResponse(h, n)
		return nil
	default:
		return l.finishSend(h, n)
	}
}

// store copies octets to where begin has found; false when the memory is gone.
func (l *life) store(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	x := &l.rx
	l.touch.Add(1)
	for len(b) > 0 {
		mem := l.rest(x.dst, len(b))
		if mem == nil {
			l.touch.Add(1)
			return false
		}
		yield.Point()
		n := copy(mem, b)
		x.dst.off += uint32(n)
		b = b[n:]
	}
	l.touch.Add(1)
	return true
}

// fault prepares the end that an error calls for. A Terminate waits for the
// responses that are due before it.
func (l *life) fault(err error, ulpdu []byte, length int) error {
	x := &l.rx
	var e *wire.Error
	if !errors.As(err, &e) {
		return err
	}
	if x.open && x.failed != hw.StatusSuccess {
		l.received(hw.WC{Status: x.failed, Op: hw.OpRecv})
		x.failed = hw.StatusSuccess
	}
	if e.Close {
		l.die(hw.ReasonBroken, faultCause(e), nil, x.verdict)
		return e
	}
	l.answers.push(response{
		kind: termination, term: terminate(e.Term, ulpdu, length), cause: faultCause(e), verdict: x.verdict,
	})
	x.kick = true
	return e
}

// discard reads and forgets until the Terminate is on its way.
func (l *life) discard() {
	var b [512]byte
	l.deadline(0)
	for l.attention.Load()&broken == 0 {
		if _, err := l.conn.Read(b[:]); err != nil {
			l.die(hw.ReasonBroken, l.readCause(err), nil, l.rx.verdict)
		}
	}
}

// deadline sets how long the receiver waits; 0 is for ever.
func (l *life) deadline(d time.Duration) {
	var t time.Time
	if d > 0 {
		t = time.Now().Add(d)
	}
	l.mu.Lock()
	if !l.dead && l.attention.Load()&bounded == 0 {
		_ = l.conn.SetReadDeadline(t)
	}
	l.mu.Unlock()
}

// hurry limits how long the rest of an FPDU may take; relax lifts that when it
// has come.
func (l *life) hurry() {
	x := &l.rx
	if x.heard && !x.hurried && (x.left > 0 || x.in.r != x.in.w) {
		x.hurried = true
		l.deadline(l.dev.set.stall)
	}
}

func (l *life) relax() {
	if l.rx.hurried {
		l.rx.hurried = false
		l.deadline(l.rx.patience())
	}
}
