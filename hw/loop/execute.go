package loop

import (
	"unsafe"

	"godat/hw"
	"godat/internal/yield"
)

func solicited(wr *hw.SendWR) hw.WCFlags {
	if wr.Flags&hw.WRSolicited != 0 {
		return hw.WCSolicited
	}
	return 0
}

// The fast path executes the most common requests: a short message of one segment, into
// a receive of one segment if it is a send, without an error. Its cost decides the
// throughput (see BenchmarkPair), so it does nothing else. The fast methods return false
// for any other request, and then have done nothing.

func (x *executor) fast(wr *hw.SendWR) bool {
	switch wr.Op {
	case hw.OpSend:
		return x.fastSend(wr)
	case hw.OpWrite:
		return x.fastWrite(wr)
	case hw.OpRead:
		return x.fastRead(wr)
	}
	return false
}

func (x *executor) fastSend(wr *hw.SendWR) bool {
	i := x.dst.n
	if len(wr.SGL) != 1 || i >= len(x.dst.wcs) || !x.dst.available() {
		return false
	}
	rr := x.dst.next()
	if rr.n != 1 {
		return false
	}
	s, d := &wr.SGL[0], rr.sgl
	n := s.Len
	if n > d.Len || !x.fastAffords(n) {
		return false
	}
	from := x.src.Reach(s.Addr, n, s.LKey, hw.LocalRead)
	to := x.dst.Reach(d.Addr, d.Len, d.LKey, hw.LocalWrite)
	if from == nil || to == nil {
		return false
	}
	x.move(wr, to, from, n)
	x.dst.wcs[i] = hw.WC{ID: rr.id, Len: n, Op: hw.OpRecv, Flags: solicited(wr)}
	x.dst.n = i + 1
	x.dst.head++
	return true
}

func (x *executor) fastWrite(wr *hw.SendWR) bool {
	if len(wr.SGL) != 1 {
		return false
	}
	s := &wr.SGL[0]
	if !x.fastAffords(s.Len) {
		return false
	}
	from := x.src.Reach(s.Addr, s.Len, s.LKey, hw.LocalRead)
	to := x.dst.Reach(wr.RemoteAddr, s.Len, wr.RKey, hw.RemoteWrite)
	if from == nil || to == nil {
		return false
	}
	x.move(wr, to, from, s.Len)
	return true
}

func (x *executor) fastRead(wr *hw.SendWR) bool {
	if len(wr.SGL) != 1 || x.canRead != hw.StatusSuccess {
		return false
	}
	d := &wr.SGL[0]
	if !x.fastAffords(d.Len) {
		return false
	}
	from := x.dst.Reach(wr.RemoteAddr, d.Len, wr.RKey, hw.RemoteRead)
	to := x.src.Reach(d.Addr, d.Len, d.LKey, hw.LocalWrite)
	if from == nil || to == nil {
		return false
	}
	x.move(wr, to, from, d.Len)
	return true
}

// fastAffords reports whether the fast path may move n bytes. It may not move 0 bytes,
// whose address must not be checked: n-1 wraps.
func (x *executor) fastAffords(n uint32) bool {
	return n-1 < uint32(x.bytes) && int(x.src.n) < len(x.src.wcs)
}

// move copies n bytes and completes the request.
func (x *executor) move(wr *hw.SendWR, to, from unsafe.Pointer, n uint32) {
	yield.Point()
	copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
	x.bytes -= int64(n)
	x.src.sent(wr, n)
}

