package iwarp

import (
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/internal/sock"
	"godat/hw/iwarp/wire"
	"godat/internal/yield"
)

// receiver is the receiving half of a connection: it reads octets from the socket, finds
// the FPDUs in them (consume.go), and gives their segments to the placer. Its part inPlace reads large
// payloads straight into memory.
//
// The holder of the right to read owns it: the goroutine that runs receive, a consumer or a
// watcher (package sock). Before that goroutine runs, the start-up owns it, and once idleRecv is set
// the token's holder does. The methods assert the owner, except
// those that run for each FPDU, because an assertion may take a microsecond (see
// owner.Goroutine).
type receiver struct {
	reader

	// Immutable.
	workFn func(fd uintptr) bool

	// Shared.
	right sock.Right

	// Owned by the receiver.
	place    placer
	h        wire.Header
	pos      uint64 // position in a stream that has markers
	warned   bool   // a hang-up makes the receiver read on
	promised bool   // the initiator has promised a first FPDU
	end      error  // what ends the connection, in the peer's octets
	inPlace  inPlace
	parties  parties
}

func (r *receiver) init(l *link, mem soft.View, depth int) {
	r.link = l
	r.place.init(l, mem, depth, &r.own)
	r.inPlace.reader, r.inPlace.place = &r.reader, &r.place
	r.workFn, r.parties.r = r.work, r
	r.parties.pollFn, r.parties.watchFn = r.parties.pollOnce, r.parties.watchRead
	r.right.Init()
	l.right = &r.right
}

// receive is the receiver's goroutine: it takes FPDUs until the connection is over,
// and then reads to the end of the stream.
func (r *receiver) receive() {
	defer close(r.link.rxDone)
	r.own.Acquire()
	r.quiet = time.Now()
	r.carrier.begin(r.pulseAfter)
	if r.heard && r.patience() > 0 {
		r.limit(r.patience())
	}
	if !r.port.staged() {
		r.link.dev.poller.Add(&r.parties)
		r.right.Begin()
		r.warned = r.link.dev.hangups.Add(&r.parties)
	}
	err := r.process()
	for err == nil {
		err = r.next()
	}
	r.link.dev.poller.Remove(&r.parties)
	r.link.dev.hangups.Remove(&r.parties)
	r.right.End()
	r.link.settle()
	r.mayTrace()
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
	r.link.kick(byReceiver)
	r.discardRest()
}

// mayTrace lets a trace of what comes begin. No FPDU in the buffer has been consumed in part.
func (r *receiver) mayTrace() {
	if t := r.link.tap.Load(); t != nil {
		t.begin(r)
	}
}

// next waits until octets come, and processes them.
func (r *receiver) next() error {
	r.own.Check()
	r.err, r.end, r.parties.mark = nil, nil, r.limits
	var err error
	if r.port.staged() {
		r.atRest()
		if err = r.fillStaged(); err == nil {
			r.end = r.process()
		}
	} else {
		err = r.port.raw.Read(r.workFn)
		r.parties.resume()
		if err != nil {
			if r.link.settle() {
				err = nil // an interrupt, for a watcher
			}
			r.parties.answerAsked()
		}
	}
	switch {
	case r.end != nil:
		return r.end
	case r.err != nil:
		return r.readEnded(r.err)
	case err != nil && !r.parties.outdated(err):
		return r.readEnded(err)
	}
	return nil
}

// work reads and processes what has come. It returns false to wait for more, and true
// if the receiver has to look at an error or a deadline. It runs inside the callback of
// RawConn.Read, so that a message costs one call of that.
func (r *receiver) work(fd uintptr) bool {
	r.parties.resume()
	for r.err == nil && r.end == nil {
		if r.readMore(int(fd)) {
			r.parties.park()
			return false
		}
		if r.err == nil {
			r.end = r.process()
		}
		if r.link.attention.Load()&(broken|bounded) != 0 {
			break
		}
		if r.dry() {
			r.inPlace.pause()
			r.parties.park()
			return false
		}
	}
	return true
}

