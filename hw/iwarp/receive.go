package iwarp

import (
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"godat/hw"
	"godat/hw/iwarp/wire"
	"godat/internal/yield"
)

// receiver is the receiving half of a connection: it places what the peer sends, and
// completes receives. Whoever has the right to read owns it: the goroutine that runs
// receive, or a consumer; see readRight. Before that goroutine runs, the start-up owns it,
// and once idleRecv is set the token's holder. The methods assert the owner, except
// those that run for each FPDU, because an assertion may take a microsecond (see
// owner.Goroutine).
type receiver struct {
	reader

	// Immutable.
	mem    access
	rq     *recvQueue // the poster fills it
	workFn func(fd uintptr) bool

	// Shared. touch is odd while the receiver touches memory.
	touch atomic.Uint64
	right readRight

	// Owned by the receiver.
	h        wire.Header
	pos      uint64 // position in a stream that has markers
	promised bool   // the initiator has promised a first FPDU
	kickDue  bool   // there is work for the sender
	err      error  // error of the socket
	end      error  // what ends the connection, in the peer's octets

	// The present message, which fills a receive.
	msn  uint32 // number of the message that is or was received last
	open bool   // the message is not complete
	got  uint32 // octets of the message so far
	room uint64 // octets of its receive, at most as many as a message may have
	msg  cursor
	wcs  [batch]hw.WC // completions of receives that are not handed out
	n    int          // number of completions in wcs

	// The peer's requests, and its responses to this end's.
	readMSN  uint32
	respMSN  uint32
	read     cursor // in the sink of this end's oldest read, once its response has begun
	readGot  uint32
	writing  bool   // in the middle of a write
	wrote    uint64 // octets of the write that is or was received last, until a message comes
	farewell bool   // the peer has sent a farewell

	// The target of the present segment.
	dst   *cursor // msg, read or place
	place cursor  // in a region that a write names
	one   [1]hw.SGE

	// The FPDU whose payload is read straight into memory; see direct.go.
	directing bool
	trailer   int  // where its trailer begins in the buffer
	length    int  // of its ULPDU
	payload   int  // octets of its payload
	dead      bool // its key has died
	parts     [][]byte
	vec       vector

	verdict verdict   // on this end's requests, by an error that the receiver has found
	failed  hw.Status // how the open receive fails, if it does
}

func (r *receiver) init(l *link, mem access, depth int) {
	r.link, r.mem, r.rq = l, mem, newRecvQueue(depth, l.qp.srq)
	r.workFn, r.right.pollFn = r.work, r.pollOnce
	r.right.mu.Lock()
}

// receive is the receiver's goroutine: it takes FPDUs until the connection is over,
// and then reads to the end of the stream.
func (r *receiver) receive() {
	defer close(r.link.rxDone)
	r.own.Acquire()
	if r.heard && r.patience() > 0 {
		r.limit(r.patience())
	}
	r.link.dev.poller.add(r)
	err := r.process()
	for err == nil {
		err = r.next()
	}
	r.link.dev.poller.remove(r)
	var fault *wire.Error
	if errors.As(err, &fault) {
		r.discard()
		if !r.heard { // the first FPDU was invalid
			r.link.refuse(hw.ReasonRejected, nil, faultCause(fault))
		}
	}
	r.in.drop()
	r.own.Release()
	r.link.attention.Or(idleRecv)
	yield.Point()
	r.link.kick(receiverBudget)
	r.discardRest()
}

// next waits until octets come, and processes them.
func (r *receiver) next() error {
	r.own.Check()
	r.err, r.end, r.right.mark = nil, nil, r.limits
	var err error
	if r.staged() {
		if err = r.fillStaged(); err == nil {
			r.end = r.process()
		}
	} else {
		err = r.raw.Read(r.workFn)
		r.resume()
	}
	switch {
	case r.end != nil:
		return r.end
	case r.err != nil:
		return r.readEnded(r.err)
	case err != nil && !r.outdated(err):
		return r.readEnded(err)
	}
	return nil
}

// work reads and processes what has come. It returns false to wait for more, and true
// if the receiver has to look at an error or a deadline. It runs inside the callback of
// RawConn.Read, so that a message costs one call of that.
func (r *receiver) work(fd uintptr) bool {
	r.resume()
	for r.err == nil && r.end == nil {
		again := r.readMore(int(fd))
		if again && r.link.dev.set.spin > 0 {
			again = r.spin(int(fd))
		}
		if again {
			r.park()
			return false
		}
		if r.err == nil {
			r.end = r.process()
		}
		if r.link.attention.Load()&(broken|bounded) != 0 {
			break
		}
	}
	return true
}

