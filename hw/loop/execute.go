package loop

import (
	"unsafe"

	"godat/hw"
	"godat/internal/yield"
)

// verdict is what came of an attempt to execute a request.
type verdict uint8

const (
	done      verdict = iota
	noReceive         // the target has posted none; nothing was done
	tooLong           // more bytes than a poster may still move; nothing was done
	failure           // completed with an error; the connection is broken
	cut               // the connection was broken in the middle; flush it
)

// execute does one request.
func (p *pipe) execute(wr *hw.SendWR) verdict {
	if p.brief(wr) {
		return done
	}
	if p.full() {
		p.emit()
	}
	switch wr.Op {
	case hw.OpSend, hw.OpSendInvalidate:
		return p.send(wr)
	case hw.OpWrite:
		return p.write(wr)
	case hw.OpRead:
		return p.read(wr, hw.LocalWrite)
	case hw.OpReadToRMR:
		return p.readToRMR(wr)
	case hw.OpWriteImm:
		return p.writeImm(wr)
	case hw.OpBind:
		return p.bind(wr)
	default:
		return p.atomic(wr)
	}
}

// available reports whether the target has posted a receive.
func (p *pipe) available() bool {
	if p.recvHead != p.recvTail {
		return true
	}
	p.recvTail = p.rq.tail.Load()
	return p.recvHead != p.recvTail
}

// next is the first receive of the queue pair's own. There is one.
func (p *pipe) next() *hw.RecvWR { return &p.rq.slots[p.recvHead&p.rq.mask] }

// first is the first receive. The pipe is ready.
func (p *pipe) first() *hw.RecvWR {
	if p.hasDrawn {
		return &p.drawn
	}
	return p.next()
}

// take takes the first receive. What it returns is good until the next emit.
func (p *pipe) take() *hw.RecvWR {
	if p.hasDrawn {
		p.hasDrawn = false
		return &p.drawn
	}
	rr := p.next()
	p.recvHead++
	return rr
}

// received completes the first receive.
func (p *pipe) received(n uint32, op hw.Op, flags hw.WCFlags, imm uint32) {
	rr := p.take()
	p.recvs[p.nRecvs] = hw.WC{ID: rr.ID, Len: n, Imm: imm, QP: p.number, Op: op, Flags: flags}
	p.nRecvs++
}

// sent completes a request that succeeded.
func (p *pipe) sent(wr *hw.SendWR, n uint32) verdict {
	if wr.Flags&hw.WRSignaled != 0 {
		p.sends[p.nSends] = hw.WC{ID: wr.ID, Len: n, Op: wr.Op}
		p.nSends++
	}
	return done
}

func solicited(wr *hw.SendWR) hw.WCFlags {
	if wr.Flags&hw.WRSolicited != 0 {
		return hw.WCSolicited
	}
	return 0
}

// What most requests are like has a way of its own, lean because it counts (see
// BenchmarkPair): one segment, into one receive if it is a send, short enough,
// and nothing wrong. The brief methods return false if it is not so, and then
// have done nothing.

func (p *pipe) brief(wr *hw.SendWR) bool {
	switch wr.Op {
	case hw.OpSend:
		return p.briefSend(wr)
	case hw.OpWrite:
		return p.briefWrite(wr)
	case hw.OpRead:
		return p.briefRead(wr)
	}
	return false
}

func (p *pipe) briefSend(wr *hw.SendWR) bool {
	i := p.nRecvs
	if len(wr.SGL) != 1 || i >= len(p.recvs) || !p.available() {
		return false
	}
	rr := p.next()
	if len(rr.SGL) != 1 {
		return false
	}
	s, d := &wr.SGL[0], &rr.SGL[0]
	n := s.Len
	if n > d.Len || !p.affords(n) {
		return false
	}
	from := p.src.Reach(s.Addr, n, s.LKey, hw.LocalRead)
	to := p.dst.Reach(d.Addr, d.Len, d.LKey, hw.LocalWrite)
	if from == nil || to == nil {
		return false
	}
	p.move(wr, to, from, n)
	p.recvs[i] = hw.WC{ID: rr.ID, Len: n, Op: hw.OpRecv, Flags: solicited(wr)}
	p.nRecvs = i + 1
	p.recvHead++
	return true
}

func (p *pipe) briefWrite(wr *hw.SendWR) bool {
	if len(wr.SGL) != 1 {
		return false
	}
	s := &wr.SGL[0]
	if !p.affords(s.Len) {
		return false
	}
	from := p.src.Reach(s.Addr, s.Len, s.LKey, hw.LocalRead)
	to := p.dst.Reach(wr.RemoteAddr, s.Len, wr.RKey, hw.RemoteWrite)
	if from == nil || to == nil {
		return false
	}
	p.move(wr, to, from, s.Len)
	return true
}

func (p *pipe) briefRead(wr *hw.SendWR) bool {
	if len(wr.SGL) != 1 || p.canRead != hw.StatusSuccess {
		return false
	}
	d := &wr.SGL[0]
	if !p.affords(d.Len) {
		return false
	}
	from := p.dst.Reach(wr.RemoteAddr, d.Len, wr.RKey, hw.RemoteRead)
	to := p.src.Reach(d.Addr, d.Len, d.LKey, hw.LocalWrite)
	if from == nil || to == nil {
		return false
	}
	p.move(wr, to, from, d.Len)
	return true
}