// dry reports whether the last read has emptied the socket, so that the next one would get
// nothing; see [sock.HangUps].
func (r *receiver) dry() bool {
	return r.emptied && r.warned && !r.right.Hung() && r.err == nil && r.end == nil
}

// readMore reads what has come, to where it belongs; again means that nothing has come.
func (r *receiver) readMore(fd int) (again bool) {
	if r.left > 0 {
		return r.inPlace.read(fd)
	}
	r.in.ready(r.need)
	b := r.in.buf[r.in.w:]
	if r.scant && r.need-(r.in.w-r.in.r) <= brief {
		b = b[:min(len(b), brief)]
	}
	n, again, err := readInto(fd, b)
	r.link.came(b[:n], err)
	r.emptied = n < len(b)
	if again {
		r.inPlace.pause()
	} else {
		r.scant = n < brief
	}
	r.in.w += n
	r.seen = r.seen || n > 0
	r.err = err
	return again
}

// process handles the octets in the buffer, and hands out what they complete.
func (r *receiver) process() error {
	err := r.consume()
	r.inPlace.trailer -= r.in.unspill()
	r.place.emit()
	return err
}

// errOver says that there is nothing more to receive.
var errOver = errors.New("iwarp: over")

// readEnded decides what a read error means; nil means to go on.
func (r *receiver) readEnded(err error) error {
	r.own.Check()
	a := r.link.attention.Load()
	// In order: between two FPDUs. A peer whose farewell has come left in order, too, if its
	// system has reset the connection because of what the peer did not read any more.
	closed := (err == io.EOF || r.place.farewell && errors.Is(err, syscall.ECONNRESET)) && !r.partial()
	switch {
	case a&broken != 0:
	case !r.heard:
		return r.endBeforeFirstFPDU(err)
	case a&bounded != 0 && expired(err) && isLate(r.link.lateness(), r.link.dev.set.linger):
		r.link.limitEnd()
		return nil
	case a&finSent != 0 && (closed || a&bounded != 0 && expired(err) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed)): // closeWrite has closed a connection without halves
		r.link.die(ending{why: hw.ReasonDrained})
	case expired(err) && a&bounded == 0 && r.hurried:
		return r.lookForRest()
	case expired(err) && a&bounded == 0 && r.nudgeAfter > 0:
		r.nudgePeer()
		return nil
	case expired(err) && a&bounded == 0 && r.pulseAfter > 0:
		return r.checkPulse()
	case closed:
		r.link.die(ending{why: hw.ReasonPeer, farewell: r.place.farewell, partial: r.place.open || r.place.writing})
	default:
		r.link.die(ending{why: hw.ReasonBroken, cause: r.readCause(err)})
	}
	return errOver
}

// fault prepares the end of the connection that an error calls for. The Terminate is
// queued behind the responses that are due before it.
func (r *receiver) fault(err error, ulpdu []byte, length int) error {
	r.own.Check()
	var e *wire.Error
	if !errors.As(err, &e) {
		return err
	}
	end := ending{why: hw.ReasonBroken, cause: r.place.causeOf(e), verdict: r.place.verdict}
	if p := &r.place; p.open && p.failed != hw.StatusSuccess {
		p.received(hw.OpRecv, 0).Status = p.failed
		p.failed = hw.StatusSuccess
	}
	if e.Close {
		r.link.die(end)
		return e
	}
	end.term = terminate(e.Term, ulpdu, length)
	r.link.answers.push(response{kind: termination, end: &end})
	r.place.kickDue = true
	return e
}

// discard reads and discards octets until the sender has sent the Terminate, because the
// peer may be unable to take the Terminate before this end takes what the peer sends.
func (r *receiver) discard() {
	r.own.Check()
	var b [512]byte
	r.limit(0)
	for r.link.attention.Load()&broken == 0 {
		if _, err := (rest{r.link}).Read(b[:]); err != nil {
			r.link.die(ending{why: hw.ReasonBroken, cause: r.readCause(err), verdict: r.place.verdict})
		}
	}
}
