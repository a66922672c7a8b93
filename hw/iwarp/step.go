package iwarp

import (
	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
	"godat/internal/release"
)

// step sends as much as it can, and leaves the rest to the writer after about as
// many octets as the holder may send. It returns false when the connection is over.
func (s *sender) step(by holder) (alive bool) {
	s.link.token.Check()
	l := s.link
	s.mayBlock = by == byWriter
	budget := l.haul.budgets[by]
	for {
		if a := l.attention.Load(); a&(broken|sendAbsent|probing|nudging|marked) != 0 {
			if a&broken != 0 {
				return false
			}
			s.attend(a)
		}
		if l.busy.Load() {
			s.complete()
			return true
		}
		s.collect()
		s.complete()
		if s.failed && s.head == s.failAt {
			l.die(ending{why: hw.ReasonBroken, cause: statusCause(s.sq.Slots[s.failAt&s.sq.Mask].Op, s.failStatus), term: localTerminate()})
			continue
		}
		if s.writeFailed {
			return true
		}
		if s.out.empty() && !s.assemble() {
			s.complete() // a bind has no octets to write, so nothing else completes it
			if s.bindWaits {
				s.bindWaits = false
				s.writer.assign(jobMore)
				return true
			}
			s.allSent()
			if l.attention.Load()&broken != 0 || s.failed && s.head == s.failAt || s.rtrDue {
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

// attend does what the attention word asks of a connection that lives.
func (s *sender) attend(a uint32) {
	s.link.token.Check()
	if a&sendAbsent != 0 {
		s.present.Enter()
	}
	if a&marked != 0 {
		s.link.attention.And(^uint32(marked))
		s.marking = true
	}
	if a&(probing|nudging) == 0 {
		return
	}
	s.link.attention.And(^uint32(probing | nudging)) // no peer gets both
	switch {
	case s.rtrDue:
	case a&probing != 0 && s.link.reads.outstanding() == 0:
		s.rtr, s.rtrDue = wire.OpReadRequest, true
	case a&nudging != 0:
		s.rtr, s.rtrDue = wire.OpWrite, true
	}
}

// write writes as much of the outbox as the socket takes. It returns false if the writer
// has to go on.
func (s *sender) write(budget *int) bool {
	s.link.token.Check()
	if s.resumed {
		s.resumed = false
		if s.recheck(); s.out.empty() {
			s.out.release()
			return true
		}
	}
	n, err := s.port.write(&s.out)
	if n > 0 {
		s.wrote(n)
		*budget -= n
	}
	full := err == nil && !s.out.empty()
	if full {
		s.out.bounce()
		s.resumed = true
	}
	s.link.token.Step()
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

// wrote counts n more octets of the outbox as written.
func (s *sender) wrote(n int) {
	if t := s.link.tap.Load(); t != nil {
		t.wrote(&s.out, n)
	}
	s.out.advance(n)
}

// recheck looks up again the keys of all pieces that are not written: a region may have
// other memory by now. It cuts off the first FPDU with a dead key and all behind it. A
// half-written FPDU has no keys any more: bounce has copied it.
func (s *sender) recheck() {
	s.link.token.Check()
	for k := s.out.first; k < len(s.out.pieces); k++ {
		p := &s.out.pieces[k]
		if p.key == 0 {
			continue
		}
		if mem := s.mem.Bytes(p.addr, uint32(len(p.mem)), p.key, p.need); mem != nil {
			p.mem = mem
			continue
		}
		i := len(s.out.frames) - 1
		for s.out.frames[i].piece >= k { // an FPDU's header lies in a piece before its payload
			i--
		}
		f := s.out.frames[i]
		s.out.cut(i)
		s.lost(f.slot, f.response)
		return
	}
}

// collect takes over the results of the writer's job. It ignores the timeout with which
// die interrupts the writer: the socket may still take the rest of a half-written FPDU,
// and the Terminate.
func (s *sender) collect() {
	s.link.token.Check()
	j := &s.writer.job
	if !j.uncollected {
		return
	}
	j.uncollected = false
	if j.n > 0 {
		s.wrote(j.n)
	}
	if err := j.err; err != nil && !(expired(err) && s.link.attention.Load()&broken != 0) {
		s.stopWriting(err)
	}
}

// stopWriting stops writing, because the socket takes nothing more. The receiver finds
// out why: it may still read the peer's Terminate, or its orderly end.
func (s *sender) stopWriting(err error) {
	s.link.token.Check()
	s.writeFailed = true
	s.link.stopWriting(err)
}

// allSent ends the connection if a termination is due and nothing is left to send before
// it; otherwise, in a drain whose requests have completed, it has a farewell sent and
// then this end's half closed.
func (s *sender) allSent() {
	s.link.token.Check()
	switch {
	case s.last != nil:
		s.link.die(*s.last)
	case s.writer.shut:
	case s.link.attention.Load()&draining == 0 || s.head != s.sq.Tail.Load():
	case s.link.agreed.extended && !s.farewell:
		s.farewell, s.rtr, s.rtrDue = true, wire.OpWrite, true
	default:
		s.writer.shut = true
		s.writer.assign(jobShut)
	}
}

// complete completes the requests that have succeeded, in order.
func (s *sender) complete() {
	s.link.token.Check()
	q, kept := s.sq, false
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
		s.head++
		if wr.Flags&hw.WRSignaled == 0 {
			continue
		}
		id, op, n := wr.ID, wr.Op, uint32(soft.Total(wr.SGL))
		release.Uint64(&q.Freed, s.head) // before a poster can see the completion
		if op <= hw.OpRecv {
			var flags hw.WCFlags
			if kept = kept || s.head < s.next; kept {
				flags = hw.WCMore
			}
			s.sink.CompleteOne(id, op, n, flags)
			continue
		}
		kept = false
		if op == hw.OpSendInvalidate {
			op = hw.OpSend
		}
		s.wc[0] = hw.WC{ID: id, Len: n, Op: op}
		s.sink.Complete(s.wc[:])
	}
	if s.head != from {
		release.Uint64(&q.Freed, s.head)
		if kept {
			s.sink.Flush()
		}
	}
	if s.marking && s.head >= s.mark.at {
		s.reportMark()
	}
}

// lastOctets is the rest of a half-written FPDU, which bounce has copied, and an FPDU around term, the
// ULPDU of a Terminate or farewell.
func (s *sender) lastOctets(term []byte) (tail []byte) {
	s.link.token.Check()
	o := &s.out
	pos := o.written
	if i, half := o.current(); half {
		pos = o.frames[i].end
		for _, mem := range o.ahead(int(pos - o.written)) {
			tail = append(tail, mem...)
		}
	}
	switch {
	case term == nil:
	case s.link.agreed.markersOut:
		tail = wire.AppendMarkedFPDU(tail, pos, s.link.agreed.crc, term)
	default:
		tail = wire.AppendFPDU(tail, s.link.agreed.crc, term)
	}
	return tail
}