// send moves a message into the first receive.
func (x *executor) send(wr *hw.SendWR) verdict {
	n := total(wr.SGL)
	switch {
	case n > maxMessage:
		return x.fail(wr, hw.StatusLocalLength)
	case !x.src.allows(wr.SGL, hw.LocalRead):
		return x.fail(wr, hw.StatusLocalProtection)
	case !x.dst.ready():
		return noReceive
	}
	sink := x.dst.first()
	if n > total(sink) {
		return x.failBoth(wr, hw.StatusRemoteResponder, hw.StatusLocalLength)
	}
	if !x.affords(n) {
		return tooLong
	}
	if wr.Op == hw.OpSendInvalidate {
		if v := x.invalidate(wr); v != done {
			return v
		}
	}
	switch x.transfer(&x.src.end, wr.SGL, hw.LocalRead, &x.dst.end, sink, hw.LocalWrite, n) {
	case moved:
		if wr.Op == hw.OpSendInvalidate {
			return x.sentInvalidate(wr, uint32(n))
		}
		x.dst.received(uint32(n), hw.OpRecv, solicited(wr), 0)
		return x.sent(wr, uint32(n))
	case badSource:
		return x.fail(wr, hw.StatusLocalProtection)
	case badSink:
		return x.failBoth(wr, hw.StatusRemoteResponder, hw.StatusLocalProtection)
	default:
		return cut
	}
}

// write moves the local segments to the target's memory.
func (x *executor) write(wr *hw.SendWR) verdict {
	n := total(wr.SGL)
	if n > maxMessage {
		return x.fail(wr, hw.StatusLocalLength)
	}
	if !x.src.allows(wr.SGL, hw.LocalRead) {
		return x.fail(wr, hw.StatusLocalProtection)
	}
	remote := [1]hw.SGE{{Addr: wr.RemoteAddr, Len: uint32(n), LKey: wr.RKey}}
	if !x.dst.allows(remote[:], hw.RemoteWrite) {
		return x.fail(wr, hw.StatusRemoteAccess)
	}
	if !x.affords(n) {
		return tooLong
	}
	switch x.transfer(&x.src.end, wr.SGL, hw.LocalRead, &x.dst.end, remote[:], hw.RemoteWrite, n) {
	case moved:
		return x.sent(wr, uint32(n))
	case badSource:
		return x.fail(wr, hw.StatusLocalProtection)
	case badSink:
		return x.fail(wr, hw.StatusRemoteAccess)
	default:
		return cut
	}
}

// writeImm executes a write and then completes a receive with the immediate data. The
// receive's segments get no bytes. Without a receive the write waits as a whole.
func (x *executor) writeImm(wr *hw.SendWR) verdict {
	if !x.dst.ready() {
		return noReceive
	}
	v := x.write(wr)
	if v == done {
		x.dst.received(uint32(total(wr.SGL)), hw.OpRecvImm, hw.WCImm|solicited(wr), wr.Imm)
	}
	return v
}

// readToRMR executes a read whose sink is named by its remote key, as a peer names it.
func (x *executor) readToRMR(wr *hw.SendWR) verdict {
	at := x.src.n
	v := x.read(wr, hw.RemoteWrite)
	if v == done && x.src.n > at {
		x.src.wcs[at].Op = hw.OpRead
	}
	return v
}

// read moves the target's memory to the local segments, whose keys must have that
// privilege.
func (x *executor) read(wr *hw.SendWR, privilege hw.Privileges) verdict {
	n := total(wr.SGL)
	switch {
	case x.canRead != hw.StatusSuccess:
		return x.fail(wr, x.canRead)
	case n > maxMessage:
		return x.fail(wr, hw.StatusLocalLength)
	case !x.src.allows(wr.SGL, privilege):
		return x.fail(wr, hw.StatusLocalProtection)
	}
	remote := [1]hw.SGE{{Addr: wr.RemoteAddr, Len: uint32(n), LKey: wr.RKey}}
	if !x.dst.allows(remote[:], hw.RemoteRead) {
		return x.fail(wr, hw.StatusRemoteAccess)
	}
	if !x.affords(n) {
		return tooLong
	}
	switch x.transfer(&x.dst.end, remote[:], hw.RemoteRead, &x.src.end, wr.SGL, privilege, n) {
	case moved:
		return x.sent(wr, uint32(n))
	case badSource:
		return x.fail(wr, hw.StatusRemoteAccess)
	case badSink:
		return x.fail(wr, hw.StatusLocalProtection)
	default:
		return cut
	}
}
