package iwarp

import (
	"errors"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// job is what the sender is to do.
type job struct {
	kind jobKind
	n    int   // what came of it
	err  error // what came of it
	told bool  // and that has been looked at
}

type jobKind uint8

const (
	jobNone   jobKind = iota
	jobMore           // go on: the holder has done enough
	jobWait           // until the socket takes more
	jobWrite          // the outbox, on a connection without a descriptor
	jobFinish         // close our half
	jobEnd            // finish and close
)

// give gives the sender something to do. It has nothing to do.
func (l *life) give(kind jobKind) {
	l.job = job{kind: kind}
	l.busy.Store(true)
	if l.wake == nil { // most connections need it at their end alone
		l.wake = make(chan struct{}, 1)
		go l.transmit()
	}
	l.wake <- struct{}{}
}

// step does what there is to do for the token's holder.
func (l *life) step(budget int) {
	l.tx.patient = budget == senderBudget
	for {
		if a := l.attention.Load(); a&broken != 0 {
			l.end()
			return
		} else if a&asking != 0 {
			l.inquire()
		} else if a&nudging != 0 {
			l.sendNudge()
		}
		if l.busy.Load() {
			l.complete()
			return
		}
		l.collect()
		l.complete()
		if l.tx.failed && l.tx.head == l.tx.failAt {
			l.die(hw.ReasonBroken, l.ownFailure(), localTerminate(), verdict{})
			continue
		}
		if l.tx.mute {
			return
		}
		if l.out.empty() && !l.assemble() {
			l.complete() // binds have nothing to be written
			if l.tx.unsettled {
				l.tx.unsettled = false
				l.give(jobMore)
				return
			}
			l.idle()
			if l.attention.Load()&broken != 0 {
				continue
			}
			if l.tx.failed && l.tx.head == l.tx.failAt || l.tx.rtrDue {
				continue
			}
			return
		}
		if l.port.staged {
			l.give(jobWrite)
			return
		}
		if !l.write(&budget) {
			return
		}
	}
}

// write writes what the socket takes; false when the sender has to go on.
func (l *life) write(budget *int) bool {
	if l.tx.resumed {
		l.tx.resumed = false
		if l.recheck(); l.out.empty() {
			l.out.release()
			return true
		}
	}
	n, err := l.port.write(&l.out)
	if n > 0 {
		l.out.advance(n)
		*budget -= n
	}
	full := err == nil && !l.out.empty()
	if full {
		l.out.bounce()
		l.tx.resumed = true
	}
	l.moved()
	switch {
	case err != nil:
		l.fallMute(err)
	case full:
		l.complete()
		l.give(jobWait)
		return false
	case *budget <= 0:
		l.complete()
		l.give(jobMore)
		return false
	}
	return true
}

// recheck looks up the keys of what is to be written again, and cuts off what is
// gone. A half-written FPDU is a copy by now.
func (l *life) recheck() {
	for k := l.out.first; k < len(l.out.pieces); k++ {
		p := &l.out.pieces[k]
		if p.key == 0 || l.reach(p.addr, uint32(len(p.mem)), p.key, p.need) != nil {
			continue
		}
		i := len(l.out.frames) - 1
		for l.out.frames[i].piece >= k { // its header is in a piece before
			i--
		}
		f := l.out.frames[i]
		l.out.cut(i)
		l.lost(f.slot, f.response)
		return
	}
}

// collect takes in what the sender has done. An interruption by die says nothing of
// the connection, which has still to take what is half written, and the Terminate.
func (l *life) collect() {
	if l.job.told {
		return
	}
	l.job.told = true
	if l.job.n > 0 {
		l.out.advance(l.job.n)
	}
	if err := l.job.err; err != nil && !(isTimeout(err) && l.attention.Load()&broken != 0) {
		l.fallMute(err)
	}
}

// fallMute is for when the connection takes nothing more. Why that is, the
// receiver finds out: the peer's last word, or its orderly end, may be there to
// be read.
func (l *life) fallMute(err error) {
	l.tx.mute = true
	l.mu.Lock()
	if l.sendErr == nil {
		l.sendErr = err
	}
	l.mu.Unlock()
	l.bound()
}

// idle settles what waits for nothing being left to send.
func (l *life) idle() {
	t := &l.tx
	switch {
	case t.lastDue:
		l.die(hw.ReasonBroken, t.cause, t.last, t.verdict)
	case t.finished:
	case l.attention.Load()&draining == 0 || t.head != l.sq.Tail.Load():
	case l.agreed.extended && !t.farewell:
		t.farewell, t.rtr, t.rtrDue = true, wire.OpWrite, true
	default:
		t.finished = true
		l.give(jobFinish)
	}
}

// complete hands out what has succeeded, in order.
func (l *life) complete() {
	t, q, n := &l.tx, l.sq, 0
	from := t.head
	for t.head < t.next {
		i := t.head & q.Mask
		if r := q.reads[i]; r != 0 {
			if r > l.reads.done.Load() {
				break
			}
		} else if q.ends[i] > l.out.written {
			break
		}
		wr := &q.Slots[i]
		if wr.Flags&hw.WRSignaled != 0 {
			op := wr.Op
			if op == hw.OpSendInvalidate {
				op = hw.OpSend
			}
			l.wcs[n] = hw.WC{ID: wr.ID, Len: uint32(total(wr.SGL)), Op: op}
			n++
		}
		t.head++
		if n == batch {
			q.Freed.Store(t.head)
			l.qp.cfg.SendSink.Complete(l.wcs[:n])
			n = 0
		}
	}
	if t.head == from {
		return
	}
	q.Freed.Store(t.head)
	if n > 0 {
		l.qp.cfg.SendSink.Complete(l.wcs[:n])
	}
}

// transmit is the sender: it does what blocks, and then makes sure that somebody
// goes on.
func (l *life) transmit() {
	defer l.dev.running.Done()
	for range l.wake {
		switch l.job.kind {
		case jobWait:
			l.job.err = l.await()
		case jobWrite:
			l.job.n, l.job.err = l.writeStaged()
		case jobFinish:
			l.closeHalf()
		case jobEnd:
			l.undertake()
			return
		default: // woken for nothing
		}
		l.busy.Store(false)
		l.kick(senderBudget)
	}
}

// await waits until the socket takes more.
func (l *life) await() error {
	l.limitWrite(true)
	err := l.port.await()
	l.limitWrite(false)
	return err
}

// writeStaged writes the outbox, which nobody else touches meanwhile.
func (l *life) writeStaged() (n int, err error) {
	l.limitWrite(true)
	for i := range l.out.pieces {
		k, err := l.conn.Write(l.out.pieces[i].mem)
		n += k
		if err != nil {
			return n, err
		}
	}
	l.limitWrite(false)
	return n, nil
}

// errStaged says that a frame had memory in it where none may be.
var errStaged = errors.New("iwarp: memory in a staged frame")

// appendEnd appends what has still to be written of a half-written FPDU, and the
// Terminate.
func (l *life) appendEnd(dst, term []byte) ([]byte, error) {
	o := &l.out
	pos := o.written
	if i, half := o.current(); half {
		left, skip := int(o.frames[i].end-o.written), o.skip
		pos = o.frames[i].end
		for k := o.first; left > 0; k++ {
			p := &o.pieces[k]
			if p.key != 0 {
				return nil, errStaged
			}
			mem := p.mem[skip:]
			mem = mem[:min(left, len(mem))]
			dst = append(dst, mem...)
			left -= len(mem)
			skip = 0
		}
	}
	switch {
	case term == nil:
	case l.agreed.markersOut:
		dst = wire.AppendMarkedFPDU(dst, pos, l.agreed.crc, term)
	default:
		dst = wire.AppendFPDU(dst, l.agreed.crc, term)
	}
	return dst, nil
}