// readMore reads what has come, to where it belongs; again means that nothing has come.
func (r *receiver) readMore(fd int) (again bool) {
	if r.left > 0 {
		return r.readDirect(fd)
	}
	r.in.ready(r.need)
	n, again, err := readInto(fd, r.in.buf[r.in.w:])
	r.in.w += n
	r.seen = r.seen || n > 0
	r.err = err
	return again
}

// spin reads again and again, for the time of the parameter spin.
func (r *receiver) spin(fd int) (again bool) {
	for end := time.Now().Add(r.link.dev.set.spin); r.link.attention.Load()&broken == 0; {
		if again = r.readMore(fd); !again || time.Now().After(end) {
			return again
		}
		runtime.Gosched()
	}
	return true
}

// process handles the octets in the buffer, and hands out what they complete.
func (r *receiver) process() error {
	err := r.consume()
	r.emit()
	return err
}

// errOver says that there is nothing more to receive.
var errOver = errors.New("iwarp: over")

// readEnded decides what a read error means; nil means to go on.
func (r *receiver) readEnded(err error) error {
	r.own.Check()
	a := r.link.attention.Load()
	closed := err == io.EOF && r.in.r == r.in.w && r.left == 0 // in order: between two FPDUs
	switch {
	case a&broken != 0:
	case !r.heard:
		return r.endBeforeFirstFPDU(err)
	case a&finSent != 0 && (closed || a&bounded != 0 && isTimeout(err) || errors.Is(err, io.ErrClosedPipe)):
		r.link.die(ending{why: hw.ReasonDrained})
	case isTimeout(err) && r.nudgeAfter > 0 && !r.hurried && a&bounded == 0:
		r.nudgePeer()
		return nil
	case isTimeout(err) && r.pulseAfter > 0 && !r.hurried && a&bounded == 0:
		return r.checkPulse()
	case closed:
		r.link.die(ending{why: hw.ReasonPeer, farewell: r.farewell, partial: r.open || r.writing})
	default:
		r.link.die(ending{why: hw.ReasonBroken, cause: r.readCause(err)})
	}
	return errOver
}

// emit hands out the completions of receives, and kicks the token if there is work for
// the sender.
func (r *receiver) emit() {
	r.own.Check()
	if n := r.n; n > 0 {
		r.n = 0
		r.rq.freed.Store(r.rq.head)
		r.link.qp.cfg.RecvSink.Complete(r.wcs[:n])
	}
	if r.kickDue {
		r.kickDue = false
		r.link.kick(receiverBudget)
	}
}

// fault prepares the end of the connection that an error calls for. The Terminate is
// queued behind the responses that are due before it.
func (r *receiver) fault(err error, ulpdu []byte, length int) error {
	r.own.Check()
	var e *wire.Error
	if !errors.As(err, &e) {
		return err
	}
	if r.open && r.failed != hw.StatusSuccess {
		r.received(hw.WC{Status: r.failed, Op: hw.OpRecv})
		r.failed = hw.StatusSuccess
	}
	end := ending{why: hw.ReasonBroken, cause: faultCause(e), verdict: r.verdict}
	if e.Close {
		r.link.die(end)
		return e
	}
	end.term = terminate(e.Term, ulpdu, length)
	r.link.answers.push(response{kind: termination, end: end})
	r.kickDue = true
	return e
}

// discard reads and discards octets until the sender has sent the Terminate, because the
// peer may be unable to take the Terminate before this end takes what the peer sends.
func (r *receiver) discard() {
	r.own.Check()
	var b [512]byte
	r.limit(0)
	for r.link.attention.Load()&broken == 0 {
		if _, err := r.link.conn.Read(b[:]); err != nil {
			r.link.die(ending{why: hw.ReasonBroken, cause: r.readCause(err), verdict: r.verdict})
		}
	}
}

// flush completes the queue pair's receives with StatusFlushed; with a shared receive
// queue, only the one that a message has begun to fill. The token's holder calls it once
// idleRecv is set.
func (r *receiver) flush() {
	r.own.Acquire()
	defer r.own.Release()
	q, cfg, n := r.rq, &r.link.qp.cfg, 0
	if q.srq != nil && r.open {
		r.open = false
		r.wcs[0] = hw.WC{ID: q.drawn.ID, QP: cfg.Number, Status: hw.StatusFlushed, Op: hw.OpRecv}
		cfg.RecvSink.Complete(r.wcs[:1])
	}
	for q.head != q.tail.Load() {
		wr := &q.slots[q.head&q.mask]
		r.wcs[n] = hw.WC{ID: wr.ID, Status: hw.StatusFlushed, Op: hw.OpRecv}
		n++
		q.head++
		if n == batch || q.head == q.tail.Load() {
			q.freed.Store(q.head)
			cfg.RecvSink.Complete(r.wcs[:n])
			n = 0
		}
	}
}
