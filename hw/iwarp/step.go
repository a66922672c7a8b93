package iwarp

import (
	"errors"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// step does what there is to send, at most budget octets of it. It returns false
// when the connection is over.
func (s *sender) step(budget int) (alive bool) {
	s.link.own.Check()
	l := s.link
	s.mayBlock = budget == writerBudget
	for {
		if a := l.attention.Load(); a&broken != 0 {
			return false
		} else if a&probing != 0 {
			s.sendProbe()
		} else if a&nudging != 0 {
			s.sendNudge()
		}
		if l.busy.Load() {
			s.complete()
			return true
		}
		s.collect()
		s.complete()
		if s.failed && s.head == s.failAt {
			l.die(ending{why: hw.ReasonBroken, cause: s.ownFailure(), term: localTerminate()})
			continue
		}
		if s.writeFailed {
			return true
		}
		if s.out.empty() && !s.assemble() {
			s.complete() // binds have nothing to be written
			if s.bindWaits {
				s.bindWaits = false
				s.writer.assign(jobMore)
				return true
			}
			s.allSent()
			if l.attention.Load()&broken != 0 {
				continue
			}
			if s.failed && s.head == s.failAt || s.rtrDue {
				continue
			}
			return true
		}
		if s.port.staged() {
			s.writer.assign(jobWrite)
			return true
		}
		if !s.write(&budget) {
			return true
		}
	}
}

// write writes what the socket takes. It returns false when the writer has to go on.
func (s *sender) write(budget *int) bool {
	s.link.own.Check()
	if s.resumed {
		s.resumed = false
		if s.recheck(); s.out.empty() {
			s.out.release()
			return true
		}
	}
	n, err := s.port.write(&s.out)
	if n > 0 {
		s.out.advance(n)
		*budget -= n
	}
	full := err == nil && !s.out.empty()
	if full {
		s.out.bounce()
		s.resumed = true
	}
	s.link.moved()
	switch {
	case err != nil:
		s.stopWriting(err)
	case full:
		s.complete()
		s.writer.assign(jobWait)
		return false
	case *budget <= 0:
		s.complete()
		s.writer.assign(jobMore)
		return false
	}
	return true
}

// recheck looks up the keys of all that is not written, once more, and cuts off the
// first FPDU whose memory is gone, with all behind it. A half-written FPDU is a copy
// by now.
func (s *sender) recheck() {
	s.link.own.Check()
	for k := s.out.first; k < len(s.out.pieces); k++ {
		p := &s.out.pieces[k]
		if p.key == 0 || s.mem.reach(p.addr, uint32(len(p.mem)), p.key, p.need) != nil {
			continue
		}
		i := len(s.out.frames) - 1
		for s.out.frames[i].piece >= k { // its header is in a piece before
			i--
		}
		f := s.out.frames[i]
		s.out.cut(i)
		s.lost(f.slot, f.response)
		return
	}
}

// collect takes in what the writer has done. An error by which die interrupted the
// writer says nothing of the socket, which has still to take the rest of a
// half-written FPDU, and the Terminate.
func (s *sender) collect() {
	s.link.own.Check()
	j := &s.writer.job
	if !j.uncollected {
		return
	}
	j.uncollected = false
	if j.n > 0 {
		s.out.advance(j.n)
	}
	if err := j.err; err != nil && !(isTimeout(err) && s.link.attention.Load()&broken != 0) {
		s.stopWriting(err)
	}
}

// stopWriting stops writing, because the socket takes nothing more. The receiver
// finds out why: the peer's last word, or its orderly end, may be there to be read.
func (s *sender) stopWriting(err error) {
	s.link.own.Check()
	s.writeFailed = true
	s.link.stopWriting(err)
}

// allSent does what is to be done when nothing is left to send: it ends a connection
// with a Terminate, or a drain.
func (s *sender) allSent() {
	s.link.own.Check()
	switch {
	case s.lastDue:
		s.link.die(s.last)
	case s.writer.shut:
	case s.link.attention.Load()&draining == 0 || s.head != s.sq.Tail.Load():
	case s.link.agreed.extended && !s.farewell:
		s.farewell, s.rtr, s.rtrDue = true, wire.OpWrite, true
	default:
		s.writer.shut = true
		s.writer.assign(jobShut)
	}
}

// complete hands out the requests that have succeeded, in order.
func (s *sender) complete() {
	s.link.own.Check()
	q, n := s.sq, 0
	from := s.head
	for s.head < s.next {
		i := s.head & q.Mask
		if r := q.reads[i]; r != 0 {
			if r > s.link.reads.done.Load() {
				break
			}
		} else if q.ends[i] > s.out.written {
			break
		}
		wr := &q.Slots[i]
		if wr.Flags&hw.WRSignaled != 0 {
			op := wr.Op
			if op == hw.OpSendInvalidate {
				op = hw.OpSend
			}
			s.wcs[n] = hw.WC{ID: wr.ID, Len: uint32(total(wr.SGL)), Op: op}
			n++
		}
		s.head++
		if n == batch {
			q.Freed.Store(s.head)
			s.link.qp.cfg.SendSink.Complete(s.wcs[:n])
			n = 0
		}
	}
	if s.head == from {
		return
	}
	q.Freed.Store(s.head)
	if n > 0 {
		s.link.qp.cfg.SendSink.Complete(s.wcs[:n])
	}
}

// errStaged says that a frame had memory in it where none may be.
var errStaged = errors.New("iwarp: memory in a staged frame")

// appendEnd appends the rest of a half-written FPDU, and term, the ULPDU of a
// Terminate or farewell.
func (s *sender) appendEnd(dst, term []byte) ([]byte, error) {
	s.link.own.Check()
	o := &s.out
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
	case s.link.agreed.markersOut:
		dst = wire.AppendMarkedFPDU(dst, pos, s.link.agreed.crc, term)
	default:
		dst = wire.AppendFPDU(dst, s.link.agreed.crc, term)
	}
	return dst, nil
}