// affords reports whether a brief request of n bytes may be done: not with 0,
// whose segments nobody checks.
func (p *pipe) affords(n uint32) bool {
	return n-1 < uint32(p.bytes) && p.nSends < len(p.sends)
}

// move copies n bytes and completes the request.
func (p *pipe) move(wr *hw.SendWR, to, from unsafe.Pointer, n uint32) {
	yield.Point()
	copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
	p.bytes -= int64(n)
	p.sent(wr, n)
}

// send moves a message into the first receive.
func (p *pipe) send(wr *hw.SendWR) verdict {
	n := total(wr.SGL)
	switch {
	case n > maxMessage:
		return p.fail(wr, hw.StatusLocalLength)
	case !p.src.allows(wr.SGL, hw.LocalRead):
		return p.fail(wr, hw.StatusLocalProtection)
	case !p.ready():
		return noReceive
	}
	rr := p.first()
	if n > total(rr.SGL) {
		return p.failBoth(wr, hw.StatusRemoteResponder, hw.StatusLocalLength)
	}
	if int64(n) > p.bytes && !p.patient {
		return tooLong
	}
	if wr.Op == hw.OpSendInvalidate {
		if v := p.invalidate(wr); v != done {
			return v
		}
	}
	switch p.transfer(&p.src, wr.SGL, hw.LocalRead, &p.dst, rr.SGL, hw.LocalWrite, n) {
	case moved:
		if wr.Op == hw.OpSendInvalidate {
			return p.invalidated(wr, uint32(n))
		}
		p.received(uint32(n), hw.OpRecv, solicited(wr), 0)
		return p.sent(wr, uint32(n))
	case badSource:
		return p.fail(wr, hw.StatusLocalProtection)
	case badSink:
		return p.failBoth(wr, hw.StatusRemoteResponder, hw.StatusLocalProtection)
	default:
		return cut
	}
}

// write moves the local segments to the target's memory.
func (p *pipe) write(wr *hw.SendWR) verdict {
	n := total(wr.SGL)
	if n > maxMessage {
		return p.fail(wr, hw.StatusLocalLength)
	}
	if !p.src.allows(wr.SGL, hw.LocalRead) {
		return p.fail(wr, hw.StatusLocalProtection)
	}
	target := [1]hw.SGE{{Addr: wr.RemoteAddr, Len: uint32(n), LKey: wr.RKey}}
	if !p.dst.allows(target[:], hw.RemoteWrite) {
		return p.fail(wr, hw.StatusRemoteAccess)
	}
	if int64(n) > p.bytes && !p.patient {
		return tooLong
	}
	switch p.transfer(&p.src, wr.SGL, hw.LocalRead, &p.dst, target[:], hw.RemoteWrite, n) {
	case moved:
		return p.sent(wr, uint32(n))
	case badSource:
		return p.fail(wr, hw.StatusLocalProtection)
	case badSink:
		return p.fail(wr, hw.StatusRemoteAccess)
	default:
		return cut
	}
}

// writeImm is a write that then takes a receive, which gets the number and no
// bytes. Without a receive it waits before it writes.
func (p *pipe) writeImm(wr *hw.SendWR) verdict {
	if !p.ready() {
		return noReceive
	}
	v := p.write(wr)
	if v == done {
		p.received(uint32(total(wr.SGL)), hw.OpRecvImm, hw.WCImm|solicited(wr), wr.Imm)
	}
	return v
}

// readToRMR is a read whose sink is named as a peer would name it.
func (p *pipe) readToRMR(wr *hw.SendWR) verdict {
	at := p.nSends
	v := p.read(wr, hw.RemoteWrite)
	if v == done && p.nSends > at {
		p.sends[at].Op = hw.OpRead
	}
	return v
}

// read moves the target's memory to the local segments, whose keys allow sink.
func (p *pipe) read(wr *hw.SendWR, sink hw.Privileges) verdict {
	n := total(wr.SGL)
	switch {
	case p.canRead != hw.StatusSuccess:
		return p.fail(wr, p.canRead)
	case n > maxMessage:
		return p.fail(wr, hw.StatusLocalLength)
	case !p.src.allows(wr.SGL, sink):
		return p.fail(wr, hw.StatusLocalProtection)
	}
	source := [1]hw.SGE{{Addr: wr.RemoteAddr, Len: uint32(n), LKey: wr.RKey}}
	if !p.dst.allows(source[:], hw.RemoteRead) {
		return p.fail(wr, hw.StatusRemoteAccess)
	}
	if int64(n) > p.bytes && !p.patient {
		return tooLong
	}
	switch p.transfer(&p.dst, source[:], hw.RemoteRead, &p.src, wr.SGL, sink, n) {
	case moved:
		return p.sent(wr, uint32(n))
	case badSource:
		return p.fail(wr, hw.StatusRemoteAccess)
	case badSink:
		return p.fail(wr, hw.StatusLocalProtection)
	default:
		return cut
	}
}
